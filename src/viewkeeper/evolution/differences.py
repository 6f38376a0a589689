"""What changed between two shapes of a relation, as schema changes in an order that is possible.

Sources report a statement's effect: the relation before and after it, and which columns it renamed. One
ALTER TABLE may do much at once; here it comes apart: drops first, so that a name is free for a column
that takes it over; renames, through a name in between where two columns exchange theirs; types; adds;
the columns' order, if they do not stand in it now; the key, which no longer has a column that was dropped;
at last the relation's own name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from viewkeeper.evolution.changes import (
    AddAttribute,
    AddRelation,
    ChangeKey,
    ChangeType,
    DropAttribute,
    DropRelation,
    OrderAttributes,
    RenameAttribute,
    RenameRelation,
    Rewrite,
    SchemaChange,
)
from viewkeeper.views.catalog import CatalogRelation
from viewkeeper.views.definition import RelationName


def differences(
    before: CatalogRelation | None,
    after: CatalogRelation | None,
    renamed: Mapping[str, str] | None = None,
    *,
    rewrites: bool = False,
) -> tuple[SchemaChange, ...]:
    """The changes that lead from one to the other; None stands for a relation that is not there.

    ``renamed`` maps columns' old names to new ones; a relation was renamed when the two names differ.
    ``rewrites``: the rows changed too, and nobody was told which.
    """
    if before is None:
        return () if after is None else (AddRelation(after.name, after.schema, after.key),)
    if after is None:
        return (DropRelation(before.name),)
    return tuple(_changes(before, after, dict(renamed or {}), rewrites))


def _changes(
    before: CatalogRelation, after: CatalogRelation, renamed: dict[str, str], rewrites: bool
) -> Iterator[SchemaChange]:
    name = before.name
    kept = {
        old: renamed.get(old, old)
        for old in before.schema.names
        if renamed.get(old, old) in after.schema
    }
    # A column that stands where another was renamed to is a new one, whatever it is called.
    taken = set(renamed.values())
    kept = {old: new for old, new in kept.items() if old in renamed or new not in taken}
    for column in before.schema.names:
        if column not in kept:
            yield DropAttribute(name, column)
    yield from _renames(name, {old: new for old, new in kept.items() if old != new}, set(kept))
    for old, new in kept.items():
        types = before.schema.type_of(old), after.schema.type_of(new)
        if types[0] != types[1]:
            yield ChangeType(name, new, *types)
    added = [field for field in after.schema if field.name not in kept.values()]
    for field in added:
        yield AddAttribute(name, field)
    if (*kept.values(), *(field.name for field in added)) != after.schema.names:
        yield OrderAttributes(name, after.schema.names)
    # Before the rows are read again: how that is done may rest on the key.
    key = tuple(kept[column] for column in before.key) if set(before.key) <= kept.keys() else ()
    if set(key) != set(after.key):
        yield ChangeKey(name, after.key)
    if rewrites:
        yield Rewrite(name)
    if after.name != name:
        yield RenameRelation(name, after.name.relation)


def _renames(
    name: RelationName, renames: dict[str, str], present: set[str]
) -> Iterator[RenameAttribute]:
    """The renames one after the other, none to a name that is still taken."""
    waiting, present = dict(renames), set(present)
    while waiting:
        free = next((old for old, new in waiting.items() if new not in present), None)
        if free is None:
            # Only circles are left: one of them is opened by a name in between.
            old = next(iter(waiting))
            between = f"{old}~"
            while between in present:
                between += "~"
            yield RenameAttribute(name, old, between)
            present = present - {old} | {between}
            waiting[between] = waiting.pop(old)
            continue
        new = waiting.pop(free)
        yield RenameAttribute(name, free, new)
        present = present - {free} | {new}
