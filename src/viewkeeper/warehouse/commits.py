"""An epoch as data: what is to be committed, whether it may be, and the ledger entry it becomes.

Pure. An epoch brings all transactions from ``first_txn`` to ``last_txn`` to all views that they concern
at once, and says how far each source has been read to get there: for those views (`cuts`), and for all
views of the warehouse (`positions`), some of which may be behind.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Union

import pyarrow as pa

from viewkeeper.errors import InvariantViolated, UsageError, invariant
from viewkeeper.warehouse.checksums import resealed, seal_of
from viewkeeper.warehouse.columns import check_columns, check_view_name
from viewkeeper.warehouse.datafiles import Written
from viewkeeper.warehouse.entries import Definition, Entry, Json, ViewState, views_to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows = Union[pa.Table, "DataFrame"]


@dataclass(frozen=True)
class Changes:
    """Signed rows to be added to a view: its columns, ``_count`` and ``_txn``."""

    rows: Rows


@dataclass(frozen=True)
class Extent:
    """A view's whole content as of the epoch's last transaction: its columns and ``_count``.

    For a new view, a reload, or a new schema. Counts are positive; a row may come several times.
    """

    rows: Rows


@dataclass(frozen=True)
class EpochCommit:
    """Everything that becomes visible together.

    ``first_txn`` follows the last committed number; an epoch without transactions (a new view, a
    source's position alone) has ``last_txn = first_txn - 1``. ``positions`` are merged into those
    already known: what is before them is in every view, so feeds may start there. ``cuts`` gives the
    positions that single views have reached, where that is news. A view in ``definitions`` gets a new
    version of its definition; it needs an `Extent` when it is new or its columns change. ``ties`` are
    sets of views that one transaction changes together. ``taken``: of views, the schema changes that
    their definitions are behind, though their positions may be before them.
    """

    first_txn: int
    last_txn: int
    views: Mapping[str, Changes | Extent] = field(default_factory=dict)
    positions: Mapping[str, Json] = field(default_factory=dict)
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    cuts: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    cut: Json = None
    dropped: frozenset[str] = frozenset()
    ties: tuple[frozenset[str], ...] = ()
    taken: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    # Which transactions its numbers stand for, where views of other groups read their sources, too.
    places: str = ""


def check(commit: EpochCommit, latest: Entry) -> None:
    """Raise unless the epoch can follow ``latest``. Nothing has been written yet."""
    if commit.first_txn != latest.last_txn + 1 or commit.last_txn < commit.first_txn - 1:
        raise InvariantViolated(
            f"the epoch with transactions {commit.first_txn} to {commit.last_txn} is out of order",
            detail=f"the last committed transaction is {latest.last_txn}",
        )
    changed = commit.views.keys() | commit.definitions.keys()
    for view in sorted(changed | commit.dropped):
        _check_view(commit, view, latest.views.get(view))
    unknown = commit.cuts.keys() - changed - latest.views.keys()
    invariant(not unknown, f"views {sorted(unknown)} have a cut and no rows")
    _check_spelling(commit, latest)


def _check_view(commit: EpochCommit, view: str, state: ViewState | None) -> None:
    rows = commit.views.get(view)
    definition = commit.definitions.get(view)
    if view in commit.dropped:
        invariant(state is not None, f"view {view} is to be dropped but is not there")
        invariant(
            rows is None and definition is None, f"view {view} is dropped and changed at once"
        )
        return
    if definition is not None:
        check_view_name(view)
        check_columns(view, definition.schema)
    known = definition is not None or state is not None
    invariant(known, f"view {view} has rows but was never defined")
    columns_stay = (
        state is not None and definition is not None and state.schema == definition.schema
    )
    invariant(
        isinstance(rows, Extent) or definition is None or columns_stay,
        f"view {view} is new or has new columns, so its whole extent must come with it",
    )


def _check_spelling(commit: EpochCommit, latest: Entry) -> None:
    """Spark and some file systems do not tell upper from lower case."""
    staying = (latest.views.keys() | commit.definitions.keys()) - commit.dropped
    seen: dict[str, str] = {}
    for view in sorted(staying):
        other = seen.setdefault(view.casefold(), view)
        if other != view:
            raise UsageError(
                "bad-view-name",
                f"views can't be named {other!r} and {view!r} at once",
                detail="the names differ by case only, and Spark takes the two for one",
                hint="rename one of the views",
            )


def check_written(commit: EpochCommit, view: str, written: Written) -> None:
    """Raise unless the rows belong to this epoch: every state must add up."""
    match commit.views[view]:
        case Extent():
            invariant(not written.tally.deleted, f"the extent of {view} has negative counts")
        case Changes():
            outside = [
                (file.min_txn, file.max_txn)
                for file in written.files
                if not commit.first_txn <= file.min_txn <= file.max_txn <= commit.last_txn
            ]
            invariant(
                not outside,
                f"changes of {view} carry transaction numbers outside their epoch",
                detail=f"the epoch is {commit.first_txn} to {commit.last_txn}; found {outside}",
            )


def schema_owner(commit: EpochCommit, view: str, latest: Entry) -> Definition:
    """The definition under which the view's rows are stored: the new one, or the one it has."""
    definition = commit.definitions.get(view)
    return definition if definition is not None else latest.views[view].definition


def epoch_entry(
    commit: EpochCommit,
    latest: Entry,
    written: Mapping[str, Written],
    versions: Mapping[str, int],
    now: dt.datetime,
) -> Entry:
    """The ledger entry that makes the epoch visible."""
    number = latest.entry + 1
    views = {view: state for view, state in latest.views.items() if view not in commit.dropped}
    for view in sorted(commit.views.keys() | commit.definitions.keys()):
        views[view] = _next_state(commit, view, latest, number, written.get(view), versions)
    for view, positions in commit.cuts.items():
        views[view] = replace(views[view], positions=dict(views[view].positions) | dict(positions))
    for tie in commit.ties:
        for view in tie & views.keys():
            tied = tuple(sorted((tie | set(views[view].tied)) - {view}))
            views[view] = replace(views[view], tied=tied)
    for view, changes in commit.taken.items():
        if view in views:
            views[view] = replace(views[view], taken=changes)
    return replace(
        latest,
        entry=number,
        kind="epoch",
        epoch=latest.epoch + 1,
        first_txn=commit.first_txn,
        last_txn=commit.last_txn,
        committed_at=now,
        positions=dict(latest.positions) | dict(commit.positions),
        cut=commit.cut if commit.cut is not None else latest.cut,
        views_json=views_to_json(views),
        statistics={view: w.tally for view, w in sorted(written.items())},
        places=commit.places,
        chain="",
    )


def _next_state(
    commit: EpochCommit,
    view: str,
    latest: Entry,
    number: int,
    written: Written | None,
    versions: Mapping[str, int],
) -> ViewState:
    before = latest.views.get(view)
    definition = schema_owner(commit, view, latest)
    definition_version = (before.definition_version if before else 0) + (view in commit.definitions)
    files = written.files if written else ()
    if isinstance(commit.views.get(view), Extent):
        return ViewState(
            version=versions[view],
            incarnation=number,
            since_txn=commit.last_txn,
            base_txn=commit.last_txn,
            base_rows=written.rows if written else 0,
            base_distinct=False,
            log_rows=0,
            log_files=0,
            definition_version=definition_version,
            definition=definition,
            published=before.published if before else None,
            seal=seal_of(files),
            # What transactions change together with a view of another text is not known yet.
            tied=before.tied if before and before.definition.written == definition.written else (),
        )
    if before is None:
        raise InvariantViolated(f"view {view} has no state to go on from")
    return replace(
        before,
        version=versions.get(view, before.version),
        log_rows=before.log_rows + (written.rows if written else 0),
        log_files=before.log_files + len(files),
        seal=resealed(before.seal, files),
        definition_version=definition_version,
        definition=definition,
    )


def quiet_entry(
    latest: Entry, kind: str, now: dt.datetime, views: Mapping[str, ViewState] | None = None
) -> Entry:
    """An entry that brings no transaction: the state stays, its storage or its keeper changes."""
    return replace(
        latest,
        entry=latest.entry + 1,
        kind=kind,
        first_txn=latest.last_txn + 1,
        committed_at=now,
        views_json=latest.views_json if views is None else views_to_json(views),
        statistics={},
        places="",
        chain="",
    )


def first_entry(now: dt.datetime) -> Entry:
    """The entry of an empty warehouse: state 0, no views."""
    return Entry(
        entry=0, kind="create", epoch=0, first_txn=1, last_txn=0, oldest_txn=0, token=0,
        committed_at=now,
    )  # fmt: skip
