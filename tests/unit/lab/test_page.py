"""What docs/lab.md shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from viewkeeper.cli import execute
from viewkeeper.simulator.scenario_file import played, read_scenario

PAGE = (Path(__file__).parents[3] / "docs" / "lab.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```console\n\$ viewkeeper (.*)\n((?:.*\n)*?)```", PAGE)


def test_the_page_shows_commands() -> None:
    assert len(SHOWN) >= 5


@pytest.mark.parametrize(("words", "expected"), SHOWN, ids=[words for words, _ in SHOWN])
@pytest.mark.thorough
def test_a_command_prints_what_the_page_shows(
    words: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(shlex.split(words))
    printed = capsys.readouterr().out
    assert [line.rstrip() for line in printed.splitlines()] == expected.splitlines()


def test_the_scenario_on_the_page_can_be_played() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert played(read_scenario("page", text)).outcome.is_good
