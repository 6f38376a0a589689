"""Rings, MEDWRAP and its rivals in the lab: the same commands, and what only they can tell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from viewkeeper.cli import execute
from viewkeeper.lab.trials import ring_trial
from viewkeeper.protocols.registry import RINGS
from viewkeeper.protocols.ring_machines import RingSystem
from viewkeeper.simulator.rings.run import RingOptions
from viewkeeper.views.definition import RelationName, ViewDefinition

Capture = pytest.CaptureFixture[str]
MULTI_RELATION = ("medwrap", "mre", "simplistic")
FAMILIES = (*RINGS, *MULTI_RELATION)


def told(words: str, capsys: Capture, expected: int = 0) -> Any:
    """The JSON document of a command."""
    code = execute([*shlex.split(words), "--json"])
    out = capsys.readouterr().out
    assert code == expected, out
    return json.loads(out)


@pytest.mark.parametrize("protocol", FAMILIES)
def test_a_run_tells_the_same_fields_as_one_of_sweep(protocol: str, capsys: Capture) -> None:
    sweep = told("lab run -p sweep", capsys)
    document = told(f"lab run -p {protocol}", capsys)
    assert set(sweep) <= set(document)
    assert document["protocol"] == protocol
    assert document["transactions"] == 10
    assert document["sources"] == 3
    assert document["violation"] is None


@pytest.mark.parametrize("protocol", FAMILIES)
@pytest.mark.thorough
def test_the_same_seed_tells_the_same(protocol: str, capsys: Capture) -> None:
    words = f"lab run -p {protocol} --seed 7 --shape any --transcript"
    document = told(words, capsys)
    assert document["transcript"]
    assert told(words, capsys) == document


@pytest.mark.parametrize("protocol", FAMILIES)
@pytest.mark.thorough
def test_a_swarm_runs_them_without_failure(protocol: str, capsys: Capture) -> None:
    document = told(f"lab swarm -p {protocol} --seeds 1..6 --no-fifo --jobs 1", capsys)
    assert document["good"] == document["done"] == 6


@pytest.mark.parametrize("protocol", ["ring", "quiescent-ring"])
def test_rings_tell_their_latency_in_message_delays(protocol: str, capsys: Capture) -> None:
    latency = told(f"lab run -p {protocol} --sources 4", capsys)["latency"]
    # Two turns at most, of one message each in the ring and of two in the star, and those on the way.
    assert 4 <= latency["mean_delays"] <= latency["worst_delays"] <= 4 * 4
    assert execute(["lab", "run", "-p", protocol, "--sources", "4"]) == 0
    assert f"{latency['worst_delays']} at worst" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    ["-p ring-terms", "-p ring --transactions 0", "-p quiescent-ring --variant periodic"],
)
def test_there_is_no_latency_where_it_would_mean_nothing(words: str, capsys: Capture) -> None:
    assert told(f"lab run {words}", capsys)["latency"] is None


def test_only_the_quiescent_ring_sends_no_token_without_a_change(capsys: Capture) -> None:
    words = "lab run --transactions 0 -p"
    assert told(f"{words} quiescent-ring", capsys)["messages"]["messages"] == 0
    assert told(f"{words} ring", capsys)["messages"]["messages"] > 0


def test_one_update_at_a_time_makes_a_ring_complete(capsys: Capture) -> None:
    gathered = told("lab run -p ring", capsys)
    document = told("lab run -p ring --variant one-at-a-time", capsys)
    assert gathered["expected_level"] == "strong"
    assert document["expected_level"] == document["level"] == "complete"
    assert document["states"] > gathered["states"]


def test_medwrap_counts_conflicts_of_both_layers(capsys: Capture) -> None:
    document = told("lab run -p medwrap", capsys)
    assert document["relational_conflicts"] > 0
    assert document["source_conflicts"] > 0
    assert document["relations"] > document["sources"]
    assert execute(["lab", "run", "-p", "medwrap"]) == 0
    shown = f"{document['relational_conflicts']} relational, {document['source_conflicts']} source"
    assert shown in capsys.readouterr().out


def test_the_rivals_run_on_the_same_history(capsys: Capture) -> None:
    runs = [told(f"lab run -p {name} --seed 9 --shape any", capsys) for name in MULTI_RELATION]
    assert len({(run["relations"], run["transactions"], run["states"]) for run in runs}) == 1


def test_wrappers_that_batch_and_a_nested_mediator_promise_less(capsys: Capture) -> None:
    for variant in ("batched", "nested"):
        document = told(f"lab run -p mre --variant {variant}", capsys)
        assert document["expected_level"] == "strong"
        assert document["variants"] == [variant]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("run -p ring --inversions", "does-not-apply"),
        ("run -p ring --variant periodic", "unknown-variant"),
        ("run -p sweep --variant nested", "unknown-variant"),
        ("run -p simplistic --variant nested", "unknown-variant"),
        ("run -p quiescent-ring --variant periodic --variant on-query", "variants-clash"),
        ("run -p medwrap --variant queue-order --no-fifo", "assumption-broken"),
        ("run -p medwrap --sources 9", "too-many-sources"),
        ("run -p quiescent", "unknown-protocol"),
        ("explore -p ring", "not-explored"),
        ("explore -p mre", "not-explored"),
    ],
)
def test_what_does_not_fit_is_refused(words: str, code: str, capsys: Capture) -> None:
    assert told(f"lab {words}", capsys, expected=2)["error"]["code"] == code


def test_medwrap_as_a_view_manager_is_explored(capsys: Capture) -> None:
    document = told("lab explore -p medwrap --sources 2 --transactions 2", capsys)
    assert document["violations"] == 0
    assert document["interleavings"] > 10


class ForgetfulRing(RingOptions):
    """A broken ring: its warehouse installs nothing."""

    def system(
        self, definition: ViewDefinition, extent: Any, contents: Mapping[RelationName, Any]
    ) -> RingSystem:
        system = super().system(definition, extent, contents)
        system.warehouse.step = lambda event: ()  # type: ignore[method-assign]
        return system


def test_a_broken_ring_is_a_failure_that_its_last_line_replays(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(ring_trial, "RingOptions", ForgetfulRing)
    words = "lab run -p ring --variant one-at-a-time --seed 3"
    assert execute(shlex.split(words)) == 1
    out = capsys.readouterr().out
    last = out.splitlines()[-1]
    assert last.startswith("viewkeeper lab run --protocol ring ")
    assert "--variant one-at-a-time" in last
    assert execute(shlex.split(last)[1:]) == 1
    assert capsys.readouterr().out == out
    document = told(f"{words}", capsys, expected=1)
    assert document["replay"] == last
