"""Scenarios as files: what they say, and what is wrong in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewkeeper.algebra import Bag
from viewkeeper.errors import UsageError
from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.kernel.journal import Journal
from viewkeeper.simulator.scenario_file import (
    load_scenario,
    played,
    read_scenario,
    shipped_names,
)
from viewkeeper.simulator.schedule import parse_schedule, parse_step, play, step_text
from viewkeeper.simulator.world import World
from viewkeeper.views.level import Level

SMALL = """
title = "two relations"
protocol = "sweep"
view = "SELECT R.a, S.c FROM s1.R JOIN s2.S ON R.b = S.b"
schedule = '''
commit s1
settle
'''
[relations."s1.R"]
columns = { a = "bigint", b = "string" }
[relations."s2.S"]
columns = { b = "string", c = "decimal(6, 2)" }
rows = [["x", "1.50"], ["NULL", "2"]]
[[transactions.s1]]
R = { insert = [[1, "x"], [2, "NULL"]] }
"""


def figure_5_states(name: str) -> list[list[tuple[tuple[object, ...], int]]]:
    file = load_scenario(name)
    world = World(file.scenario, file.protocol, file.network, journal=Journal())
    assert not isinstance(file.schedule, int)
    play(world, file.schedule)
    return [state.sorted() for state in world.states]


@pytest.mark.parametrize("name", ["sweep-figure-5", "sweep-figure-5-concurrent"])
def test_the_view_goes_through_the_four_states_of_figure_5(name: str) -> None:
    assert figure_5_states(name) == [
        [((7, 8), 2)],
        [((5, 6), 2), ((7, 8), 2)],
        [((5, 6), 2)],
        [((5, 6), 1)],
    ]


def test_without_correction_the_same_arrivals_leave_a_wrong_view() -> None:
    assert figure_5_states("naive-anomaly")[-1] == [((7, 8), 1)]
    anomaly, sweep = load_scenario("naive-anomaly"), load_scenario("sweep-figure-5-concurrent")
    assert played(anomaly).outcome.verdict.level is Level.NONE
    assert played(anomaly, sweep.protocol).outcome.is_good


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_scenario_but_the_anomaly_reaches_its_level(name: str) -> None:
    assert played(load_scenario(name)).outcome.is_good == (name != "naive-anomaly")


def test_a_schedule_of_one_protocol_can_be_played_under_another() -> None:
    run = played(load_scenario("sweep-figure-5-concurrent"), PROTOCOLS["nested-sweep"])
    assert run.outcome.is_good
    assert run.left_out > 0
    assert not [entry for entry in run.journal.entries if entry.kind == "note"]


def test_values_that_toml_does_not_have_are_written_as_text() -> None:
    file = read_scenario("small", SMALL)
    extent = played(file).outcome
    assert extent.is_good
    (relation,) = [rows for name, rows in file.scenario.initial.items() if name.relation == "S"]
    assert isinstance(relation, Bag)
    assert next(row for row, _ in relation.sorted())[0] is None


def test_a_seed_can_stand_for_the_schedule() -> None:
    text = SMALL.replace("schedule = '''\ncommit s1\nsettle\n'''", "seed = 7")
    assert read_scenario("small", text).schedule == 7
    assert played(read_scenario("small", text)).outcome.is_good


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("title =", "titel =", "there is no key titel"),
        ('protocol = "sweep"', 'protocol = "swep"', "there is no protocol swep"),
        ("settle", "sette", "no step: sette"),
        ("settle", "deliver s2", "can't happen: deliver s2"),
        ("commit s1\n", "", "before every transaction is committed"),
        ("[[transactions.s1]]", "[[transactions.s9]]", "does not read source s9"),
        ('"s1.R"]', '"R"]', "does not say its source"),
        ("decimal(6, 2)", "money", "is no scenario"),
        ('"x"]', '"x", 3]', "is no scenario"),
        ("title =", "seed = 1\ntitle =", "a schedule or a seed"),
        ("title =", "title", "is no TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(old: str, new: str, expected: str) -> None:
    assert old in SMALL
    with pytest.raises(UsageError) as caught:
        played(read_scenario("small", SMALL.replace(old, new, 1)))
    assert expected in str(caught.value)


def test_an_unknown_name_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(UsageError) as caught:
        load_scenario("sweep-figure5")
    assert caught.value.hint == "did you mean sweep-figure-5?"


def test_a_file_of_ones_own_is_found_by_its_path(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(SMALL)
    assert load_scenario(str(own)).name == "own"
    with pytest.raises(UsageError, match="can't read"):
        load_scenario(str(tmp_path / "missing.toml"))


@pytest.mark.parametrize(
    "line", ["commit s1", "deliver s1", "deliver s1 2", "answer s1", "answer s1 3", "reveal s1 4"]
)
def test_a_step_is_written_as_it_is_read(line: str) -> None:
    step = parse_step(line)
    assert step_text(step) == line  # type: ignore[arg-type]


@pytest.mark.parametrize("line", ["commit", "deliver s1 0", "answer s1 x", "reveal s1", "jump"])
def test_a_line_that_is_no_step_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="no step"):
        parse_schedule(f"settle\n{line}\n")
