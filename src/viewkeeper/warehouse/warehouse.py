"""The warehouse as its users see it: read any state, follow changes, or become its writer."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from viewkeeper.errors import UsageError, WarehouseError
from viewkeeper.warehouse import reading
from viewkeeper.warehouse.commits import first_entry
from viewkeeper.warehouse.dataframes import extent_frame, feed_frame
from viewkeeper.warehouse.entries import Entry, ViewState
from viewkeeper.warehouse.lease import TTL_SECONDS
from viewkeeper.warehouse.ledger import Ledger
from viewkeeper.warehouse.one_cut import Apart, is_one_cut, numbers_at_one_cut
from viewkeeper.warehouse.states import position_at, segments, serving
from viewkeeper.warehouse.storage import Storage
from viewkeeper.warehouse.writer import Clock, Writer, system_clock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# So far back a view may stand before who looks at all of them no longer waits for it.
OVERVIEW_ENTRIES_MAX = 256


@dataclass(frozen=True)
class Snapshot:
    """The warehouse at one transaction number, whatever is committed later.

    Views that it was taken for are read at one cut of every source; any other one as it is at the
    number itself. It stays readable for as long as retention promises its state, and at least for the
    grace period after.
    """

    storage: Storage
    txn: int
    entries: tuple[Entry, ...]
    spark: SparkSession | None = None
    # Views that are read at an older number than ``txn``, so that they are at one cut with the others.
    older: Mapping[str, int] = field(default_factory=dict)
    # Views that are left out of that.
    apart: tuple[str, ...] = ()

    def number_of(self, view: str) -> int:
        """The transaction number that a view is read at."""
        return self.older.get(view, self.txn)

    @cached_property
    def views(self) -> dict[str, ViewState]:
        """Every view there is at this state."""
        return self.entries[position_at(self.entries, self.txn)].shown_views

    def _plan(self, view: str) -> reading.ReadPlan:
        txn = self.number_of(view)
        state = serving(self.entries, view, txn)
        try:
            return reading.extent_plan(self.storage, view, state, txn)
        except WarehouseError:
            # Its log may have been trimmed since: a later version of the same base holds the state, too.
            newer = serving(Ledger.open(self.storage).entries(), view, txn)
            if newer.version == state.version:
                raise
            return reading.extent_plan(self.storage, view, newer, txn)

    def read(self, view: str, *, with_count: bool = False) -> DataFrame:
        """The view's rows as a DataFrame: each as often as it occurs, or once with ``_count``."""
        return extent_frame(
            _session(self.spark), self.storage, self._plan(view), with_count=with_count
        )

    def read_arrow(self, view: str, *, with_count: bool = False) -> pa.Table:
        """The same without Spark, in this process's memory."""
        counted = reading.extent(self.storage, self._plan(view), distinct=with_count)
        return counted if with_count else reading.repeated(counted)

    def stored_rows(self, view: str) -> int:
        """How many rows are stored for the view at this state or a later one."""
        state = serving(self.entries, view, self.number_of(view))
        return state.base_rows + state.log_rows

    def stored_parts(self, view: str) -> Iterator[pa.Table]:
        """Signed rows whose sum is the view, with ``_count`` and ``_txn``, some at a time."""
        return reading.stored_parts(self.storage, self._plan(view))

    def some_values(
        self, view: str, column: str, number: int, randomness: random.Random
    ) -> list[Any]:
        """Different values of a column, of stored rows taken by chance."""
        return reading.some_values(self.storage, self._plan(view), column, number, randomness)

    def rows_with(self, view: str, column: str, values: Sequence[Any]) -> pa.Table:
        """The signed rows of the view that have one of the values in a column."""
        return reading.rows_with(self.storage, self._plan(view), column, values)


@dataclass(frozen=True)
class _Look:
    """What the ledger says of one number: the entry that shows it, and what it takes to read views."""

    ledger: Ledger
    txn: int
    top: Entry
    entries: tuple[Entry, ...]

    @classmethod
    def at(cls, storage: Storage, as_of: int | None) -> _Look:
        ledger = Ledger.open(storage)
        latest = ledger.latest()
        if as_of is None or as_of == latest.last_txn:
            return cls(ledger, latest.last_txn, latest, (latest,))
        entries = ledger.since(as_of)
        return cls(ledger, as_of, entries[position_at(entries, as_of)], entries)

    def at_one_cut(
        self, snapshot: Snapshot, views: Sequence[str], entries_max: int | None = None
    ) -> Snapshot:
        """The snapshot, with views read at older numbers where they are ahead of others."""
        at_end = self.txn == self.top.last_txn
        if len(views) < 2 or (at_end and is_one_cut(self.top, views)):
            return snapshot
        taken: list[Entry] = []

        def walked() -> Iterator[Entry]:
            for entry in self.ledger.backwards(self.top.entry):
                taken.append(entry)
                yield entry

        numbers = numbers_at_one_cut(walked(), views, self.txn, entries_max)
        older = {view: number for view, number in numbers.items() if number < self.txn}
        later = (entry for entry in self.entries if entry.entry > self.top.entry)
        entries = (*reversed(taken), *later)
        return replace(snapshot, entries=entries, older=older) if older else snapshot


