"""What happens at a simulated database: transactions, and statements that change schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import Kind, Row, Schema, Type, Value
from viewkeeper.sources.interface import Position, RelationSchema, SchemaChange


@dataclass(frozen=True)
class Write:
    """A transaction: rows out and rows in, by relation; ``tie`` makes it a part of a global one."""

    changes: tuple[tuple[str, tuple[Row, ...], tuple[Row, ...]], ...]
    tie: tuple[str, int] | None = None


@dataclass(frozen=True)
class Alter:
    """A schema change: the relation's new schema, or another name, or its end (``schema`` None).

    A relation that was not there before is made.
    """

    relation: str
    schema: Schema | None = None
    renamed_to: str | None = None
    renamed_columns: Mapping[str, str] = field(default_factory=dict)
    # Its rows are others after it, without a change of theirs in the log.
    rewritten: tuple[Row, ...] | None = None
    # The primary key after it; None: as before, by the columns' names after it.
    key: tuple[str, ...] | None = None
    # The two tables exchange their names: a view means the one that has the name.
    exchanged_with: str | None = None
    # The feed has not recorded what happened since the schema change before.
    skips: bool = False


@dataclass(frozen=True)
class Statement:
    """Several schema changes in one transaction of the source.

    ``has_one_place``: its changes have one position, as those of a MariaDB statement have; else each has its own,
    as those of a PostgreSQL transaction have.
    """

    alters: tuple[Alter, ...]
    has_one_place: bool = True


Update = Write | Alter | Statement


def alters_of(update: Update) -> tuple[Alter, ...]:
    """The schema changes that it is made of."""
    match update:
        case Statement(alters):
            return alters
        case Alter():
            return (update,)
        case Write():
            return ()


@dataclass(frozen=True)
class Table:
    """A relation's rows, and the columns that tell them apart."""

    rows: Bag
    key: tuple[str, ...] = ()

    def described(self, relation: str) -> RelationSchema:
        return RelationSchema(relation, self.rows.schema, self.key, "")


Tables = dict[str, Table]


def altered(tables: Tables, alter: Alter) -> Tables:
    """The tables after a schema change."""
    after = dict(tables)
    table = after.pop(alter.relation, None)
    if alter.exchanged_with is not None and table is not None:
        other = after.pop(alter.exchanged_with)
        return after | {alter.relation: other, alter.exchanged_with: table}
    if alter.renamed_to is not None and table is not None:
        after[alter.renamed_to] = table
    elif alter.schema is not None:
        key = _key_after(table, alter, alter.schema)
        if alter.rewritten is not None:
            after[alter.relation] = Table(Bag.of(alter.schema, alter.rewritten), key)
        elif table is not None:
            rows = reshaped(table.rows, alter.schema, alter.renamed_columns)
            after[alter.relation] = Table(rows, key)
    return after


def _key_after(table: Table | None, alter: Alter, schema: Schema) -> tuple[str, ...]:
    if alter.key is not None or table is None:
        return alter.key or ()
    key = tuple(alter.renamed_columns.get(column, column) for column in table.key)
    return key if all(column in schema for column in key) else ()


def reshaped(rows: Bag, schema: Schema, renamed: Mapping[str, str]) -> Bag:
    """Rows of one schema as the source shows them under the next: new columns are NULL."""
    old_names = {new: old for old, new in renamed.items()}
    old = [old_names.get(name, name) for name in schema.names]
    places = [rows.schema.names.index(name) if name in rows.schema else None for name in old]
    pairs = (
        (
            tuple(
                None if place is None else converted(row[place], field.type)
                for place, field in zip(places, schema, strict=True)
            ),
            count,
        )
        for row, count in rows
    )
    return Bag(schema, pairs)


def converted(value: Value, to: Type) -> Value:
    """A value as the source gives it in a column of that type."""
    if value is None:
        return None
    match to.kind:
        case Kind.INTEGER:
            return int(str(value).split(".", 1)[0])
        case Kind.DECIMAL:
            return Decimal(str(value)).quantize(Decimal(1).scaleb(-to.scale))
        case _:
            return str(value)


def reported(
    source: str, position: Position, alter: Alter, before: Tables, after: Tables
) -> Iterator[SchemaChange]:
    """What the source says of it: one change, or one for each of two tables that exchange names."""
    names = [alter.relation] if alter.exchanged_with is None else _exchanged(alter)
    for name in names:
        # A renamed table is not there under its old name, unless another took it.
        is_left = alter.renamed_to is not None
        yield SchemaChange(
            source,
            position,
            name,
            before[name].described(name) if name in before else None,
            after[name].described(name) if name in after and not is_left else None,
            str(alter),
            alter.rewritten is not None or alter.exchanged_with is not None,
            alter.renamed_columns,
            alter.renamed_to,
            skips=alter.skips,
        )


def _exchanged(alter: Alter) -> list[str]:
    return [alter.relation, alter.exchanged_with or alter.relation]
