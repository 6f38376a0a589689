"""``lab run --views`` and ``lab show``: several views under a painting algorithm."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as xml
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from viewkeeper.cli import execute
from viewkeeper.errors import InvariantViolated
from viewkeeper.lab import several_views
from viewkeeper.merging.pass_through import PassThrough
from viewkeeper.simulator.merging.examples import EXAMPLES
from viewkeeper.simulator.merging.run import MergeOptions

Capture = pytest.CaptureFixture[str]
TRANSCRIPTS = Path(__file__).parents[2] / "scenarios" / "mvc"


def told(words: str, capsys: Capture, expected: int = 0) -> Any:
    """The JSON document of a command."""
    code = execute([*shlex.split(words), "--json"])
    out = capsys.readouterr().out
    assert code == expected, out
    return json.loads(out)


@pytest.mark.parametrize(
    ("painting", "lowest"), [("spa", "complete"), ("pa", "strong"), ("complete-n", "strong")]
)
def test_every_group_of_views_reaches_its_level(
    painting: str, lowest: str, capsys: Capture
) -> None:
    words = f"lab run --views 4 --painting {painting} --no-fifo --inversions --search"
    document = told(words, capsys)
    assert document["painting"] == painting
    assert len(document["views"]) == 4
    assert sorted(v for group in document["groups"] for v in group["views"]) == [
        "v1",
        "v2",
        "v3",
        "v4",
    ]
    assert lowest in {group["expected_level"] for group in document["groups"]}
    assert document["replay"] is None
    assert (document["fifo"], document["inversions"]) == (False, True)


def test_views_alone_means_spa_and_painting_alone_leaves_their_number_to_the_seed(
    capsys: Capture,
) -> None:
    assert told("lab run --views 2", capsys)["painting"] == "spa"
    assert 2 <= len(told("lab run --painting pa", capsys)["views"]) <= 6


def test_a_transcript_shows_the_view_update_table(capsys: Capture) -> None:
    words = "lab run --views 3 --painting pa --seed 2 --transactions 3 --transcript"
    lines = told(words, capsys)["transcript"]
    assert any("REL_1" in line for line in lines)
    assert execute(shlex.split(words)) == 0
    text = capsys.readouterr().out
    assert all(line in text for line in lines)


@pytest.mark.parametrize("words", ["-p sweep", "--variant nested"])
def test_what_is_for_one_view_is_refused(words: str, capsys: Capture) -> None:
    error = told(f"lab run --views 3 {words}", capsys, expected=2)["error"]
    assert error["code"] == "does-not-apply"


def test_a_run_of_nothing_is_refused(capsys: Capture) -> None:
    error = told("lab run", capsys, expected=2)["error"]
    assert error["code"] == "command-line"
    assert "--protocol" in error["detail"]
    assert "--views" in error["detail"]


def test_a_failure_shows_a_witness_and_ends_with_its_replay(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    unmerged = partial(MergeOptions, choose=lambda promises, table: PassThrough(table))
    monkeypatch.setattr(several_views, "MergeOptions", unmerged)
    words = "lab run --views 4 --seed 1 --no-fifo"
    assert execute(shlex.split(words)) == 1
    text = capsys.readouterr().out
    assert "is the view at no cut" in text
    last = text.splitlines()[-1]
    assert last.startswith("viewkeeper lab run --views 4 --painting spa ")
    assert execute(shlex.split(last)[1:]) == 1
    assert capsys.readouterr().out == text
    document = told(words, capsys, expected=1)
    assert document["replay"] == last
    assert any(group["violation"] for group in document["groups"])


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
    words = "--views 4 --painting pa --seed 3 --transactions 4 --no-fifo --inversions"
    run = told(f"lab run {words} --transcript", capsys)
    picture = tmp_path / "tables.svg"
    document = told(f"lab show {words} --svg {picture}", capsys)
    messages = [f"{number:>4}  {e['message']}" for number, e in enumerate(document["entries"], 1)]
    assert messages == [line for line in run["transcript"] if line[:4].strip().isdigit()]
    assert document["groups"] == run["groups"]
    assert colours_in(picture) == colours_of(document["entries"])
    assert execute(shlex.split(f"lab show {words} --svg {picture}")) == 0
    text = capsys.readouterr().out
    assert text.startswith("\n".join(run["transcript"]))
    assert f"The tables are in {picture}" in text
    assert "level     " in text


def test_a_seed_that_misses_its_level_fails_when_it_is_shown_too(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    unmerged = partial(MergeOptions, choose=lambda promises, table: PassThrough(table))
    monkeypatch.setattr(several_views, "MergeOptions", unmerged)
    document = told("lab show --views 4 --seed 1 --no-fifo", capsys, expected=1)
    assert document["replay"].startswith("viewkeeper lab run --views 4")


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
