"""A reader's SQL over the views, all at one cut: the one way to them for any text of SQL.

The command line and Python's `Keeper.sql` both come here. The text passes `spark.gate`, in a session that
holds nothing but the views it names; rows and time have limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from viewkeeper.spark.gate import answering, parsed_query
from viewkeeper.spark.time_limit import within
from viewkeeper.warehouse.warehouse import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from viewkeeper.project.keeper import Keeper

ROWS_MAX = 100_000
SECONDS_MAX = 300.0


@dataclass(frozen=True)
class Answer:
    """A query's rows, and the states that they were read at."""

    table: pa.Table
    # Each column's name and Spark's word for its type; names may occur twice.
    columns: tuple[tuple[str, str], ...]
    txn: int
    # The number that each view was read at: the same cut of every source for all of them.
    states: Mapping[str, int]
    is_cut: bool


def answered(
    keeper: Keeper, sql: str, as_of: int | None, rows_max: int, seconds_max: float
) -> Answer:
    """The answer to a query; raises UsageError for whatever it may not do or can't."""
    session = keeper.spark.fresh()
    context = session.sparkContext
    query = within(seconds_max, context, lambda: parsed_query(session, sql))
    named = {name.casefold() for name in query.relations}
    snapshot, kept = _snapshot(keeper, session, as_of, named)
    virtual = _of(keeper.virtual_views, named)
    with answering():
        for view in kept:
            snapshot.read(view).createOrReplaceTempView(view)
        for view in virtual:
            keeper.read_virtual(view, as_of, session).createOrReplaceTempView(view)

    def computed() -> tuple[DataFrame, pa.Table]:
        frame = query.frame({*kept, *virtual})
        with answering():
            return frame, frame.limit(rows_max + 1).toArrow()

    frame, table = within(seconds_max, context, computed)
    return Answer(
        table.slice(0, rows_max),
        tuple((name, kind) for name, kind in frame.dtypes),
        snapshot.txn,
        {view: snapshot.number_of(view) for view in kept},
        table.num_rows > rows_max,
    )


def _snapshot(
    keeper: Keeper, session: SparkSession, as_of: int | None, named: set[str]
) -> tuple[Snapshot, list[str]]:
    """The views that a query names, as it is to see them together."""
    warehouse = keeper.warehouse(session=session)
    kept = _of(warehouse.snapshot(as_of).views, named)
    snapshot = warehouse.snapshot(as_of, kept)
    return snapshot, _of(snapshot.views, named)


def _of(views: Iterable[str], named: set[str]) -> list[str]:
    return [view for view in views if view.casefold() in named]
