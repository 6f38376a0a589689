"""A page of documentation as a program: its blocks are run in order, as a reader would.

| block | what happens |
|---|---|
| ``sh`` | every line is run |
| ``console`` | lines after ``$`` are run; what follows them must be what they print (… stands for anything) |
| ``toml``, ``sql``, ``python`` whose first line names a file (``# viewkeeper.toml``, ``-- views/x.sql``) | the file is written |
| ``python`` otherwise | is run; all of a page share their names |
| anything below ``<!-- not run: REASON -->`` | is left out, and the reason is checked to be there |

Commands of ours run in this process, so that all pages share one Spark; ``sqlite3 FILE "SQL"`` is played by
Python's own module, for the program of that name is not everywhere. What Python prints as ``export NAME=…``
fills a later ``export NAME=…`` of the page, as a reader copies it from one terminal to the other.

With ``VIEWKEEPER_REWRITE_DOCS=1`` the output on the page is written anew instead (`make rewrite-docs`).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from viewkeeper.cli import execute

_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]*?) -->\n+)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"(?:#|--) (?P<name>[\w./-]+\.(?:toml|sql|py|yml))\s*\n")
REWRITING = os.environ.get("VIEWKEEPER_REWRITE_DOCS") == "1"
RUNNABLE = ("sh", "console", "python", "toml", "sql")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page; with a ``reason`` it is not run."""

    language: str
    text: str
    reason: str | None = None

    @property
    def file(self) -> str | None:
        """The file that the block is the text of, if its first line names one."""
        found = _FILE.match(self.text)
        return found["name"] if found and self.language in ("toml", "sql", "python") else None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(b["language"], b["text"], b["reason"]) for b in _BLOCK.finditer(text)]


class Reader:
    """Works through pages in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, object] = {"__name__": "__page__"}
        self.exports: dict[str, str] = {}
        self.commands: list[str] = []

    def read(self, page: Path) -> None:
        rewritten = page.read_text(encoding="utf-8")
        with _undone(self.folder):
            for block in blocks(page):
                if block.reason is None:
                    rewritten = rewritten.replace(block.text, self._follow(block), 1)
        if REWRITING:
            page.write_text(rewritten, encoding="utf-8")

    def _follow(self, block: Block) -> str:
        """Do what the block says; its text, with what was printed if that is to be written anew."""
        if block.file is not None:
            target = Path(block.file)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            self._python(block.text)
        elif block.language == "sh":
            for line in _lines(block.text):
                self.run(line)
        elif block.language == "console":
            told = []
            for command, expected in _dialogue(block.text):
                printed = self.run(command)
                if REWRITING:
                    told.append(f"$ {command}\n{_plain(printed, expected)}\n")
                else:
                    require_like(command, expected, printed)
            return "".join(told) or block.text
        return block.text

    def run(self, line: str) -> str:
        """Run a line of shell; what it printed. It must succeed."""
        self.commands.append(line)
        words = shlex.split(line, comments=True)
        match words:
            case []:
                return ""
            case ["cd", folder]:
                os.chdir(folder)
                return ""
            case ["export", setting]:
                name, _, value = setting.partition("=")
                os.environ[name] = self.exports[name] if "…" in value else value
                return ""
            case ["sqlite3", file, statement]:
                with contextlib.closing(sqlite3.connect(file)) as database:
                    database.executescript(statement)
                return ""
            case ["viewkeeper", *arguments]:
                return self._ours(arguments)
            case _:
                done = subprocess.run(
                    ["bash", "-c", line], capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
                return done.stdout

    def _ours(self, arguments: list[str]) -> str:
        told, complained = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(complained):
            code = execute(arguments)
        text = f"viewkeeper {shlex.join(arguments)}\n{told.getvalue()}{complained.getvalue()}"
        assert code == 0, f"exit code {code}: {text}"
        return told.getvalue()

    def _python(self, text: str) -> None:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, "page", "exec"), self.names)
        for name, value in re.findall(r"^export (\w+)=(.*)$", printed.getvalue(), re.MULTILINE):
            self.exports[name] = value
        shown = [line[2:] for line in re.findall(r"^\s*(# \[.*)$", text, re.MULTILINE)]
        told = [line for line in printed.getvalue().splitlines() if not line.startswith("export ")]
        if shown:
            assert told == shown


def require_like(command: str, expected: list[str], printed: str) -> None:
    """The lines that the page shows must be those printed; … in them stands for anything."""
    found = [line.rstrip() for line in printed.strip("\n").splitlines() if line.strip()]
    wanted = [line.rstrip() for line in expected if line.strip()]
    pattern = [re.escape(line).replace("…", ".*") for line in wanted]
    assert len(found) == len(wanted), f"$ {command}\n{printed}"
    for line, like in zip(found, pattern, strict=True):
        assert re.fullmatch(like, line), f"$ {command}\n{printed}"


def _plain(printed: str, expected: list[str]) -> str:
    """What was printed, without blank lines around it; lines that the page leaves open stay open."""
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    open_lines = [re.escape(line).replace("…", ".*") for line in expected if "…" in line]
    patterns = dict(zip(open_lines, (line for line in expected if "…" in line), strict=True))
    for index, line in enumerate(lines):
        for pattern, kept in patterns.items():
            if re.fullmatch(pattern, line):
                lines[index] = kept
    return "\n".join(lines)


def _lines(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def _dialogue(text: str) -> Iterator[tuple[str, list[str]]]:
    command: str | None = None
    expected: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command is not None:
                yield command, expected
            command, expected = line[2:], []
        else:
            expected.append(line)
    if command is not None:
        yield command, expected


@contextlib.contextmanager
def _undone(folder: Path) -> Iterator[None]:
    """In ``folder``, with folder, environment, path and signals as they were afterwards."""
    before, environment, path = Path.cwd(), dict(os.environ), list(sys.path)
    modules = set(sys.modules)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    os.chdir(folder)
    os.environ["COLUMNS"] = "200"
    sys.path.insert(0, "")
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:] = path
        # Programs of the page, which the next page must not find.
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(folder):
                del sys.modules[name]
        for number, handler in handlers.items():
            signal.signal(number, handler)
