"""``lab run --views``: several views under a painting algorithm."""

from __future__ import annotations

import json
import shlex
from functools import partial
from typing import Any

import pytest

from viewkeeper.cli import execute
from viewkeeper.cli.lab import several_views
from viewkeeper.errors import InvariantViolated
from viewkeeper.merging.pass_through import PassThrough
from viewkeeper.simulator.merge_run import MergeOptions

Capture = pytest.CaptureFixture[str]


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
