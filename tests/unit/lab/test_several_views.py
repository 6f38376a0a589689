"""``lab run --views`` and ``lab show``: several views under a painting algorithm."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as xml
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from simulation.broken_merging import AsTheyCome
from viewkeeper.cli import execute
from viewkeeper.engine import jobs
from viewkeeper.errors import InvariantViolated
from viewkeeper.lab import several_views
from viewkeeper.merging.merge_process import MergeProcess
from viewkeeper.simulator.merging.examples import EXAMPLES

Capture = pytest.CaptureFixture[str]
TRANSCRIPTS = Path(__file__).parents[2] / "scenarios" / "mvc"


def told(words: str, capsys: Capture, expected: int = 0) -> Any:
    """The JSON document of a command."""
    code = execute([*shlex.split(words), "--json"])
    out = capsys.readouterr().out
    assert code == expected, out
    return json.loads(out)


@pytest.mark.parametrize(
    ("painting", "lowest"),
    [("complete", "complete"), ("mixed", "strong"), ("convergent", "convergent")],
)
def test_every_view_reaches_its_level(painting: str, lowest: str, capsys: Capture) -> None:
    document = told(f"lab run --views 4 --painting {painting}", capsys)
    assert document["painting"] == painting
    assert sorted(document["views"]) == ["v0", "v1", "v2", "v3"]
    assert sorted(v for group in document["groups"] for v in group) == sorted(document["views"])
    assert lowest in {each["expected_level"] for each in document["levels"].values()}
    assert document["problems"] == []
    assert document["replay"] is None


def test_views_alone_are_complete_and_painting_alone_leaves_their_number_to_the_seed(
    capsys: Capture,
) -> None:
    assert told("lab run --views 2", capsys)["painting"] == "complete"
    assert 2 <= len(told("lab run --painting mixed", capsys)["views"]) <= 6


def test_a_transcript_shows_the_view_update_table(capsys: Capture) -> None:
    words = "lab run --views 3 --painting mixed --seed 2 --transactions 3 --transcript"
    lines = told(words, capsys)["transcript"]
    assert any("REL_1" in line for line in lines)
    assert execute(shlex.split(words)) == 0
    text = capsys.readouterr().out
    assert all(line in text for line in lines)


@pytest.mark.parametrize(
    "words", ["-p sweep", "--variant nested", "--inversions", "--no-fifo", "--search"]
)
def test_what_is_for_one_view_is_refused(words: str, capsys: Capture) -> None:
    error = told(f"lab run --views 3 {words}", capsys, expected=2)["error"]
    assert error["code"] == "does-not-apply"


def test_a_run_of_nothing_is_refused(capsys: Capture) -> None:
    error = told("lab run", capsys, expected=2)["error"]
    assert error["code"] == "command-line"
    assert "--protocol" in error["detail"]
    assert "--views" in error["detail"]


@pytest.fixture
def unmerged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists go to the warehouse as they come."""
    monkeypatch.setattr(jobs, "MergeProcess", partial(MergeProcess, algorithm=AsTheyCome))


WRONG = "lab run --views 4 --painting mixed --transactions 20 --seed {}"


@pytest.mark.usefixtures("unmerged")
def test_a_failure_shows_what_is_wrong_and_ends_with_its_replay(capsys: Capture) -> None:
    seed = next(n for n in range(1, 60) if execute(shlex.split(WRONG.format(n))) == 1)
    capsys.readouterr()
    assert execute(shlex.split(WRONG.format(seed))) == 1
    text = capsys.readouterr().out
    last = text.splitlines()[-1]
    assert last.startswith("viewkeeper lab run --views 4 --painting mixed ")
    assert execute(shlex.split(last)[1:]) == 1
    assert capsys.readouterr().out == text
    document = told(WRONG.format(seed), capsys, expected=1)
    assert document["replay"] == last
    assert document["problems"] if "problems" in document else document["error"]
    shown = told(WRONG.format(seed).replace("run", "show"), capsys, expected=1)
    assert shown["replay"] == last


def test_a_contradiction_is_a_failure_with_a_replay(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def stuck(*_: object, **__: object) -> None:
        raise InvariantViolated("the merge process waits for ever", detail="for v1")

    monkeypatch.setattr(several_views, "simulated_merge", stuck)
    document = told("lab run --views 2", capsys, expected=1)
    assert document["error"]["code"] == "invariant-violated"
    assert execute(shlex.split("lab run --views 2 --transcript")) == 1
    text = capsys.readouterr().out
    assert "waits for ever" in text
    assert text.splitlines()[-1] == document["replay"]


# -- lab show: the tables ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_shown_as_its_transcript_says(name: str, capsys: Capture) -> None:
    assert execute(["lab", "show", f"mvc-{name}"]) == 0
    shown = capsys.readouterr().out
    written = (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8")
    title, _, tables = written.partition("\n\n")
    assert shown.startswith(f"{title} (MVC)\n\n{tables}")


def test_examples_are_listed_and_a_near_miss_is_told(capsys: Capture) -> None:
    listed = {entry["scenario"] for entry in told("lab show", capsys)}
    assert {f"mvc-{name}" for name in EXAMPLES} < listed
    error = told("lab show mvc-exmple-5", capsys, expected=2)["error"]
    assert error["hint"] == "did you mean mvc-example-5?"


def test_tables_are_data_in_json_and_cells_in_the_picture(tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "tables.svg"
    document = told(f"lab show mvc-example-5 --svg {picture}", capsys)
    last = document["entries"][-1]
    assert last["tables"][0]["rows"][0] == {
        "update": 2,
        "colours": ["black", "gray", "gray"],
        "cells": ["(b,0)", "(g,3)", "(g,2)"],
        "waiting": [],
    }
    assert last["commits"] == ["→ commit 2: U_2, U_3 by AL_3^V2, AL_2^V3, AL_3^V3"]
    assert colours_in(picture) == colours_of(document["entries"])


def test_the_tables_of_a_seed_are_those_of_its_run(tmp_path: Path, capsys: Capture) -> None:
    words = "--views 4 --painting mixed --seed 3 --transactions 4"
    run = told(f"lab run {words} --transcript", capsys)
    picture = tmp_path / "tables.svg"
    document = told(f"lab show {words} --svg {picture}", capsys)
    messages = [f"{number:>4}  {e['message']}" for number, e in enumerate(document["entries"], 1)]
    assert messages == [line for line in run["transcript"] if line[:4].strip().isdigit()]
    assert document["levels"] == run["levels"]
    assert colours_in(picture) == colours_of(document["entries"])
    assert execute(shlex.split(f"lab show {words} --svg {picture}")) == 0
    text = capsys.readouterr().out
    assert text.startswith("\n".join(run["transcript"]))
    assert f"The tables are in {picture}" in text
    assert "states    " in text


@pytest.mark.parametrize("words", ["mvc-example-5 --views 3", "mvc-example-5 -p sweep"])
def test_what_an_example_does_not_have_is_refused(words: str, capsys: Capture) -> None:
    assert told(f"lab show {words}", capsys, expected=2)["error"]["code"] == "does-not-apply"


def colours_in(picture: Path) -> list[str]:
    rects = xml.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}rect")
    classes = [rect.get("class", "").split() for rect in rects]
    return [names[1] for names in classes if names[0] == "cell"]


def colours_of(entries: Any) -> list[str]:
    return [
        colour
        for entry in entries
        for table in entry["tables"]
        for row in table["rows"]
        for colour in row["colours"]
    ]
