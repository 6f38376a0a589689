"""The lab's commands, as people and programs use them."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from viewkeeper.cli import execute
from viewkeeper.consistency import checker
from viewkeeper.lab import swarming
from viewkeeper.protocols.messages import Action, AnswerArrived
from viewkeeper.protocols.registry import PROTOCOLS, TRIED, Registered
from viewkeeper.protocols.sweep import Sweep

Capture = pytest.CaptureFixture[str]


class Forgetful(Sweep):
    """A broken protocol that loses its answers: it waits for ever."""

    name = "forgetful"

    def answer_arrived(self, asked: Any, answer: AnswerArrived) -> tuple[Action, ...]:
        return ()


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(PROTOCOLS, "forgetful", Forgetful)
    monkeypatch.setitem(TRIED, "forgetful", Registered(Forgetful))
    return "forgetful"


def told(words: str, capsys: Capture, expected: int = 0) -> Any:
    """The JSON document of a command."""
    code = execute([*shlex.split(words), "--json"])
    out = capsys.readouterr().out
    assert code == expected, out
    return json.loads(out)


# -- run --------------------------------------------------------------------------------------------


def test_sweep_asks_four_queries_per_transaction_over_five_sources(capsys: Capture) -> None:
    document = told("lab run --protocol sweep --sources 5", capsys)
    assert document["queries_per_transaction"] == 4.0
    assert document["sources"] == 5
    assert document["transactions"] == 10
    assert document["level"] == document["expected_level"] == "complete"
    assert document["states"] == 11
    assert {"notifications", "queries", "answers", "rows"} <= set(document["messages"])
    assert document["violation"] is None
    assert document["replay"] is None


@pytest.mark.parametrize("protocol", sorted(set(TRIED) - {"naive"}))
def test_every_protocol_runs_in_a_scenario_made_for_it(protocol: str, capsys: Capture) -> None:
    document = told(f"lab run -p {protocol} --seed 5 --search", capsys)
    assert document["protocol"] == protocol
    assert document["violation"] is None


def test_a_run_below_its_level_fails_and_says_how_to_replay_it(capsys: Capture) -> None:
    document = told("lab run -p naive --seed 1 --sources 4 --no-fifo", capsys, expected=1)
    assert document["violation"]["views"]
    words = shlex.split(document["replay"])
    assert words[0] == "viewkeeper"
    assert told(shlex.join(words[1:]), capsys, expected=1) == document


def test_the_last_line_of_a_failure_is_the_command_that_replays_it(capsys: Capture) -> None:
    assert execute(["lab", "run", "-p", "naive", "--seed", "4"]) == 1
    text = capsys.readouterr().out
    assert "none (expected complete)" in text
    last = text.splitlines()[-1]
    assert last.startswith("viewkeeper lab run --protocol naive ")
    assert execute(shlex.split(last)[1:]) == 1
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("words", "assumption"),
    [
        ("-p eca --no-fifo", "one FIFO channel"),
        ("-p strobe --inversions", "reflect every change"),
        ("-p c-strobe --inversions", "reflect every change"),
    ],
)
def test_a_network_that_breaks_an_assumption_is_refused_unless_one_insists(
    words: str, assumption: str, capsys: Capture
) -> None:
    error = told(f"lab run {words}", capsys, expected=2)["error"]
    assert error["code"] == "assumption-broken"
    assert assumption in error["detail"]
    assert execute(shlex.split(f"lab run {words} --beyond-assumptions --transactions 0")) == 0


def test_a_protocol_that_waits_for_ever_is_a_failure_with_a_replay(
    forgetful: str, capsys: Capture
) -> None:
    document = told(f"lab run -p {forgetful}", capsys, expected=1)
    assert document["error"]["code"] == "invariant-violated"
    assert document["replay"].startswith("viewkeeper lab run --protocol forgetful")
    assert execute(["lab", "run", "-p", forgetful]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == document["replay"]


def test_exploration_of_a_protocol_that_waits_for_ever_is_a_failure_with_a_replay(
    forgetful: str, capsys: Capture
) -> None:
    assert execute(["lab", "explore", "-p", forgetful, "--transactions", "1"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("viewkeeper lab explore --protocol forgetful")


def test_a_search_that_would_take_too_long_is_undecided(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(checker, "CUTS_SEARCHED_MAX", 3)
    error = told("lab run -p recompute --seed 2 --search", capsys, expected=3)["error"]
    assert error["code"] == "too-many-cuts"


def test_a_transcript_shows_every_step(capsys: Capture) -> None:
    document = told("lab run -p sweep --transactions 2 --transcript", capsys)
    assert len([line for line in document["transcript"] if "install" in line]) == 2


# -- explore and swarm ------------------------------------------------------------------------------


def test_exploration_counts_interleavings_and_finds_no_violation_in_sweep(capsys: Capture) -> None:
    document = told("lab explore -p sweep --sources 2 --transactions 2", capsys)
    assert document["interleavings"] > 10
    assert document["levels"] == {"complete": document["histories"]}
    assert document["violations"] == 0
    assert document["schedule"] == []


def test_exploration_shows_the_schedule_that_breaks_naive(capsys: Capture) -> None:
    words = "lab explore -p naive --sources 2 --transactions 2"
    document = told(words, capsys, expected=1)
    assert document["violations"] > 0
    assert document["schedule"][0].startswith("commit ")
    assert document["replay"].startswith("viewkeeper lab explore --protocol naive")
    assert execute(shlex.split(words)) == 1
    assert capsys.readouterr().out.splitlines()[-1] == document["replay"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_swarm_names_the_first_failing_seed(jobs: int, capsys: Capture) -> None:
    words = f"lab swarm -p naive --seeds 1..24 --transactions 6 --jobs {jobs}"
    document = told(words, capsys, expected=1)
    assert document["done"] == 24
    assert document["good"] + document["failed"] == 24
    first = document["first_failure"]
    for seed in range(1, first["seed"]):
        assert (
            execute(shlex.split(f"lab run -p naive --seed {seed} --transactions 6 --shape any"))
            == 0
        )
    capsys.readouterr()
    assert (
        told(shlex.join(shlex.split(first["replay"])[1:]), capsys, expected=1)["seed"]
        == (first["seed"])
    )


def test_a_swarm_without_failure_exits_with_0(capsys: Capture) -> None:
    assert execute(shlex.split("lab swarm -p sweep --seeds 3..8 --inversions --no-fifo")) == 0
    assert "6 of 6 seeds of sweep: 6 complete" in capsys.readouterr().out


def test_a_swarm_can_stop_at_its_first_failure(capsys: Capture) -> None:
    words = "lab swarm -p naive --seeds 1..500 --jobs 1 --fail-fast"
    document = told(words, capsys, expected=1)
    assert document["failed"] == 1
    assert document["done"] == document["first_failure"]["seed"]


def test_a_swarm_counts_a_protocol_that_gets_stuck(forgetful: str, capsys: Capture) -> None:
    document = told(f"lab swarm -p {forgetful} --seeds 1..3 --jobs 1", capsys, expected=1)
    assert document["levels"] == {"stuck": 3}
    assert "waits for ever" in document["first_failure"]["problem"]


def test_a_swarm_that_can_not_decide_exits_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(checker, "CUTS_SEARCHED_MAX", 3)
    document = told("lab swarm -p recompute --seeds 1..4 --jobs 1 --search", capsys, expected=3)
    assert document["undecided"] == document["levels"]["undecided"] > 0


def test_an_interrupted_swarm_tells_what_was_done(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def two_then_ctrl_c(trial: swarming.Trial, *_: object) -> Iterator[swarming.SeedResult]:
        yield swarming.judged_seed(trial, 1)
        yield swarming.judged_seed(trial, 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(swarming, "results", two_then_ctrl_c)
    document = told("lab swarm -p sweep --seeds 1..1000", capsys, expected=130)
    assert document["interrupted"] is True
    assert document["done"] == 2


@pytest.mark.parametrize("seeds", ["", "x", "5..1", "1...3", "-1..3"])
def test_seeds_that_are_no_range_are_refused(seeds: str, capsys: Capture) -> None:
    error = told(f"lab swarm -p sweep --seeds '{seeds}'", capsys, expected=2)["error"]
    assert error["code"] in {"wrong-seeds", "command-line"}


def test_a_single_seed_is_a_range_too() -> None:
    assert list(swarming.parse_seeds("7")) == [7]
    assert list(swarming.parse_seeds("7..9")) == [7, 8, 9]


# -- protocols and show ----------------------------------------------------------------------------


def test_all_protocols_are_listed_with_what_they_assume(capsys: Capture) -> None:
    listed = {entry["name"]: entry for entry in told("lab protocols", capsys)}
    assert list(listed) == list(TRIED)
    assert set(PROTOCOLS) < set(listed)
    assert listed["eca"]["assumes"]["one_source"] is True
    assert execute(["lab", "protocols"]) == 0
    assert all(name in capsys.readouterr().out for name in ["parallel-sweep"])


def test_show_alone_lists_the_scenarios(capsys: Capture) -> None:
    assert "sweep-figure-5" in {entry["scenario"] for entry in told("lab show", capsys)}
    assert execute(["lab", "show"]) == 0
    assert "naive-anomaly" in capsys.readouterr().out


def test_show_draws_the_chart_and_the_file(tmp_path: Path, capsys: Capture) -> None:
    chart = tmp_path / "chart.svg"
    assert execute(["lab", "show", "sweep-figure-5-concurrent", "--svg", str(chart)]) == 0
    out = capsys.readouterr().out
    assert "◀─?1" in out
    assert "V is {(5, 6)[2], (7, 8)[2]}" in out
    assert max(len(line) for line in out.splitlines() if "│" in line) <= 100
    assert xml.parse(chart).getroot().tag.endswith("svg")


def test_show_tells_what_the_anomaly_got_wrong_and_is_still_good(capsys: Capture) -> None:
    document = told("lab show naive-anomaly", capsys)
    assert document["is_good"] is False
    assert document["violation"]["state"] == 1
    assert told("lab show naive-anomaly -p sweep", capsys)["is_good"] is True


def test_a_file_that_can_not_be_written_is_told(tmp_path: Path, capsys: Capture) -> None:
    missing = tmp_path / "no" / "chart.svg"
    error = told(f"lab show inversion --svg {missing}", capsys, expected=2)["error"]
    assert error["code"] == "can-not-write"
