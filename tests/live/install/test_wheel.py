"""The wheel, built and installed as a user gets it: the command, the dashboard, the examples.

Nothing is downloaded: it is built with the build backend that is here, and installed into an environment
that sees the packages of this one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import viewkeeper

ROOT = Path(__file__).parents[3]
# Spark would be started by these; everything else is tried.
pytestmark = pytest.mark.xdist_group("install")


def run(words: list[str], **settings) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, **settings)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy of what is committed, so that nothing lying about gets in or is left behind."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, source / name)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", source / "src", ignore=ignored)
    target = tmp_path_factory.mktemp("wheel")
    built = run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("--no-build-isolation", "--no-index", "--wheel-dir", str(target), str(source)),
        ]
    )
    assert built.returncode == 0, built.stderr
    (found,) = target.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory) -> Path:
    """The command of a fresh environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    packages = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    # The packages it depends on, seen from here; ours, which is installed here as a link, must not be.
    shared = packages / "shared"
    shared.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "viewkeeper" not in entry.name and not entry.name.startswith("__editable__"):
            (shared / entry.name).symlink_to(entry)
    (packages / "shared.pth").write_text(f"{shared}\n")
    installed = run(
        [
            *(sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"),
            *("--quiet", "--no-deps", "--no-index", str(wheel)),
        ]
    )
    assert installed.returncode == 0, installed.stderr
    return folder / "bin" / "viewkeeper"


def outside(tmp_path: Path, **more: str) -> dict:
    """From an empty folder, without a terminal, with nothing of this checkout in the environment."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL"))}
    return {"cwd": tmp_path, "env": environment | more, "stdin": subprocess.DEVNULL}


def test_everything_that_users_need_is_inside(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    committed = run(["git", "ls-files", "src/viewkeeper"], cwd=ROOT).stdout.splitlines()
    wanted = {name.removeprefix("src/") for name in committed if (ROOT / name).exists()}
    assert {name for name in wanted if name not in names} == set()
    for kind in ("dashboard/static/*.html", "examples/*/README.md", "simulator/scenarios/*.toml"):
        assert list((source / "viewkeeper").glob(kind)), kind
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]


def test_the_installed_program_is_the_wheel_and_not_this_checkout(program: Path, tmp_path) -> None:
    asked = run([str(program), "--version"], **outside(tmp_path))
    assert asked.stdout == f"viewkeeper {viewkeeper.__version__}\n"
    where = "import viewkeeper; print(viewkeeper.__file__)"
    place = run([str(program.with_name("python")), "-c", where], **outside(tmp_path)).stdout
    assert Path(place.strip()).is_relative_to(program.parents[1])


def test_init_works_in_an_empty_folder_and_a_second_time_says_what_is_there(program, tmp_path):
    first = run([str(program), "init", "example", "--json"], **outside(tmp_path))
    assert first.returncode == 0, first.stderr
    assert "viewkeeper.toml" in json.loads(first.stdout)["files"]
    before = sorted((p.name, p.stat().st_mtime_ns) for p in (tmp_path / "example").rglob("*"))
    for _ in range(2):
        again = run([str(program), "init", "example"], **outside(tmp_path))
        assert again.returncode == 2
        assert "[project-exists]" in again.stderr
        assert "Hint: name a new folder" in again.stderr
    assert (
        sorted((p.name, p.stat().st_mtime_ns) for p in (tmp_path / "example").rglob("*")) == before
    )
    checked = run([str(program), "check", "--project", "example"], **outside(tmp_path))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_examples_and_the_lab_are_there_without_the_checkout(program, tmp_path):
    made = run([str(program), "init", "three", "--example", "03", "--json"], **outside(tmp_path))
    assert made.returncode == 0, made.stderr
    shown = run([str(program), "lab", "show", "sweep-figure-5"], **outside(tmp_path))
    assert shown.returncode == 0, shown.stderr


@pytest.mark.parametrize(
    ("command", "says", "code"),
    [
        (["demo"], None, "java-missing"),
        (["demo"], 'openjdk version "11.0.2" 2019-01-15', "java-too-old"),
        (["run", "--until-caught-up"], None, "java-missing"),
    ],
)
def test_without_a_fit_java_the_first_thing_said_is_that(program, tmp_path, command, says, code):
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    if says is not None:
        java = home / "bin" / "java"
        java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
        java.chmod(0o755)
    if command[0] != "demo":
        run([str(program), "init", "example"], **outside(tmp_path))
        command = [*command, "--project", "example"]
    told = run([str(program), *command, "--json"], **outside(tmp_path, JAVA_HOME=str(home)))
    assert told.returncode == 2, told.stdout + told.stderr
    document = json.loads(told.stdout.splitlines()[0])
    assert document["error"]["code"] == code
    assert "17" in document["error"]["hint"]
    assert not (tmp_path / "example" / "warehouse").exists(), "something was begun in vain"
