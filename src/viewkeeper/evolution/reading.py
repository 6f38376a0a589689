"""Relations as an adaptation reads them: whole, or the rows that can join what is there already.

All of them are read at one cut, the one that the view's extent belongs to. Whoever offers them takes out what is newer,
so that an adaptation never meets a concurrent data change.
"""

from __future__ import annotations

from typing import Any, Protocol

from viewkeeper.algebra.expressions import Column, IsNull, Not, Output, conjunction
from viewkeeper.algebra.types import Schema
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import RelationName


class Relations(Protocol):
    """The relations of some sources at one cut, by the names that the new view uses."""

    def whole(self, name: RelationName, needed: Schema) -> Any:
        """All rows, with these columns."""

    def matching(
        self, name: RelationName, needed: Schema, key_columns: tuple[str, ...], keys: Any
    ) -> Any:
        """At least the rows whose key columns are among ``keys``."""


def joined(assembly: Assembly, start: str, rows: Any, relations: Relations) -> Any:
    """``rows`` at one occurrence of a term, joined with all others."""
    partial, covers = assembly.prepared(start, rows), frozenset({start})
    for alias in assembly.join_order(start)[1:]:
        found = _partners(assembly, partial, covers, alias, relations)
        partial = assembly.extended(partial, covers, alias, found)
        covers |= {alias}
    return assembly.finished(partial)


def _partners(
    assembly: Assembly, partial: Any, covers: frozenset[str], alias: str, relations: Relations
) -> Any:
    """The rows of one more occurrence that can join the partial."""
    occurrence = assembly.term.occurrence(alias)
    pairs, _ = assembly.join_plan(covers, frozenset({alias}))
    own = {occurrence.qualified(name): name for name in occurrence.schema.names}
    columns = {own[theirs]: mine for mine, theirs in reversed(pairs)}
    if not columns:
        return relations.whole(occurrence.name, occurrence.schema)
    present = conjunction(tuple(Not(IsNull(Column(mine))) for mine in columns.values()))
    outputs = tuple(Output(name, Column(mine)) for name, mine in columns.items())
    # Before signs cancel: a row that was modified needs its partners for both of its selves.
    keys = partial.support().where(present).select(outputs).support()
    return relations.matching(occurrence.name, occurrence.schema, tuple(columns), keys)
