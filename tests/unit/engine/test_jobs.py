"""Rows and jobs: who begins what, whose list covers which rows, and what is kept for whom."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.engine.integrator import Arrival
from viewkeeper.engine.jobs import Jobs
from viewkeeper.engine.limits import Limits
from viewkeeper.engine.view import View
from viewkeeper.simulator.engine.sources import START
from viewkeeper.sources.interface import SourceTransaction
from viewkeeper.sql.parser import parse_view
from viewkeeper.timeline import Transaction
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.views.level import Level

CATALOG = Catalog(
    tuple(CatalogRelation(RelationName(s, "r"), Schema.of(k=INTEGER)) for s in ("s", "t"))
)


def view(name: str, source: str) -> View:
    text = f"SELECT k FROM {source}.r"
    return View(parse_view(name, text, CATALOG), text)


VIEWS = {"A": view("A", "s"), "B": view("B", "t")}


class Group:
    """Jobs over two views, with rows of one transaction each."""

    def __init__(self, **limits) -> None:
        self.jobs = Jobs(VIEWS, 1, limits=Limits(**limits))
        self.numbers = 0

    def close(self, source: str, *concerned: str):
        self.numbers += 1
        n = self.numbers
        origin = SourceTransaction(source, {"n": n}, n, START, (), None)
        arrival = Arrival(n, origin, Transaction(source, n, ()), 10)
        return self.jobs.close((arrival,), concerned, {source: n})[0]

    def start(self, *rows):
        return [
            (job.rows, [a.number for a in job.batch], job.concerned, job.told)
            for job in self.jobs.start(rows)
        ]

    def commit(self, serial: int, view: str) -> tuple[int, ...]:
        (commit,) = self.jobs.computed(serial, view, view)
        self.jobs.committed(commit.rows, commit.number)
        return commit.rows


def test_all_are_told_of_a_row_and_those_that_it_concerns_compute_it():
    group = Group()
    assert group.start(group.close("s", "A")) == [((1,), [1], ("A",), ("A", "B"))]
    assert group.jobs.is_at_work
    assert group.commit(1, "A") == (1,)
    assert not group.jobs.is_at_work
    assert not group.jobs.by_row


def test_a_view_that_waited_takes_its_rows_in_one_list():
    group = Group()
    waited = [group.close("s", "A"), group.close("t", "B"), group.close("s", "A")]
    assert group.start(waited[1]) == [((2,), [1, 2], ("B",), ("B",))]
    assert group.commit(1, "B") == (2,)
    assert group.jobs.batches == [*waited[0].batch, *waited[2].batch]
    # The row between does not concern it, but managers take transactions in the order of arrival.
    assert group.start(waited[0], waited[2]) == [((1, 3), [1, 2, 3], ("A",), ("A",))]
    assert group.commit(2, "A") == (1, 3)
    assert not group.jobs.batches


def test_views_with_different_rows_have_jobs_of_their_own():
    group = Group()
    one, both = group.close("s", "A"), group.close("t", "A", "B")
    assert group.start(one, both) == [
        ((1, 2), [1, 2], ("A",), ("A",)),
        ((2,), [1, 2], ("B",), ("B",)),
    ]
    assert group.jobs.computed(2, "B", "b") == ()
    (commit,) = group.jobs.computed(1, "A", "a")
    assert commit.rows == (1, 2)
    assert group.jobs.shown_with(commit.rows) == (1, 2)


def test_committed_rows_are_kept_for_views_that_were_not_told():
    group = Group(kept_batches_max=2)
    held = group.close("s", "A")
    for serial in (1, 2, 3):
        group.start(group.close("t", "B"))
        group.commit(serial, "B")
    assert group.jobs.kept_rows == 30
    # It can't be told of them before the row that waits for it.
    assert not group.jobs.must_tell
    group.start(held)
    group.commit(4, "A")
    assert group.jobs.must_tell
    assert group.start() == [((), [2, 3, 4], (), ("A",))]
    assert group.jobs.kept_rows == 0


def test_a_view_at_work_is_told_of_other_rows_later():
    group = Group()
    group.start(group.close("s", "A"))
    assert group.start(group.close("t", "B")) == [((2,), [2], ("B",), ("B",))]
    assert group.jobs.is_up_to_date("B")
    assert not group.jobs.is_up_to_date("A")
    assert group.start(group.close("s", "A")) == [((3,), [2, 3], ("A",), ("A",))]


def test_lists_over_several_rows_leave_a_group_complete():
    assert Group().jobs.level is Level.COMPLETE


@pytest.mark.parametrize("serial", [0, 1, 2])
def test_a_job_that_was_given_up_is_not_known(serial):
    jobs = Jobs(VIEWS, 2)
    assert jobs.is_known(serial) == (serial >= 2)
    assert jobs.computed(serial, "A", None) == ()