class Warehouse:
    """A warehouse opened for reading. Needs no lease and disturbs no writer."""

    def __init__(
        self, storage: Storage, spark: SparkSession | None = None, clock: Clock = system_clock
    ) -> None:
        self.storage = storage
        self._spark = spark
        self._clock = clock

    @classmethod
    def create(
        cls,
        location: str | Path,
        options: Mapping[str, str] | None = None,
        *,
        spark: SparkSession | None = None,
        clock: Clock = system_clock,
    ) -> Warehouse:
        """A new, empty warehouse at state 0. Raises UsageError when there is one already."""
        storage = Storage.at(location, options)
        Ledger.create(storage, first_entry(clock()))
        return cls(storage, spark, clock)

    @classmethod
    def open(
        cls,
        location: str | Path,
        options: Mapping[str, str] | None = None,
        *,
        spark: SparkSession | None = None,
        clock: Clock = system_clock,
    ) -> Warehouse:
        """An existing warehouse. Raises UsageError when there is none."""
        storage = Storage.at(location, options)
        Ledger.open(storage)
        return cls(storage, spark, clock)

    def writer(self, *, lease_seconds: float = TTL_SECONDS, beats_apart: bool = False) -> Writer:
        """Become the one writer; close it (or use ``with``) to let others. Recovers first."""
        return Writer(
            self.storage,
            spark=self._spark,
            clock=self._clock,
            lease_seconds=lease_seconds,
            beats_apart=beats_apart,
        )

    # -- reading ----------------------------------------------------------------------------------

    def latest(self) -> Entry:
        """The newest entry of the ledger: the newest state, every source's position."""
        return Ledger.open(self.storage).latest()

    def history(self) -> tuple[Entry, ...]:
        """All entries of the ledger that are kept, oldest first."""
        return Ledger.open(self.storage).entries()

    def snapshot(self, as_of: int | None = None, views: Iterable[str] = ()) -> Snapshot:
        """The warehouse at a transaction number, or at the newest one.

        Name the ``views`` that are to be read from it, if they are several: those are at the newest cut
        that all of them had passed then. Raises UsageError where they were at none together.
        """
        look = _Look.at(self.storage, as_of)
        snapshot = Snapshot(self.storage, look.txn, look.entries, self._spark)
        names = [view for view in dict.fromkeys(views) if look.top.view(view) is not None]
        try:
            return look.at_one_cut(snapshot, names)
        except Apart as apart:
            raise _apart(apart, look.txn) from None

    def overview(self, as_of: int | None = None) -> Snapshot:
        """All views together, for who looks at one after the other: whatever is seen is at one cut.

        One that stands too far behind the others (it waits for a decision, its source is away) does not
        hold them back: it is in the snapshot's ``apart``, and shows its own state.
        """
        look = _Look.at(self.storage, as_of)
        snapshot = Snapshot(self.storage, look.txn, look.entries, self._spark)
        names = [n for n, s in look.top.shown_views.items() if not s.definition.has_ended]
        apart: list[str] = []
        while True:
            try:
                found = look.at_one_cut(snapshot, names, OVERVIEW_ENTRIES_MAX)
                return replace(found, apart=tuple(apart))
            except Apart as error:
                names.remove(error.behind)
                apart.append(error.behind)

    def read(self, view: str, as_of: int | None = None, *, with_count: bool = False) -> DataFrame:
        """A view's rows at a state, as a DataFrame: with duplicates, or once with ``_count``."""
        return self.snapshot(as_of).read(view, with_count=with_count)

    def read_many(
        self, views: Iterable[str], as_of: int | None = None, *, with_count: bool = False
    ) -> dict[str, DataFrame]:
        """Several views at one cut of every source: the newest that all of them have passed."""
        names = list(views)
        snapshot = self.snapshot(as_of, names)
        return {view: snapshot.read(view, with_count=with_count) for view in names}

    def read_arrow(
        self, view: str, as_of: int | None = None, *, with_count: bool = False
    ) -> pa.Table:
        """A view's rows at a state, without Spark."""
        return self.snapshot(as_of).read_arrow(view, with_count=with_count)

    def changes(self, view: str, after: int, upto: int | None = None) -> DataFrame:
        """The view's signed rows with ``after < _txn ≤ upto``: columns, ``_count``, ``_txn``."""
        spark = _session(self._spark)
        state, plans = self._feed(view, after, upto)
        return feed_frame(spark, self.storage, state.schema, plans)

    def changes_arrow(self, view: str, after: int, upto: int | None = None) -> pa.Table:
        """The same without Spark, in order of ``_txn``."""
        state, plans = self._feed(view, after, upto)
        return reading.feed(self.storage, state.schema, plans)

    def change_parts(
        self, view: str, after: int, upto: int, *, since_entry: int
    ) -> Iterator[pa.Table]:
        """The same in no order, some rows at a time.

        ``since_entry`` is the number of an entry that shows ``after``: the ledger is read from there on.
        """
        _, plans = self._feed(view, after, upto, since_entry)
        for plan in plans:
            yield from reading.stored_parts(self.storage, plan)

    def _feed(
        self, view: str, after: int, upto: int | None, since_entry: int = 0
    ) -> tuple[ViewState, list[reading.ReadPlan]]:
        entries = Ledger.open(self.storage).entries(since_entry - 1)
        end = entries[-1].last_txn if upto is None else upto
        parts = segments(entries, view, after, end)
        plans = [reading.segment_plan(self.storage, view, part) for part in parts]
        return serving(entries, view, end), plans


def _apart(apart: Apart, txn: int) -> UsageError:
    return UsageError(
        "no-common-cut",
        f"at state {txn} there is no moment of source {apart.source} that {apart.ahead} and "
        f"{apart.behind} both show",
        detail=f"{apart.behind} has not come to the oldest state of {apart.ahead} that can be read",
        hint=f"read again when {apart.behind} has caught up (viewkeeper status), or read the views one by one",
    )


def _session(spark: SparkSession | None) -> SparkSession:
    if spark is None:
        raise UsageError(
            "no-spark",
            "a DataFrame was asked of a warehouse that was opened without Spark",
            hint="open it with spark=..., or use read_arrow",
        )
    return spark
