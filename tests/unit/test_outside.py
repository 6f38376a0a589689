"""A test that starts Java, a server or a browser is marked for it, or fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import outside
from slices import SLICE

TESTS = Path(__file__).parent.parent
LIVE = TESTS / "live"
# A folder of tests with our rules: the guard, the marks, and what make check leaves out.
RULES = (TESTS / "conftest.py").read_text("utf-8")


@pytest.mark.parametrize(
    ("place", "is_outside"),
    [
        ("live/sources/rig_postgres.py", True),
        ("live/pipeline/test_source_away.py", True),
        ("security/test_tls.py", True),
        ("dashboard/test_api.py", False),
        ("unit/lab/test_commands.py", False),
    ],
)
def test_a_module_is_judged_by_what_it_imports(place: str, is_outside: bool) -> None:
    assert outside.reaches_outside(TESTS / place) is is_outside


def test_a_module_that_imports_one_through_another_is_found(tmp_path: Path) -> None:
    file = tmp_path / "test_new.py"
    file.write_text("def test():\n    from live.sources import (\n        rig_postgres,\n    )\n")
    assert outside.reaches_outside(file)


def test_a_fixture_that_starts_something_marks_its_test(tmp_path: Path) -> None:
    file = tmp_path / "test_new.py"
    file.write_text("")
    assert outside.needs_outside(file, ("tmp_path", "running_spark"), ())
    assert outside.needs_outside(file, (), ("spark",))
    assert not outside.needs_outside(file, ("tmp_path",), ("parametrize",))


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (["java", "-version"], "java"),
        ("/usr/sbin/mariadbd --no-defaults", "mariadbd"),
        ([b"/usr/lib/postgresql/bin/postgres", "-D", "x"], "postgres"),
        ([Path("/usr/bin/chromium")], "chromium"),
        ([sys.executable, "-m", "viewkeeper"], None),
        ([], None),
    ],
)
def test_a_command_line_is_known_by_its_program(command: object, program: str | None) -> None:
    assert outside.program_in(command) == program


def test_a_stand_in_that_a_test_wrote_may_be_started(tmp_path: Path) -> None:
    assert outside.program_in([str(tmp_path / "java"), "-version"]) is None


STARTS = """
import subprocess, pytest
def test_starts():
    subprocess.run(["java", "-version"])
def test_swallows():
    try:
        subprocess.run(["mariadbd", "--version"])
    except OSError:
        pass
@pytest.mark.outside
def test_may():
    with pytest.raises(FileNotFoundError):
        subprocess.run(["java", "-version"], env={"PATH": ""})
def test_harmless():
    assert subprocess.run(["true"]).returncode == 0
"""


def run_tests(folder: Path, text: str, **environment: str) -> str:
    """What pytest says of a module of tests under our rules."""
    (folder / "test_new.py").write_text(text)
    (folder / "conftest.py").write_text(RULES)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  outside\n  long\n  spark\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-v", str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_test_without_the_mark_that_starts_a_program_fails(tmp_path: Path) -> None:
    said = run_tests(tmp_path, STARTS, VIEWKEEPER_CHECK="")
    assert "test_starts FAILED" in said, said
    # The code under test swallowed the refusal: the end of the test tells it all the same.
    assert "test_swallows PASSED" in said
    assert "ERROR test_new.py::test_swallows" in said
    assert "the test started mariadbd" in said
    assert "test_may PASSED" in said
    assert "test_harmless PASSED" in said


def test_a_check_run_leaves_out_what_is_marked(tmp_path: Path) -> None:
    said = run_tests(tmp_path, STARTS, VIEWKEEPER_CHECK="1")
    assert "test_harmless PASSED" in said, said
    assert "test_may" not in said
    assert "1 deselected" in said


def test_a_check_run_has_a_slice_of_the_seeds() -> None:
    program = "import slices; print(slices.seeds(2000), slices.seeds(12, least=4))"
    for environment, expected in (
        ({"VIEWKEEPER_CHECK": "1"}, f"{2000 // SLICE} 4"),
        ({}, "2000 12"),
    ):
        clean = {k: v for k, v in os.environ.items() if k != "VIEWKEEPER_CHECK"}
        said = subprocess.run(
            [sys.executable, "-c", program],
            env={**clean, **environment, "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout.strip() == expected
