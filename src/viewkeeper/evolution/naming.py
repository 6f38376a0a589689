"""What a relation and its columns are called at another place in the source's order.

Renames are followed in both directions, chains included; what a change takes away, or puts on another
footing (a changed type), is *lost* on the way. This is the query engine's name mapping (section 5.1.2),
applied to queries and to data changes alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
from viewkeeper.views.definition import RelationName


@dataclass(frozen=True)
class Names:
    """A relation and some of its columns, as they are called at one place in the source's order."""

    relation: RelationName
    columns: tuple[str, ...]


def after(names: Names, change: SchemaChange) -> Names | None:
    """The same relation and columns once the change has happened; None when it took one away.

    Rows that were rewritten are other rows: they are lost too, until they have been read again.
    """
    if names.relation != change.relation:
        return names
    match change:
        case RenameRelation():
            return Names(change.renamed, names.columns)
        case RenameAttribute(_, before, new):
            return Names(names.relation, _renamed(names.columns, before, new))
        case DropRelation() | Rewrite():
            return None
        case DropAttribute(_, attribute) | ChangeType(_, attribute):
            return None if attribute in names.columns else names
        case AddAttribute() | AddRelation() | OrderAttributes() | ChangeKey():
            return names


def before(names: Names, change: SchemaChange) -> Names | None:
    """The same relation and columns before the change; None when they were not there yet."""
    match change:
        case RenameRelation() if change.renamed == names.relation:
            return Names(change.relation, names.columns)
        case RenameAttribute(relation, old, new) if relation == names.relation:
            return Names(relation, _renamed(names.columns, new, old))
        case AddAttribute(relation, field) if relation == names.relation:
            return None if field.name in names.columns else names
        case AddRelation(relation) if relation == names.relation:
            return None
        case _:
            # A changed type is bridged by whoever reads the older rows: wider types hold them all.
            return names


def after_all(names: Names, changes: Iterable[SchemaChange]) -> Names | None:
    """`after` one change after the other."""
    current: Names | None = names
    for change in changes:
        if current is None:
            return None
        current = after(current, change)
    return current


def before_all(names: Names, changes: Iterable[SchemaChange]) -> Names | None:
    """`before` one change after the other, the latest first."""
    current: Names | None = names
    for change in changes:
        if current is None:
            return None
        current = before(current, change)
    return current


def _renamed(columns: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    return tuple(new if column == old else column for column in columns)
