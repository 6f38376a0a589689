"""The knowledge base: what the user says of relations that can stand for each other.

A *replacement* says that ``by`` can stand for ``relation``, attribute by attribute, perhaps through an
expression, and how the two contain each other. A *join constraint* says how two relations join, so
that one can supply a lost attribute while the other stays. Knows nothing of views.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace

from viewkeeper.algebra.expressions import Column, Expression, columns_of, substituted
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.types import Schema
from viewkeeper.errors import UsageError
from viewkeeper.evolution.changes import (
    ChangeType,
    DropAttribute,
    DropRelation,
    RenameAttribute,
    RenameRelation,
    SchemaChange,
)
from viewkeeper.views.catalog import CatalogRelation
from viewkeeper.views.definition import RelationName


class Containment(enum.Enum):
    """What the lost relation is to its replacement, as far as the replaced attributes go."""

    EQUAL = "equal"
    SUBSET = "subset"
    SUPERSET = "superset"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Replacement:
    """``by`` can stand for ``relation``; ``attributes`` maps its columns to expressions over ``by``.

    ``containment`` reads "``relation`` is … of ``by``". ``trusted``: the two change in the same
    transactions, so an equal containment holds at every moment and needs no look at the data.
    """

    relation: RelationName
    by: RelationName
    attributes: tuple[tuple[str, Expression], ...]
    containment: Containment = Containment.UNKNOWN
    trusted: bool = False

    def expression(self, attribute: str) -> Expression | None:
        """What stands for the attribute; None when nothing does."""
        return dict(self.attributes).get(attribute)

    def __str__(self) -> str:
        return f"{self.relation} by {self.by} ({self.containment.value})"


@dataclass(frozen=True)
class JoinConstraint:
    """``left`` and ``right`` join where all pairs of columns in ``on`` are equal."""

    left: RelationName
    right: RelationName
    on: tuple[tuple[str, str], ...]

    def seen_from(self, name: RelationName) -> JoinConstraint | None:
        """The same constraint with ``name`` on its left; None when it is on neither side."""
        if self.left == name:
            return self
        if self.right == name:
            return JoinConstraint(self.right, self.left, tuple((b, a) for a, b in self.on))
        return None

    def __str__(self) -> str:
        columns = ", ".join(f"{a} = {b}" for a, b in self.on)
        return f"{self.left} joins {self.right} on {columns}"


@dataclass(frozen=True)
class Knowledge:
    """All replacements and join constraints, in the order in which the user wrote them."""

    replacements: tuple[Replacement, ...] = ()
    joins: tuple[JoinConstraint, ...] = ()

    def replacing(self, name: RelationName) -> tuple[Replacement, ...]:
        return tuple(r for r in self.replacements if r.relation == name)

    def joining(self, left: RelationName, right: RelationName) -> tuple[JoinConstraint, ...]:
        """The constraints between the two, ``left`` on the left."""
        seen = (join.seen_from(left) for join in self.joins)
        return tuple(join for join in seen if join is not None and join.right == right)

    @property
    def relations(self) -> tuple[RelationName, ...]:
        """Every relation that it names: their changes must be known, should one be needed."""
        named = [name for r in self.replacements for name in (r.relation, r.by)]
        named += [name for join in self.joins for name in (join.left, join.right)]
        return tuple(dict.fromkeys(named))

    def after(self, change: SchemaChange) -> Knowledge:
        """What is still known once the change has happened, and views have been synchronized with it.

        What is gone can neither replace nor be replaced: should its name come back, it is another's.
        """
        moved = _moved(change)
        return Knowledge(
            tuple(moved(r) for r in self.replacements if _usable(r, change)),
            tuple(
                _moved_join(join, change)
                for join in self.joins
                if not _loses(change, join.left, {a for a, _ in join.on})
                and not _loses(change, join.right, {b for _, b in join.on})
            ),
        )


def _loses(change: SchemaChange, name: RelationName, columns: set[str]) -> bool:
    match change:
        case DropRelation(relation):
            return relation == name
        case DropAttribute(relation, attribute) | ChangeType(relation, attribute):
            return relation == name and attribute in columns
        case _:
            return False


def _usable(replacement: Replacement, change: SchemaChange) -> bool:
    named = (replacement.relation, replacement.by)
    return not (isinstance(change, DropRelation) and change.relation in named)


def _moved(change: SchemaChange) -> Callable[[Replacement], Replacement]:
    def moved(replacement: Replacement) -> Replacement:
        match change:
            case RenameRelation(relation):
                return replace(
                    replacement,
                    relation=_other(replacement.relation, relation, change.renamed),
                    by=_other(replacement.by, relation, change.renamed),
                )
            case RenameAttribute(relation, old, new):
                return _with_renamed(replacement, relation, old, new)
            case DropAttribute(relation, gone) | ChangeType(relation, gone) if (
                relation == replacement.by
            ):
                kept = tuple((a, e) for a, e in replacement.attributes if gone not in columns_of(e))
                return replace(replacement, attributes=kept)
            case DropAttribute(relation, gone) if relation == replacement.relation:
                kept = tuple((a, e) for a, e in replacement.attributes if a != gone)
                return replace(replacement, attributes=kept)
            case _:
                return replacement

    return moved


def _with_renamed(
    replacement: Replacement, relation: RelationName, old: str, new: str
) -> Replacement:
    attributes = replacement.attributes
    if replacement.relation == relation:
        attributes = tuple((new if a == old else a, e) for a, e in attributes)
    if replacement.by == relation:
        attributes = tuple((a, substituted(e, {old: Column(new)})) for a, e in attributes)
    return replace(replacement, attributes=attributes)


def _moved_join(join: JoinConstraint, change: SchemaChange) -> JoinConstraint:
    match change:
        case RenameRelation(relation):
            return JoinConstraint(
                _other(join.left, relation, change.renamed),
                _other(join.right, relation, change.renamed),
                join.on,
            )
        case RenameAttribute(relation, old, new):
            return replace(
                join,
                on=tuple(
                    (
                        new if join.left == relation and a == old else a,
                        new if join.right == relation and b == old else b,
                    )
                    for a, b in join.on
                ),
            )
        case _:
            return join


def _other(name: RelationName, old: RelationName, new: RelationName) -> RelationName:
    return new if name == old else name


def offers(relation: CatalogRelation, replacement: Replacement) -> Replacement:
    """The replacement cut down to what the relation that replaces really has, in types that fit."""
    kept = tuple((a, e) for a, e in replacement.attributes if _has_meaning(e, relation.schema))
    return replace(replacement, attributes=kept)


def _has_meaning(expression: Expression, schema: Schema) -> bool:
    try:
        type_of(expression, schema)
    except UsageError:
        return False
    return True
