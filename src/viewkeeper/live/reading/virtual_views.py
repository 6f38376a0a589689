"""Virtual views: nothing is stored, and a query asks the sources, each at one exact cut.

Together the cuts are a state that the sources have gone through, each for itself: the view is right at
them, and as new as it can be. What it costs is a reading of all its relations for every query.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from viewkeeper.errors import UsageError
from viewkeeper.live.jobs import StageFolder
from viewkeeper.live.questions.change_tables import ChangeTables
from viewkeeper.live.reading.contents import Reading, narrowed
from viewkeeper.protocols.messages import Reflected
from viewkeeper.protocols.registry import VIRTUAL
from viewkeeper.sources.interface import Source
from viewkeeper.spark.staged import Staging
from viewkeeper.sql.headers import read_headers
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.pruning import pruned
from viewkeeper.warehouse.reading import repeated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_virtual(name: str, text: str) -> bool:
    """Whether a view's text says so; known without a connection."""
    return read_headers(SqlText(name, text)).protocol == VIRTUAL


def rows_now(
    definition: ViewDefinition, sources: Mapping[str, Source], session: SparkSession
) -> pa.Table:
    """The view's rows at cuts that are opened now, each as often as it occurs."""
    stage = StageFolder(session)
    staging = Staging(session, stage.path)
    by_source: dict[str, list[str]] = {name: [] for name in definition.sources}
    for name in definition.relations:
        by_source[name.source].append(name.relation)
    try:
        with contextlib.ExitStack() as stack:
            cuts = {
                source: stack.enter_context(sources[source].cut(relations))
                for source, relations in by_source.items()
            }
            unapplied = dict.fromkeys(cuts, Reflected(0))
            reading = Reading(staging, cuts, unapplied, (), ChangeTables({}))
            contents = narrowed(definition, reading.relations([definition]))
        rows = WholeView(pruned(definition)).evaluated(contents)
        return repeated(staging.taken(rows.consolidated()).table)
    finally:
        stage.remove()


def refuse_past(view: str, as_of: int | None) -> None:
    """Raise UsageError where an earlier state of a virtual view is asked for."""
    if as_of is not None:
        raise UsageError(
            "virtual-has-no-past",
            f"{view} is virtual: only its present can be asked for",
            detail="nothing of it is stored",
            hint="leave --as-of out, or let the view be kept: take `-- protocol: virtual` out",
        )
