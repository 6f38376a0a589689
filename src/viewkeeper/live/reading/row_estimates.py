"""About how large relations are, by what their sources know anyway."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.interface import Source
from viewkeeper.views.definition import RelationName


def row_estimates(
    sources: Mapping[str, Source], relations: Iterable[RelationName]
) -> dict[RelationName, int]:
    """Rows by relation; left out where the source can't say, or is not set up for cuts yet."""
    names = tuple(dict.fromkeys(relations))
    found: dict[RelationName, int] = {}
    for source in dict.fromkeys(name.source for name in names):
        mine = [name for name in names if name.source == source]
        try:
            with sources[source].cut([name.relation for name in mine]) as cut:
                told = {name: cut.row_estimate(name.relation) for name in mine}
        except (SourceError, UsageError):
            continue  # an estimate is never worth an error
        found |= {name: rows for name, rows in told.items() if rows is not None}
    return found
