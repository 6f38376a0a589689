"""Which tests need a program beside Python: Java, a database server, a browser.

`make check` runs the others. No list decides it: a test is marked ``outside`` when it asks for a fixture that starts
such a program, when its module, or a module of the tests that it imports, names a package that does, or when it lies
below ``tests/live``. A module that starts one in another way (a whole ``viewkeeper run`` in a child) marks itself. What
slips through is caught: a test without the mark that starts such a program fails, in every run.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
# Real databases, disks, stores and installations: what is here needs something that is not Python.
LIVE = TESTS / "live"
# Fixtures that start something, by name; what asks for one of them through another fixture has it in its list too.
STARTING_FIXTURES = frozenset({"running_spark", "browser"})
# Packages that start something, for who imports them.
STARTING_PACKAGES = ("viewkeeper.testing", "playwright")
# What must not be started by a test without the mark.
PROGRAMS = frozenset(
    {
        *("java", "spark-submit", "postgres", "initdb", "pg_ctl"),
        *("mariadbd", "mysqld", "mariadb-install-db"),
        *("chromium", "chromium-browser", "google-chrome"),
    }
)
# By pattern and not by Python's parser, which would take as long as loading the tests does.
_IMPORT = re.compile(
    r"^\s*(?:from|import) ([\w.]+)(?: import (?:\(([^)]*)\)|([^\n]*)))?", re.MULTILINE
)
_NAME = re.compile(r"\w+")


def needs_outside(path: Path, fixtures: Sequence[str], marks: Sequence[str]) -> bool:
    """Whether a test may start Java, a server or a browser."""
    return "spark" in marks or not STARTING_FIXTURES.isdisjoint(fixtures) or reaches_outside(path)


def reaches_outside(path: Path) -> bool:
    """Whether all tests of a module count as needing it, by what the module imports."""
    return LIVE in path.parents or any(_starts(name) for name in _reached(path))


def is_sliced(path: Path) -> bool:
    """Whether a module runs few seeds in `make check`, and so belongs there though it is long."""
    return "slices.seeds" in _imports(path)


def program_in(command: object) -> str | None:
    """The forbidden program that a command line would start, if it is one."""
    words = [command] if isinstance(command, str | bytes) else list(command or ())  # type: ignore[call-overload]
    program = Path(os.fsdecode(words[0]).split(" ")[0] if words else "")
    if program.is_relative_to(tempfile.gettempdir()):
        return None  # a stand-in that the test wrote itself
    return program.name if program.name in PROGRAMS else None


class Guard:
    """Refuses to start a forbidden program while a test without the mark runs, and remembers that it had to."""

    def __init__(self) -> None:
        self.forbids = False
        self._started: list[str] = []
        # A hook can't be removed again; it costs one comparison for each event of the interpreter.
        sys.addaudithook(self._look)

    def _look(self, event: str, details: tuple[Any, ...]) -> None:
        place = _COMMAND_AT.get(event)
        if place is None or not self.forbids:
            return
        program = program_in(details[place])
        if program is not None:
            self._started.append(program)
            raise PermissionError(f"{program}: {ADVICE}")

    def require_nothing_started(self) -> None:
        """Fails the test that tried to start something."""
        started, self._started = self._started, []
        if started:
            pytest.fail(f"the test started {', '.join(started)}: {ADVICE}", pytrace=False)


# Where an event of the interpreter has the command line.
_COMMAND_AT = {"subprocess.Popen": 1, "os.posix_spawn": 1, "os.exec": 1, "os.system": 0}
ADVICE = "a test that needs it is marked: pytestmark = pytest.mark.outside (tests/outside.py)"
GUARD = Guard()


def _starts(name: str) -> bool:
    return any(name == start or name.startswith(f"{start}.") for start in STARTING_PACKAGES)


@cache
def _reached(path: Path) -> frozenset[str]:
    """The names of all modules that a test module imports, also through other modules of the tests."""
    found: set[str] = set()
    files, seen = [path], {path}
    while files:
        for name in _imports(files.pop()):
            found.add(name)
            for file in _files_of(name):
                if file not in seen:
                    seen.add(file)
                    files.append(file)
    return frozenset(found)


@cache
def _imports(file: Path) -> frozenset[str]:
    """Imports anywhere in the text, also inside functions; ``from a import b`` may be the module ``a.b``."""
    found: set[str] = set()
    for module, several, one in _IMPORT.findall(file.read_text("utf-8")):
        found.add(module)
        found.update(f"{module}.{name}" for name in _NAME.findall(several or one))
    return frozenset(found)


def _files_of(name: str) -> list[Path]:
    """The file of a module of the tests (some folders are on the path themselves), if it is one."""
    place = name.replace(".", "/") + ".py"
    return [f for f in (TESTS / place, TESTS / "live/warehouse" / place) if f.is_file()]
