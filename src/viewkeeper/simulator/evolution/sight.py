"""Which data changes a view shows while its relations get other names: for writing scripts that matter."""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.algebra import Bag
from viewkeeper.evolution.changes import (
    ChangeType,
    DropAttribute,
    DropRelation,
    RenameAttribute,
    RenameRelation,
    SchemaChange,
    Update,
)
from viewkeeper.simulator.evolution.source import contents_after
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.pruning import pruned


class Sight:
    """The view as first defined, through renames, up to the first loss of something that it reads."""

    def __init__(self, definition: ViewDefinition) -> None:
        meant = pruned(definition)
        self._view = WholeView(meant)
        self._schemas = {o.name: o.schema for term in meant.terms for o in term.occurrences}
        # For each relation of the text, its name now, and the names of its columns now.
        self._names = {name: name for name in self._schemas}
        self._columns = {n: {c: c for c in s.names} for n, s in self._schemas.items()}
        self.is_lost = False

    def shows(self, contents: Mapping[RelationName, Bag], update: Update) -> bool:
        """Whether the view is another one after the update; never, once something is lost."""
        return not self.is_lost and self.seen(contents) != self.seen(
            contents_after(dict(contents), update)
        )

    def seen(self, contents: Mapping[RelationName, Bag]) -> Bag:
        def rows(name: RelationName) -> Bag:
            columns = self._columns[name]
            now = contents[self._names[name]].only(tuple(columns.values()))
            return now.renamed(tuple(columns))

        seen: Bag = self._view.evaluated(rows)
        return seen

    def follow(self, change: SchemaChange) -> None:
        """Take the change in."""
        for name, now in self._names.items():
            if change.relation == now:
                self._follow(name, change)

    def _follow(self, name: RelationName, change: SchemaChange) -> None:
        columns = self._columns[name]
        match change:
            case RenameRelation():
                self._names[name] = change.renamed
            case RenameAttribute(_, before, after):
                self._columns[name] = {c: after if n == before else n for c, n in columns.items()}
            case DropRelation():
                self.is_lost = True
            case DropAttribute(_, attribute) | ChangeType(_, attribute):
                self.is_lost |= attribute in columns.values()
            case _:
                pass
