"""The warehouse as its users see it: read any state, follow changes, or become its writer."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from viewkeeper.warehouse.states import position_at, segments, serving
from viewkeeper.warehouse.storage import Storage
from viewkeeper.warehouse.writer import Clock, Writer, system_clock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Snapshot:
    """The warehouse at one transaction number, whatever is committed later.

    All reads from one snapshot show the same state. It stays readable for as long as retention
    promises its state, and at least for the grace period after.
    """

    storage: Storage
    txn: int
    entries: tuple[Entry, ...]
    spark: SparkSession | None = None

    @cached_property
    def views(self) -> dict[str, ViewState]:
        """Every view there is at this state."""
        return self.entries[position_at(self.entries, self.txn)].shown_views

    def _plan(self, view: str) -> reading.ReadPlan:
        state = serving(self.entries, view, self.txn)
        try:
            return reading.extent_plan(self.storage, view, state, self.txn)
        except WarehouseError:
            # Its log may have been trimmed since: a later version of the same base holds the state, too.
            newer = serving(Ledger.open(self.storage).entries(), view, self.txn)
            if newer.version == state.version:
                raise
            return reading.extent_plan(self.storage, view, newer, self.txn)

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
        state = serving(self.entries, view, self.txn)
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

    def writer(self, *, lease_seconds: float = TTL_SECONDS) -> Writer:
        """Become the one writer; close it (or use ``with``) to let others. Recovers first."""
        return Writer(
            self.storage, spark=self._spark, clock=self._clock, lease_seconds=lease_seconds
        )

    # -- reading ----------------------------------------------------------------------------------

    def latest(self) -> Entry:
        """The newest entry of the ledger: the newest state, every source's position."""
        return Ledger.open(self.storage).latest()

    def history(self) -> tuple[Entry, ...]:
        """All entries of the ledger that are kept, oldest first."""
        return Ledger.open(self.storage).entries()

    def snapshot(self, as_of: int | None = None) -> Snapshot:
        """The warehouse at a transaction number, or at the newest one."""
        ledger = Ledger.open(self.storage)
        latest = ledger.latest()
        if as_of is None or as_of == latest.last_txn:
            return Snapshot(self.storage, latest.last_txn, (latest,), self._spark)
        entries = ledger.entries()
        position_at(entries, as_of)
        return Snapshot(self.storage, as_of, entries, self._spark)

    def read(self, view: str, as_of: int | None = None, *, with_count: bool = False) -> DataFrame:
        """A view's rows at a state, as a DataFrame: with duplicates, or once with ``_count``."""
        return self.snapshot(as_of).read(view, with_count=with_count)

    def read_many(
        self, views: Iterable[str], as_of: int | None = None, *, with_count: bool = False
    ) -> dict[str, DataFrame]:
        """Several views at one and the same state."""
        snapshot = self.snapshot(as_of)
        return {view: snapshot.read(view, with_count=with_count) for view in views}

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


def _session(spark: SparkSession | None) -> SparkSession:
    if spark is None:
        raise UsageError(
            "no-spark",
            "a DataFrame was asked of a warehouse that was opened without Spark",
            hint="open it with spark=..., or use read_arrow",
        )
    return spark
