"""Changes of a source's schema, as data, and what they do to the catalog.

Where in its source's order a change stands is the feed's to say (`sources.interface.SchemaChange`). Knows nothing of
views.

| paper | here |
|---|---|
| AddSC | `AddAttribute`, `AddRelation` |
| RenameSC | `RenameAttribute`, `RenameRelation` |
| DropSC | `DropAttribute`, `DropRelation` |
| – | `ChangeType`: the paper has none; what can't be kept is a drop with a cast as replacement |
| – | `Rewrite`: the rows changed and nobody was told which (TRUNCATE); names and types stay |
| – | `OrderAttributes`: the columns stand in another order, which only whoever reads whole rows needs |
| – | `ChangeKey`: rows are told apart by other columns, or by none; what rests on the old key must not |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from viewkeeper.algebra.types import Field, Kind, Schema, Type
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

# A bigint has at most so many digits.
INTEGER_DIGITS = 19


@dataclass(frozen=True)
class AddAttribute:
    relation: RelationName
    field: Field

    def __str__(self) -> str:
        return f"add {self.relation}.{self.field.name} {self.field.type}"


@dataclass(frozen=True)
class RenameAttribute:
    relation: RelationName
    before: str
    after: str

    def __str__(self) -> str:
        return f"rename {self.relation}.{self.before} to {self.after}"


@dataclass(frozen=True)
class DropAttribute:
    relation: RelationName
    attribute: str

    def __str__(self) -> str:
        return f"drop {self.relation}.{self.attribute}"


@dataclass(frozen=True)
class AddRelation:
    relation: RelationName
    schema: Schema
    key: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"add {self.relation}"


@dataclass(frozen=True)
class RenameRelation:
    """``after`` is a name in the same source."""

    relation: RelationName
    after: str

    @property
    def renamed(self) -> RelationName:
        return RelationName(self.relation.source, self.after)

    def __str__(self) -> str:
        return f"rename {self.relation} to {self.renamed}"


@dataclass(frozen=True)
class DropRelation:
    relation: RelationName

    def __str__(self) -> str:
        return f"drop {self.relation}"


@dataclass(frozen=True)
class ChangeType:
    relation: RelationName
    attribute: str
    before: Type
    after: Type

    @property
    def is_widening(self) -> bool:
        return widens(self.before, self.after)

    def __str__(self) -> str:
        return f"change {self.relation}.{self.attribute} from {self.before} to {self.after}"


@dataclass(frozen=True)
class Rewrite:
    """The relation's contents changed without row changes in the feed: they must be read again."""

    relation: RelationName

    def __str__(self) -> str:
        return f"rewrite {self.relation}"


@dataclass(frozen=True)
class OrderAttributes:
    """The relation's columns, all of them, in the order that its rows have from here on."""

    relation: RelationName
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"order {self.relation} as {', '.join(self.names)}"


@dataclass(frozen=True)
class ChangeKey:
    """The relation's primary key from here on; without columns it has none."""

    relation: RelationName
    key: tuple[str, ...]

    def __str__(self) -> str:
        return f"key {self.relation} by {', '.join(self.key) or 'nothing'}"


SchemaChange = (
    AddAttribute
    | RenameAttribute
    | DropAttribute
    | AddRelation
    | RenameRelation
    | DropRelation
    | ChangeType
    | Rewrite
    | OrderAttributes
    | ChangeKey
)
Rename = RenameAttribute | RenameRelation


def widens(before: Type, after: Type) -> bool:
    """Whether every value of ``before`` is the same value as an ``after``."""
    if before == after:
        return True
    if after.kind is not Kind.DECIMAL:
        return False
    digits = after.precision - after.scale
    if before.kind is Kind.INTEGER:
        return digits >= INTEGER_DIGITS
    if before.kind is Kind.DECIMAL:
        return after.scale >= before.scale and digits >= before.precision - before.scale
    return False


# -- what a change does to the catalog ---------------------------------------------------------------


def catalog_after(catalog: Catalog, change: SchemaChange) -> Catalog:
    """The catalog once the change has happened; a relation that nobody knows stays unknown."""
    match change:
        case AddRelation(name, schema, key):
            others = tuple(r for r in catalog.relations if r.name != name)
            return Catalog((*others, CatalogRelation(name, schema, key)))
        case DropRelation(name):
            return Catalog(tuple(r for r in catalog.relations if r.name != name))
        case _:
            # Who begins before a rename may know the table by its new name as well, as it became later.
            is_known = relation_in(catalog, change.relation) is not None
            taken = change.renamed if is_known and isinstance(change, RenameRelation) else None
            return Catalog(
                tuple(
                    _relation_after(r, change) if r.name == change.relation else r
                    for r in catalog.relations
                    if r.name != taken
                )
            )


def _relation_after(relation: CatalogRelation, change: SchemaChange) -> CatalogRelation:
    fields, key = relation.schema.fields, relation.key
    match change:
        case AddAttribute(_, field):
            return replace(relation, schema=Schema((*fields, field)))
        case RenameAttribute(_, before, after):
            renamed = _each(fields, before, lambda f: Field(after, f.type))
            key = tuple(after if column == before else column for column in key)
            return CatalogRelation(relation.name, renamed, key)
        case DropAttribute(_, attribute):
            kept = Schema(tuple(f for f in fields if f.name != attribute))
            return CatalogRelation(relation.name, kept, () if attribute in key else key)
        case RenameRelation():
            return replace(relation, name=change.renamed)
        case ChangeType(_, attribute, _, after_type):
            retyped = _each(fields, attribute, lambda f: Field(f.name, after_type))
            return replace(relation, schema=retyped)
        case OrderAttributes(_, names):
            ordered = sorted(fields, key=lambda field: names.index(field.name))
            return replace(relation, schema=Schema(tuple(ordered)))
        case ChangeKey(_, other):
            return replace(relation, key=other)
        case _:
            return relation


def _each(fields: tuple[Field, ...], name: str, change: Callable[[Field], Field]) -> Schema:
    return Schema(tuple(change(field) if field.name == name else field for field in fields))


def relation_in(catalog: Catalog, name: RelationName) -> CatalogRelation | None:
    """The relation of exactly that name, if the catalog has it."""
    return next((r for r in catalog.relations if r.name == name), None)
