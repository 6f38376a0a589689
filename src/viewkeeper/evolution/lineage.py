"""What became of relations since a text was written that names them: a view's, or the knowledge file's.

Files lag behind their sources: a column is renamed, the views follow, and the files still say what was.
For each relation that was renamed or dropped, or of which a column was renamed, dropped or got another type,
a *lineage* keeps what it was then and what it is called now. A text that names what was is read over the relations of then
(`catalog_then`), and carried over by the changes that lead from there to the present (`steps`). A lineage
is as large as its relation, however often that changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from viewkeeper.algebra.types import Schema
from viewkeeper.errors import invariant
from viewkeeper.evolution.changes import (
    ChangeType,
    DropAttribute,
    DropRelation,
    RenameAttribute,
    RenameRelation,
    SchemaChange,
    relation_in,
)
from viewkeeper.evolution.differences import differences
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

# Of texts that are no longer the view's: so many relations' names are still understood.
OLDER_MAX = 16

# What may leave a text without its meaning: names that go, and types that it does not fit.
Moving = RenameAttribute | RenameRelation | DropAttribute | DropRelation | ChangeType


@dataclass(frozen=True)
class Lineage:
    """A relation as it was, its name now (None: it is gone), and its columns' names now."""

    before: CatalogRelation
    now: RelationName | None
    columns: tuple[tuple[str, str], ...]
    # Which entries of the knowledge file used these names (`knowledge_file.entries_of`).
    said: tuple[str, ...] = ()
    # The names of an earlier text of the view, which others may still use.
    is_older: bool = False

    @classmethod
    def of(cls, relation: CatalogRelation, said: tuple[str, ...] = ()) -> Lineage:
        """A relation to which nothing has happened yet."""
        return cls(relation, relation.name, tuple((c, c) for c in relation.schema.names), said)

    def after(self, change: SchemaChange) -> Lineage:
        """The same relation once the change has happened."""
        if self.now is None or change.relation != self.now:
            return self
        match change:
            case RenameRelation():
                return replace(self, now=change.renamed)
            case DropRelation():
                return replace(self, now=None, columns=())
            case RenameAttribute(_, old, new):
                moved = tuple((then, new if now == old else now) for then, now in self.columns)
                return replace(self, columns=moved)
            case DropAttribute(_, gone):
                return replace(self, columns=tuple(c for c in self.columns if c[1] != gone))
            case _:
                return self

    def steps(self, catalog: Catalog) -> Iterator[SchemaChange]:
        """The changes that lead from what it was to what the catalog has now."""
        now = None if self.now is None else relation_in(catalog, self.now)
        if now is None:
            yield DropRelation(self.before.name)
            return
        renamed = {then: name for then, name in self.columns if name in now.schema}
        # A column that went may have left its name to another one: it is no longer the same column.
        for gone in (c for c in self.before.schema.names if c not in renamed):
            yield DropAttribute(self.before.name, gone)
        kept = Schema(tuple(f for f in self.before.schema if f.name in renamed))
        key = self.before.key if all(c in renamed for c in self.before.key) else ()
        left = CatalogRelation(self.before.name, kept, key)
        yield from differences(left, now, {a: b for a, b in renamed.items() if a != b})


Lineages = tuple[Lineage, ...]


def followed(
    known: Lineages,
    change: SchemaChange,
    named: Iterable[RelationName],
    catalog: Catalog,
    said: tuple[str, ...] = (),
) -> Lineages:
    """The lineages after a change; ``catalog`` is that before it.

    One begins with the first change that a text may not survive, of a relation in ``named``: those that
    the view's text, or the knowledge file, speaks of.
    """
    moved = tuple(each.after(change) for each in known)
    if not isinstance(change, Moving) or change.relation not in set(named):
        return moved
    if any(each.now == change.relation and not each.is_older for each in known):
        return moved
    relation = relation_in(catalog, change.relation)
    return moved if relation is None else (*moved, Lineage.of(relation, said).after(change))


def inherited(known: Lineages) -> Lineages:
    """What a view that is written again takes over: its own names begin in the present."""
    older = (replace(each, is_older=True) for each in known if each.now is not None)
    return tuple(dict.fromkeys(older))[-OLDER_MAX:]


def catalogs_then(known: Lineages, catalog: Catalog) -> Iterator[tuple[Catalog, Lineages]]:
    """The catalogs that a text may have been written over, the latest first, each with the lineages that
    lead from it to the present."""
    own = tuple(each for each in known if not each.is_older)
    older = tuple(each for each in reversed(known) if each.is_older)
    for chosen in dict.fromkeys(map(_apart, (own, (*own, *older), (*older, *own)))):
        if chosen:
            yield _catalog_then(chosen, catalog), chosen


def _apart(known: Lineages) -> Lineages:
    """The first of those that are about the same relation, or began under the same name."""
    chosen: list[Lineage] = []
    for each in known:
        is_new = each.now is None or each.now not in {other.now for other in chosen}
        if is_new and each.before.name not in {other.before.name for other in chosen}:
            chosen.append(each)
    return tuple(chosen)


def _catalog_then(known: Lineages, catalog: Catalog) -> Catalog:
    gone = {each.now for each in known}
    relations = {r.name: r for r in catalog.relations if r.name not in gone}
    return Catalog(tuple((relations | {each.before.name: each.before for each in known}).values()))


def steps_since(known: Lineages, catalog: Catalog) -> tuple[SchemaChange, ...]:
    """The changes from what the relations were to what the catalog has now, in a possible order.

    Where relations have exchanged names, one of them goes through a name in between.
    """
    chains = [list(each.steps(catalog)) for each in known]
    return tuple(_ordered(chains, {each.before.name for each in known}))


def _ordered(
    chains: list[list[SchemaChange]], present: set[RelationName]
) -> Iterator[SchemaChange]:
    """Renames of relations come last in their chains: none may take a name that is still in use."""
    last: list[RenameRelation] = []
    for chain in chains:
        for step in chain:
            if isinstance(step, RenameRelation):
                last.append(step)
            else:
                yield step
                if isinstance(step, DropRelation):
                    present = present - {step.relation}
    while last:
        free = next((s for s in last if s.renamed not in present), None)
        if free is None:
            # Only circles are left: one of them is opened by a name in between.
            invariant(
                all(s.renamed in {other.relation for other in last} for s in last),
                "relations are to take names that others keep",
            )
            step = last.pop(0)
            between = f"{step.relation.relation}~"
            yield RenameRelation(step.relation, between)
            present = present - {step.relation}
            moved = RelationName(step.relation.source, between)
            last.append(RenameRelation(moved, step.after))
            present = present | {moved}
            continue
        last.remove(free)
        yield free
        present = present - {free.relation} | {free.renamed}
