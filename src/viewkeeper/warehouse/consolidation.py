"""Keeping tables quick to read: merging small log files, and folding the log into the base.

Like a log-structured merge tree. *Merging* puts files of about the same size together and loses no
state. *Folding* sums base and log into a new base once the log has grown to a fraction of the base,
so that every change row is rewritten a bounded number of times, whatever the size of the view. States
before the fold stay readable in the version before it for as long as retention asks.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from viewkeeper.errors import UsageError
from viewkeeper.failpoints import failpoint
from viewkeeper.warehouse.checksums import Damaged, resealed
from viewkeeper.warehouse.columns import TXN, owner_of, stored_arrow_schema
from viewkeeper.warehouse.commits import quiet_entry
from viewkeeper.warehouse.datafiles import (
    DataFile,
    Written,
    numbered,
    write_arrow,
    write_spark,
)
from viewkeeper.warehouse.dataframes import summed_frame
from viewkeeper.warehouse.entries import Entry, ViewState
from viewkeeper.warehouse.reading import ReadPlan, extent_plan, stored_rows, summed, view_folder
from viewkeeper.warehouse.storage import storage_errors
from viewkeeper.warehouse.tables import Addition, Conflict
from viewkeeper.warehouse.writer import Writer

log = logging.getLogger(__name__)

# Up to here one process sums faster than Spark starts its tasks; above, memory matters.
ARROW_ROWS_MAX = 1_000_000

# While the thread that commits is behind, consolidating waits until this many times as much is due.
PATIENCE = 4


@dataclass(frozen=True)
class Amortisation:
    """When consolidating pays. Folding costs base + log; it is done once per ratio · base changes."""

    fold_ratio: float = 0.25
    fold_rows_min: int = 10_000
    merge_files: int = 16

    def __post_init__(self) -> None:
        if self.fold_ratio <= 0 or self.merge_files < 2:
            raise UsageError(
                "bad-consolidation",
                "consolidation must be asked to wait for something",
                detail=f"fold_ratio {self.fold_ratio} must be positive, merge_files "
                f"{self.merge_files} at least 2",
            )

    def due_rows(self, base_rows: int) -> float:
        """From how many log rows on a base of this size is folded."""
        return max(self.fold_rows_min, self.fold_ratio * base_rows)

    def put_off(self) -> Amortisation:
        """The same with more patience: reading costs more meanwhile, the writer has the machine."""
        return Amortisation(
            fold_ratio=PATIENCE * self.fold_ratio,
            fold_rows_min=PATIENCE * self.fold_rows_min,
            merge_files=PATIENCE * self.merge_files,
        )


@dataclass(frozen=True)
class Merge:
    """Put these log files together; every row keeps its number."""

    files: tuple[DataFile, ...]


@dataclass(frozen=True)
class Fold:
    """Sum all these files, base and log, into a new base."""

    files: tuple[DataFile, ...]


Work = Merge | Fold


def work_for(
    state: ViewState, files: Sequence[DataFile], amortisation: Amortisation
) -> Work | None:
    """What is due for a view whose version names these files, if anything. Pure."""
    log = [file for file in files if file.min_txn > state.base_txn]
    log_rows = sum(file.rows for file in log)
    base_rows = sum(file.rows for file in files) - log_rows
    if log_rows and log_rows >= amortisation.due_rows(base_rows):
        return Fold(tuple(files))
    tiers: dict[int, list[DataFile]] = {}
    for file in log:
        tiers.setdefault(_tier(file.rows, amortisation.merge_files), []).append(file)
    for _, same in sorted(tiers.items()):
        if len(same) >= amortisation.merge_files:
            return Merge(tuple(same))
    return None


def may_be_due(state: ViewState, amortisation: Amortisation) -> bool:
    """Whether looking at the view's files can find work at all; the ledger knows enough for a no."""
    due = amortisation.due_rows(state.base_rows)
    return state.log_rows >= due or state.log_files >= amortisation.merge_files


def _tier(rows: int, base: int) -> int:
    """Files of one tier have about the same size; merging them gives one of the next."""
    return int(math.log(max(rows, 1), base) + 1e-9)


@dataclass(frozen=True)
class _Prepared:
    """Work whose files are written and whose table is not yet told."""

    view: str
    state: ViewState
    work: Work
    written: Written
    base_txn: int


