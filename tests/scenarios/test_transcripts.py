"""Every scenario that comes with Viewkeeper happens exactly as its transcript says."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewkeeper.simulator.scenario_file import Played, load_scenario, played, shipped_names

FOLDER = Path(__file__).parent


def transcript(run: Played) -> str:
    outcome = run.outcome
    ending = f"{outcome.protocol}: {outcome.verdict.level}, expected {outcome.expected_level}\n"
    violation = "" if outcome.is_good else f"{outcome.problem}\n"
    return f"{run.journal.transcript()}\n{ending}{violation}"


@pytest.mark.parametrize("name", shipped_names())
def test_the_scenario_happens_as_written_down(name: str, rewriting: bool) -> None:
    file = FOLDER / f"{name}.txt"
    happened = transcript(played(load_scenario(name)))
    if rewriting:
        file.write_text(happened, encoding="utf-8")
    assert happened == file.read_text(encoding="utf-8")


def test_every_transcript_belongs_to_a_scenario() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.txt")) == sorted(shipped_names())
