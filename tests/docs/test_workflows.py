"""The workflows of the public CI host run what there is: make targets, scripts, supported versions of Python."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name: str) -> dict:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text("utf-8"))


def commands(workflow: dict) -> list[str]:
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [step["run"] for step in steps if "run" in step]


def events(workflow: dict) -> set[str]:
    return set(workflow[True])  # YAML 1.1 reads the key "on" as true


def targets() -> set[str]:
    files = [ROOT / "Makefile", *(ROOT / "make").glob("*.mk")]
    return {
        name
        for file in files
        for name in re.findall(r"^([a-z][a-z-]*):.*## ", file.read_text("utf-8"), re.MULTILINE)
    }


def test_every_push_is_checked_and_every_night_all_tests_run() -> None:
    check, nightly = read("check.yml"), read("nightly.yml")
    assert {"push", "pull_request"} <= events(check)
    assert commands(check) == ["make check"]
    assert "schedule" in events(nightly)
    assert ".ci/run" in commands(nightly)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_its_commands_exist_and_it_may_only_read(file: Path) -> None:
    workflow = read(file.name)
    for command in commands(workflow):
        if command.startswith("make "):
            assert set(command.split()[1:]) <= targets(), command
        else:
            assert (ROOT / command).stat().st_mode & 0o100, command
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 120


def test_what_a_submission_must_pass_is_what_make_has() -> None:
    called = re.findall(r"^make (.*)$", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert set(called) <= targets()
    assert {"lint", "test", "test-long"} <= set(called)


def test_the_oldest_python_that_we_support_is_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    assert oldest in read("check.yml")["jobs"]["check"]["strategy"]["matrix"]["python"]
