"""A group's jobs: batches on their way through the view managers, and out as epochs.

Every job is a row of the view update table. What the merge process releases is committed, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from viewkeeper.engine.integrator import Arrival, transactions_in
from viewkeeper.engine.view import View
from viewkeeper.merging.merge_process import MergeProcess
from viewkeeper.merging.messages import (
    ActionList,
    ActionListArrived,
    CommitTransaction,
    RelevanceArrived,
    WarehouseCommitted,
)
from viewkeeper.merging.mixtures import Promise, algorithm_for
from viewkeeper.merging.rows import Colour
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.views.level import Level


@dataclass(frozen=True, eq=False)
class Job:
    """The batch that a row of the view update table stands for. ``serial`` names it once and for all."""

    serial: int
    row: int
    batch: tuple[Arrival, ...]
    concerned: tuple[str, ...]

    @property
    def transactions(self) -> int:
        return transactions_in(self.batch)

    @property
    def rows(self) -> int:
        return sum(arrival.rows for arrival in self.batch)

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(sorted({arrival.origin.source for arrival in self.batch}))


class Jobs:
    """The jobs that are not committed, and the merge process that releases them."""

    def __init__(self, views: Mapping[str, View], first_serial: int) -> None:
        promises = [Promise(view.choice.level) for view in views.values()]
        self.merge = MergeProcess(algorithm_for(promises, ViewUpdateTable(views)))
        self.by_row: dict[int, Job] = {}
        self.next_serial = first_serial
        self._rows = 0

    @property
    def level(self) -> Level:
        return self.merge.level

    @property
    def batches(self) -> list[Arrival]:
        """All that the jobs are made of, in order."""
        return [arrival for job in self.by_row.values() for arrival in job.batch]

    def begin(
        self, batch: tuple[Arrival, ...], concerned: tuple[str, ...]
    ) -> tuple[Job, tuple[CommitTransaction, ...]]:
        """A new job, and what can be committed with it known."""
        self._rows += 1
        job = Job(self.next_serial, self._rows, batch, concerned)
        self.next_serial += 1
        if concerned:
            self.by_row[job.row] = job
        return job, self.merge.step(RelevanceArrived(job.row, concerned, job.sources))

    def is_known(self, serial: int) -> bool:
        """Whether a job has not been given up, or committed."""
        return any(job.serial == serial for job in self.by_row.values())

    def computed(self, serial: int, view: str, contents: Any) -> tuple[CommitTransaction, ...]:
        """A view's part of a job is here; what can be committed with it."""
        for job in self.by_row.values():
            if job.serial == serial:
                return self.merge.step(ActionListArrived(ActionList(view, (job.row,), contents)))
        return ()  # of a job that was given up

    def committed(self, rows: Iterable[int], number: int) -> tuple[CommitTransaction, ...]:
        """These rows are in the warehouse; what can be committed now."""
        for row in rows:
            del self.by_row[row]
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
