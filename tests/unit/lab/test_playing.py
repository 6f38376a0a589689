"""What the lab page is told: steps, queues and states that fit each other, and the checker's verdict."""

from __future__ import annotations

import pytest

from viewkeeper.lab.comparisons.plots import staleness
from viewkeeper.lab.painting import painted_example, painted_run
from viewkeeper.lab.playing import played_scenario, played_trial
from viewkeeper.protocols.registry import PROTOCOLS, TRIED
from viewkeeper.simulator.merging.examples import EXAMPLES
from viewkeeper.simulator.merging.run import Painting
from viewkeeper.simulator.scenario_file import shipped_names

# SWEEP, section 5.2: the four states of Figure 5, rows with their counts.
FIGURE_5 = [
    {("7", "8"): 2},
    {("5", "6"): 2, ("7", "8"): 2},
    {("5", "6"): 2},
    {("5", "6"): 1},
]


def states(run: dict) -> list[dict]:
    return [
        {tuple(row["values"]): row["count"] for row in state["extent"]["rows"]}
        for state in run["states_shown"]
    ]


def test_figure_5_goes_through_its_four_states():
    run = played_scenario("sweep-figure-5-concurrent", None)
    assert states(run) == FIGURE_5
    assert (run["level"], run["is_good"]) == ("complete", True)


def test_the_same_without_correction_is_judged_wrong():
    run = played_scenario("sweep-figure-5-concurrent", "naive")
    assert states(run)[-1] != FIGURE_5[-1]
    assert not run["is_good"]
    assert run["violation"]["views"][0]["too_many"]


@pytest.mark.parametrize("name", shipped_names())
def test_messages_that_leave_arrive(name):
    run = played_scenario(name, None)
    assert run["steps"][-1]["on_the_way"] == []
    assert any(step["on_the_way"] for step in run["steps"])
    for before, after in zip(run["steps"], run["steps"][1:], strict=False):
        sent, received = bool(after["sends"]), bool(after["receives"])
        grown = len(after["on_the_way"]) - len(before["on_the_way"])
        assert grown == sent - received


@pytest.mark.parametrize("protocol", list(TRIED))
def test_every_protocol_can_be_stepped_through(protocol):
    run = played_trial(protocol, 1, 3, 4)
    assert run["is_good"] or protocol == "naive"
    assert len(run["states_shown"]) == run["states"]
    places = {step["place"] for step in run["steps"]}
    assert places <= set(run["lanes"])
    for before, after in zip(run["states_shown"], run["states_shown"][1:], strict=False):
        change = run["steps"][after["step"]]["change"]["rows"]
        reached = {tuple(r["values"]): r["count"] for r in before["extent"]["rows"]}
        for row in change:
            key = tuple(row["values"])
            reached[key] = reached.get(key, 0) + row["count"]
        expected = {tuple(r["values"]): r["count"] for r in after["extent"]["rows"]}
        assert {key: count for key, count in reached.items() if count} == expected


@pytest.mark.parametrize("protocol", TRIED)
def test_in_every_world_messages_that_leave_arrive(protocol):
    run = played_trial(protocol, 2, 3, 4)
    labels = {message["label"] for message in run["steps"][-1]["on_the_way"]}
    # Only the token of a basic ring moves for ever.
    assert labels <= ({"token", "token of term 2"} if protocol in ("ring", "ring-terms") else set())
    assert sum(bool(step["receives"]) for step in run["steps"]) > 4


def test_a_ring_shows_its_token():
    run = played_trial("ring", 1, 3, 4)
    tokens = [step["token"] for step in run["steps"] if step["token"]]
    assert {token["at"] for token in tokens} >= {"s1", "s2", "s3"}
    assert all(set(token["carries"]) == {"s1", "s2", "s3"} for token in tokens)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_papers_examples_are_painted(name):
    run = painted_example(name)
    colours = {
        cell["colour"]
        for step in run["steps"]
        for table in step["tables"]
        for row in table["rows"]
        for cell in row["cells"]
    }
    assert colours <= {"white", "red", "gray", "black"}
    if name == "example-3":
        assert colours == {"white", "red", "gray", "black"}


@pytest.mark.parametrize("painting", Painting)
def test_random_paintings_are_judged(painting):
    run = painted_run(painting.value, 3, 4)
    assert run["is_good"]
    assert any(step["commits"] for step in run["steps"])


def test_a_protocol_that_waits_for_quiet_is_staler():
    assert staleness(PROTOCOLS["sweep"], 4) < staleness(PROTOCOLS["strobe"], 4)
