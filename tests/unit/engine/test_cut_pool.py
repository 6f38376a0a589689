"""A group's cuts: opened one at a time, used once the feeds have passed them, and let go in every other case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unit.engine.small_group import SmallGroup
from viewkeeper.algebra.types import STRING, Schema
from viewkeeper.engine import messages as out
from viewkeeper.engine.cuts import Purpose, SharedCuts
from viewkeeper.simulator.engine.sources import position


@pytest.fixture
def group() -> SmallGroup:
    return SmallGroup()


def ask_nothing(*_: object) -> None:
    """No question in advance."""


def released(group: SmallGroup) -> list[int]:
    return [action.ticket for action in group.done(out.ReleaseCuts)]


def test_cuts_are_usable_once_every_feed_has_passed_them(group):
    group.write("s")
    group.write("t")
    group.open()
    for behind in ("s", "t"):
        assert group.cuts.passed(0.0, ask_nothing) is None
        assert group.cuts.waits_for_bounds
        group.deliver(behind)
    found = group.cuts.passed(0.0, ask_nothing)
    assert found is not None
    assert found.snapshots.keys() == {"s", "t"}
    assert group.cuts.opening is None
    assert group.state.error is None


def test_a_source_that_only_watched_relations_are_of_is_not_opened():
    group = SmallGroup({"A": "SELECT k FROM s.r"})
    assert group.open().relations == {"s": ("r",)}


def test_cuts_that_were_given_up_are_released_when_they_open(group):
    group.cuts.open(Purpose.JOB, ())
    (first,) = group.done(out.OpenCuts)
    group.cuts.fail()
    second = group.open()
    assert first.ticket != second.ticket
    group.cuts.take(out.CutsOpened(first.ticket, group.snapshots()), 0.0)
    assert released(group) == [first.ticket]
    assert group.cuts.opening.ticket == second.ticket


def test_dropped_cuts_are_released_if_they_are_open(group):
    group.cuts.open(Purpose.JOB, ())
    group.cuts.drop()
    assert released(group) == []
    opened = group.open()
    group.cuts.drop()
    assert released(group) == [opened.ticket]
    assert group.cuts.opening is None


def test_an_error_elsewhere_leaves_open_cuts_alone(group):
    group.open()
    group.cuts.fail()
    assert group.cuts.waits_for_bounds


def test_a_cut_behind_what_the_views_show_is_an_error(group):
    group.state.reached["s"] = position(1)
    group.open()
    assert group.state.error.code == "cut-behind"


def test_a_cut_of_another_life_of_the_server_is_an_error(group):
    group.sources["t"].restart()
    group.open()
    assert group.cuts.passed(0.0, ask_nothing) is None
    assert group.state.error.code == "source-restarted"
    assert group.state.error.source == "t"


def test_a_column_of_another_type_is_an_error(group):
    group.open()
    cut = group.cuts.opening.snapshots["s"]
    cut.schemas["r"] = replace(cut.schemas["r"], schema=Schema.of(k=STRING, name=STRING))
    assert group.cuts.passed(0.0, ask_nothing) is None
    assert group.state.error.code == "broken-query"


def test_a_feed_that_stands_still_is_an_error_and_one_that_moves_is_not(group):
    for _ in range(2):
        group.write("s")
    group.open()
    assert group.cuts.passed(0.0, ask_nothing) is None
    group.state.intake.fed["s"] = position(1)
    assert group.cuts.passed(29.0, ask_nothing) is None
    assert group.cuts.passed(58.0, ask_nothing) is None
    assert group.state.error is None
    assert group.cuts.passed(59.5, ask_nothing) is None
    assert group.state.error.code == "feed-behind"


@pytest.mark.parametrize(("purpose", "questions"), [(Purpose.JOB, 1), (Purpose.FILL, 0)])
def test_a_slow_feed_has_questions_asked_in_advance_once_and_for_jobs_only(
    group, purpose, questions
):
    asked = []
    group.write("s")
    ticket = group.open(purpose).ticket
    for now in (0.0, 1.0, 2.0):
        group.cuts.passed(now, lambda *given: asked.append(given))
    assert [(number, at) for number, _, at in asked] == [(ticket, 1.0)] * questions


def test_the_machine_is_woken_when_a_feed_must_have_passed(group):
    group.write("s")
    group.open()
    group.cuts.passed(0.0, ask_nothing)
    limits = group.state.limits
    assert group.state.wake_at == limits.soon_seconds < limits.bound_wait_seconds


def test_kept_cuts_are_for_one_job_and_not_for_another_life(group):
    group.cuts.common = SharedCuts(7, group.snapshots(), 10.0)
    assert group.cuts.take_common().ticket == 7
    assert group.cuts.take_common() is None
    assert released(group) == []
    group.cuts.common = SharedCuts(8, group.snapshots(), 10.0)
    group.sources["s"].restart()
    group.deliver("s")
    assert group.cuts.take_common() is None
    assert released(group) == [8]


def test_kept_cuts_are_released_once(group):
    group.cuts.common = SharedCuts(7, group.snapshots(), 10.0)
    group.cuts.release_common()
    group.cuts.release_common()
    assert released(group) == [7]