def consolidate(
    writer: Writer, amortisation: Amortisation | None = None, *, fold_all: bool = False
) -> tuple[str, ...]:
    """Do what is due, for all views in one ledger entry; the names of the views it was done for.

    Commits may go on meanwhile: files are written without holding the writer's lock. ``fold_all``
    folds every view that has a log, due or not.
    """
    with writer.maintenance_lock:
        latest = writer.latest
        if fold_all:
            amortisation = Amortisation(fold_ratio=1e-12, fold_rows_min=1)
        prepared: list[_Prepared] = []
        try:
            for view, state in sorted(latest.views.items()):
                if (owner_of(view) or view) in writer.damaged:
                    continue
                try:
                    done = _prepare(writer, latest, view, state, amortisation or Amortisation())
                except Damaged as error:
                    # It stops the housekeeping of its view alone.
                    log.warning("%s", error)
                    continue
                if done is not None:
                    prepared.append(done)
            with storage_errors("consolidate"):
                failpoint("consolidation-after-files")
        except BaseException:
            _forget(writer, prepared)
            raise
        return _install(writer, prepared) if prepared else ()


def _prepare(
    writer: Writer, latest: Entry, view: str, state: ViewState, amortisation: Amortisation
) -> _Prepared | None:
    if not state.log_rows or not may_be_due(state, amortisation):
        return None
    plan = extent_plan(writer.storage, view, state, latest.last_txn)
    work = work_for(state, plan.files, amortisation)
    match work:
        case None:
            return None
        case Merge(files):
            rows = stored_rows(writer.storage, replace(plan, base=(), log=files)).sort_by(TXN)
            written = write_arrow(writer.storage, view_folder(view), rows, "changes")
            return _Prepared(view, state, work, written, state.base_txn)
        case Fold():
            written = _fold(writer, plan, latest.last_txn)
            return _Prepared(view, state, work, written, latest.last_txn)


def _fold(writer: Writer, plan: ReadPlan, base_txn: int) -> Written:
    folder = view_folder(plan.view)
    rows = plan.base_rows + plan.log_rows
    if writer.spark is not None and rows > ARROW_ROWS_MAX:
        frame = summed_frame(writer.spark, writer.storage, plan, base_txn)
        return write_spark(writer.storage, folder, frame, plan.schema, "base")
    total = summed(stored_rows(writer.storage, plan), plan.schema)
    table = numbered(total, base_txn).cast(stored_arrow_schema(plan.schema))
    return write_arrow(writer.storage, folder, table, "base")


def _install(writer: Writer, prepared: Sequence[_Prepared]) -> tuple[str, ...]:
    """Tell the tables, then the ledger. Views replaced meanwhile are left out."""
    with writer.lock:
        latest = writer.settled()
        views = dict(latest.views)
        try:
            for done in prepared:
                now = views.get(done.view)
                if now is not None and now.incarnation == done.state.incarnation:
                    views[done.view] = _install_one(writer, done, now)
        except BaseException:
            writer.unsettle()
            _forget(writer, prepared)
            raise
        changed = tuple(view for view in views if views[view] != latest.views[view])
        if changed:
            writer.append(quiet_entry(latest, "consolidation", writer.clock(), views))
            with storage_errors("consolidate"):
                failpoint("consolidation-after-ledger")
        return changed


def _install_one(writer: Writer, done: _Prepared, now: ViewState) -> ViewState:
    """The view's state once the table names the new files instead of the old."""
    if isinstance(done.work, Fold):
        writer.list_files(done.view)
    try:
        version = writer.table(done.view).commit(
            stored_arrow_schema(now.schema),
            [Addition.of(file) for file in done.written.files],
            [file.path for file in done.work.files],
            data_change=False,
        )
    except Conflict as error:
        raise writer.disturbed(f"the consolidation of {done.view}", error) from None
    with storage_errors("consolidate"):
        failpoint("consolidation-after-table")
    log = [file for file in done.work.files if file.min_txn > done.state.base_txn]
    seal = resealed(now.seal, done.written.files, done.work.files)
    if isinstance(done.work, Merge):
        return replace(now, version=version, log_files=now.log_files - len(log) + 1, seal=seal)
    return replace(
        now,
        version=version,
        seal=seal,
        base_txn=done.base_txn,
        base_rows=done.written.rows,
        base_distinct=True,
        log_rows=now.log_rows - sum(file.rows for file in log),
        log_files=now.log_files - len(log),
    )


def _forget(writer: Writer, prepared: Sequence[_Prepared]) -> None:
    writer.forget({done.view: done.written for done in prepared})
