"""A group's jobs: batches on their way through the view managers, and out as epochs.

A closed batch is a row of the view update table, or several: neighbours in the order of arrival that must wait are a
row, and those that need not wait are another. A row is begun by all views that it concerns at once. A view that could
not begin for a while takes all rows that wait for it in one job, and its action list covers them all. What the merge
process releases is committed, and nothing else.

A view manager takes transactions in the order of arrival, without a gap. So a job's batch also holds the rows in
between that do not concern its views; they may be committed by then. They are kept until every view is past them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from viewkeeper.engine.held_rows import Held
from viewkeeper.engine.integrator import Arrival, transactions_in
from viewkeeper.engine.limits import Limits
from viewkeeper.engine.view import View
from viewkeeper.merging.commit_order import ORDERS
from viewkeeper.merging.merge_process import MergeProcess
from viewkeeper.merging.messages import (
    ActionList,
    ActionListArrived,
    CommitTransaction,
    RelevanceArrived,
    WarehouseCommitted,
)
from viewkeeper.merging.rows import Colour
from viewkeeper.views.level import Level


@dataclass(frozen=True, eq=False)
class BatchRow:
    """Transactions that a row of the view update table stands for, and the views that they concern."""

    number: int
    batch: tuple[Arrival, ...]
    concerned: tuple[str, ...]
    # The last transaction of each source in this row or an earlier one.
    settled: Mapping[str, int]

    @property
    def transactions(self) -> int:
        return transactions_in(self.batch)

    @property
    def rows(self) -> int:
        return sum(arrival.rows for arrival in self.batch)

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(sorted({arrival.origin.source for arrival in self.batch}))


@dataclass(frozen=True, eq=False)
class Job:
    """One computation for some views. ``serial`` names it once and for all.

    The lists of its views cover the same ``rows``, so that they are committed together. Views that it does not
    concern get its batch.
    """

    serial: int
    rows: tuple[int, ...]
    batch: tuple[Arrival, ...]
    concerned: tuple[str, ...]
    told: tuple[str, ...]
    settled: Mapping[str, int]
    # The views whose part has not been computed.
    at_work: set[str] = field(default_factory=set)


class Jobs:
    """The rows and jobs that are not committed, and the merge process that releases them."""

    def __init__(
        self,
        views: Mapping[str, View],
        first_serial: int,
        apart: Iterable[str] = (),
        limits: Limits = Limits(),  # noqa: B008  (immutable)
    ) -> None:
        """What waits for the views ``apart``, which are periodic, never shares a row with what need not."""
        self.merge = MergeProcess(views, ORDERS[limits.commits]())
        # What the views show: lists that cover several rows still have every transaction of a complete view.
        self.level = min((view.choice.level for view in views.values()), default=Level.COMPLETE)
        self.by_row: dict[int, BatchRow] = {}
        self._apart = tuple(apart)
        self._limits = limits
        # Rows that no view has begun, in order; and for each view, those of them that concern it.
        self.waiting: dict[int, BatchRow] = {}
        self._waiting_of: dict[str, deque[int]] = {view: deque() for view in views}
        self._first_serial = self.next_serial = first_serial
        self._open: dict[int, Job] = {}
        self._last = 0
        # The last row that each view got, and all rows that some view did not get.
        self._passed = dict.fromkeys(views, 0)
        self._kept: dict[int, BatchRow] = {}
        # How many changed rows are kept though they are committed.
        self.kept_rows = 0
        self._looked: tuple[Held, tuple[BatchRow, ...]] | None = None

    @property
    def batches(self) -> list[Arrival]:
        """All that is not committed, in order."""
        return [arrival for row in self.by_row.values() for arrival in row.batch]

    @property
    def is_at_work(self) -> bool:
        """Whether some view's part of a job is being computed."""
        return any(job.at_work for job in self._open.values())

    def begun(self) -> set[str]:
        """The views that have begun a job which is not committed."""
        return {view for job in self._open.values() for view in job.concerned}

    def open_jobs(self, view: str) -> int:
        """How many jobs of a view are not committed."""
        return sum(view in job.concerned for job in self._open.values())

    # -- rows --------------------------------------------------------------------------------------

    def close(
        self, batch: tuple[Arrival, ...], concerned: tuple[str, ...], settled: Mapping[str, int]
    ) -> tuple[BatchRow, tuple[CommitTransaction, ...]]:
        """A new row, and what can be committed with it known."""
        self._last += 1
        row = BatchRow(self._last, batch, concerned, settled)
        self._kept[row.number] = row
        if concerned:
            self.by_row[row.number] = self.waiting[row.number] = row
            for view in concerned:
                self._waiting_of[view].append(row.number)
        else:
            self.kept_rows += row.rows
        self._looked = None
        return row, self.merge.step(RelevanceArrived(row.number, concerned, row.sources))

    def look(self, blocked: frozenset[str]) -> tuple[Held, tuple[BatchRow, ...]]:
        """Of the rows that wait, those that must go on waiting while some views can't begin, and the others."""
        if self._looked is None or self._looked[0].blocked != blocked:
            held = Held(blocked, self._apart)
            free = [
                row
                for row in self.waiting.values()
                if blocked.isdisjoint(held.take(row.concerned, row.sources))
            ]
            self._looked = held, tuple(free)
        return self._looked

    def waits(self, view: str) -> bool:
        """Whether a row that concerns a view has not been begun."""
        return bool(self._waiting_of[view])

    def is_up_to_date(self, view: str) -> bool:
        """Whether a view got every row."""
        return self._passed[view] == self._last

    # -- jobs --------------------------------------------------------------------------------------

    def start(self, rows: Iterable[BatchRow]) -> list[Job]:
        """Begin these rows.

        A view gets rows that do not concern it with others' jobs, or with its own next one; by itself only
        where too many are kept for it.
        """
        mine: dict[str, list[int]] = {}
        for row in rows:
            del self.waiting[row.number]
            for view in row.concerned:
                self._waiting_of[view].popleft()
                mine.setdefault(view, []).append(row.number)
        spans: dict[tuple[int, int], dict[tuple[int, ...], list[str]]] = {}
        for view, rows_of in mine.items():
            of_rows = spans.setdefault((self._passed[view], rows_of[-1]), {})
            of_rows.setdefault(tuple(rows_of), []).append(view)
        for view, passed in self._passed.items():
            span = passed, self._may_be_told_upto(view)
            is_wanted = span in spans or self._keeps_too_much
            if view not in mine and span[1] > passed and is_wanted:
                spans.setdefault(span, {}).setdefault((), []).append(view)
        jobs = [job for (since, end), of in spans.items() for job in self._jobs(since, end, of)]
        self._looked = None
        self._drop_kept()
        return jobs

    @property
    def must_tell(self) -> bool:
        """Whether too much is kept for views that could get it."""
        return self._keeps_too_much and any(
            self._may_be_told_upto(view) > passed for view, passed in self._passed.items()
        )

    @property
    def _keeps_too_much(self) -> bool:
        limits = self._limits
        is_large = self.kept_rows * 2 > limits.backlog_rows_max
        return is_large or len(self._kept) > limits.kept_batches_max

    def _may_be_told_upto(self, view: str) -> int:
        """The last row that a view can get: not while it computes, for it would hold the cuts until then."""
        if any(view in job.at_work for job in self._open.values()):
            return self._passed[view]
        waiting = self._waiting_of[view]
        return waiting[0] - 1 if waiting else self._last

    def _jobs(
        self, since: int, end: int, views: Mapping[tuple[int, ...], Sequence[str]]
    ) -> Iterable[Job]:
        """Jobs over one span of rows, for views by the rows that concern them."""
        kept = [self._kept[number] for number in range(since + 1, end + 1)]
        batch = tuple(arrival for row in kept for arrival in row.batch)
        only_told = views.get((), ())
        by_rows = {rows: concerned for rows, concerned in views.items() if rows} or {(): ()}
        for place, (rows, concerned) in enumerate(by_rows.items()):
            told = (*concerned, *only_told) if place == 0 else tuple(concerned)
            job = Job(
                self.next_serial,
                rows,
                batch,
                tuple(concerned),
                tuple(view for view in self._passed if view in told),
                kept[-1].settled,
                set(concerned),
            )
            self.next_serial += 1
            self._passed |= dict.fromkeys(job.told, end)
            if concerned:
                self._open[job.serial] = job
            yield job

    def _drop_kept(self) -> None:
        """Forget the rows that every view got."""
        everybody = min(self._passed.values(), default=self._last)
        while self._kept and next(iter(self._kept)) <= everybody:
            row = self._kept.pop(next(iter(self._kept)))
            if row.number not in self.by_row:
                self.kept_rows -= row.rows

    def is_known(self, serial: int) -> bool:
        """Whether a job has not been given up."""
        return serial >= self._first_serial

    def computed(self, serial: int, view: str, contents: Any) -> tuple[CommitTransaction, ...]:
        """A view's part of a job is here; what can be committed with it."""
        job = self._open.get(serial)
        if job is None:
            return ()  # of a job that was given up
        job.at_work.discard(view)
        return self.merge.step(ActionListArrived(ActionList(view, job.rows, contents)))

    def shown_with(self, rows: Iterable[int]) -> tuple[int, ...]:
        """The serials of the jobs that a commit of these rows shows."""
        shown = set(rows)
        return tuple(job.serial for job in self._open.values() if job.rows[0] in shown)

    def committed(self, rows: Iterable[int], number: int) -> tuple[CommitTransaction, ...]:
        """These rows are in the warehouse; what can be committed now."""
        for serial in self.shown_with(rows):
            del self._open[serial]
        for row in rows:
            gone = self.by_row.pop(row)
            if row in self._kept:
                self.kept_rows += gone.rows
        return self.merge.step(WarehouseCommitted(number))

    def painted(self) -> dict[str, Any]:
        """The view update table as it is now, for people to look at."""
        return painted(self.merge, self.by_row)


class Counted(Protocol):
    """A job, as far as a drawing needs it."""

    @property
    def transactions(self) -> int: ...


def painted(merge: MergeProcess, jobs: Mapping[int, Counted]) -> dict[str, Any]:
    """A view update table, with how many transactions each of its rows stands for."""
    table = merge.table
    rows = []
    for number in table.rows:
        cells = {view: table.cell(number, view) for view in table.columns}
        job = jobs.get(number)
        rows.append(
            {
                "row": number,
                "transactions": 0 if job is None else job.transactions,
                "cells": {
                    view: {"colour": cell.colour.name.lower(), "state": cell.state}
                    for view, cell in cells.items()
                },
                "waits_for": [v for v, cell in cells.items() if cell.colour is Colour.WHITE],
            }
        )
    return {"views": list(table.columns), "algorithm": merge.algorithm.name, "rows": rows}
