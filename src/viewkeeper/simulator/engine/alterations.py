"""Schema changes, drawn for a source: of every kind that feeds report."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from viewkeeper.algebra.types import INTEGER, STRING, Field, Kind, Row, Schema, Type, decimal_type
from viewkeeper.simulator.engine.updates import Alter, Statement, Table, Tables, Update, altered

PLAIN = ("add", "rename column", "rename", "drop column", "rewrite", "unused", "drop")
# What primary keys and types become, and tables that others take the place of.
HARD = (*PLAIN, "key", "key", "type", "type", "exchange", "exchange", "rebuild", "skip", "several")
TYPES = (INTEGER, decimal_type(20, 2), decimal_type(10, 1), STRING)


def value(of: Type, number: int) -> Any:
    """Some value of a type, the same for the same number."""
    if of.kind is Kind.DECIMAL:
        return Decimal(number).quantize(Decimal(1).scaleb(-of.scale))
    return str(number) if of == STRING else number


def kinds_of(updates: Iterable[Update]) -> Counter[str]:
    """How many schema changes of each kind there are among updates."""
    found: Counter[str] = Counter()
    for update in updates:
        found["several in one statement"] += isinstance(update, Statement)
        alters = (update,) if isinstance(update, Alter) else getattr(update, "alters", ())
        found.update(_kind(alter) for alter in alters)
    return found


def _kind(alter: Alter) -> str:
    if alter.exchanged_with is not None:
        return "tables exchanged"
    if alter.renamed_to is not None:
        return "tables renamed"
    if alter.schema is None:
        return "tables dropped"
    if alter.rewritten is not None:
        return "tables skipped and read again" if alter.skips else "tables rewritten"
    if alter.key is not None:
        return "primary keys"
    return "columns renamed" if alter.renamed_columns else "columns added, dropped or retyped"


class Alterations:
    """Draws one change; ``fresh`` makes names that were never used."""

    def __init__(self, randomness: random.Random, row: Callable[[Schema], Row], fresh: str) -> None:
        self._random = randomness
        self._row = row
        self._fresh = fresh

    def drawn(self, tables: Mapping[str, Table], kinds: tuple[str, ...]) -> Alter | Statement:
        """A change of some table; another kind where that one is not possible."""
        name = self._random.choice(sorted(tables))
        kind = self._random.choice(kinds)
        if kind == "several":
            return self._several(dict(tables))
        return self._one(dict(tables), name, kind)

    def _one(self, tables: Tables, name: str, kind: str) -> Alter:
        schema = tables[name].rows.schema
        match kind:
            case "add":
                return Alter(name, self._with_column(schema))
            case "rename column":
                old = self._random.choice([n for n in schema.names if n not in ("i", "k")])
                return self._column_renamed(name, schema, old)
            case "rename":
                return Alter(name, renamed_to=f"{name}{self._fresh}")
            case "drop column" if "v" in schema:
                return Alter(name, _without(schema, "v"))
            case "drop" if len(tables) > 1:
                return Alter(name)
            case "drop now":
                return Alter(name)
            case "rewrite":
                return Alter(name, schema, rewritten=self._rows(schema))
            case "key" if "i" in schema:
                key = self._random.choice((("i",), ("i", "k"), ("i", "k"), ()))
                is_possible = _tells_apart(tables[name], key)
                return Alter(name, schema, key=key if is_possible else ())
            case "type" if "v" in schema:
                return Alter(name, self._retyped(schema, self._random.choice("vvvvw")))
            case "exchange" if len(tables) > 1:
                other = self._random.choice([n for n in sorted(tables) if n != name])
                return Alter(name, exchanged_with=other)
            case "rebuild" | "skip":
                after = self._random.choice((schema, self._with_column(schema)))
                rows = self._rows(after)
                told_by = tuple(c for c in ("i",) if c in after)
                return Alter(name, after, rewritten=rows, key=told_by, skips=kind == "skip")
        spare = [n for n in schema.names if n not in ("k", "v")]
        if spare and kind != "add":
            return Alter(name, _without(schema, spare[0]))
        return Alter(name, self._with_column(schema))

    def _several(self, tables: Tables) -> Statement:
        """Two changes in one transaction: of two tables, or of one that is renamed as well."""
        names = self._random.sample(sorted(tables), min(2, len(tables)))
        kinds = [self._random.choice(("add", "rename column", "rename", "rewrite")) for _ in names]
        if len(names) < 2 or self._random.random() < 0.4:
            names, kinds = [names[0]] * 2, [kinds[0], "rename"]
        if kinds[0] == "rename" and names[0] == names[-1]:
            kinds[0] = "add"
        alters = []
        for name, kind in zip(names, kinds, strict=True):
            alters.append(self._one(tables, name, kind))
            tables = altered(tables, alters[-1])
        return Statement(tuple(alters), has_one_place=self._random.random() < 0.5)

    def _rows(self, schema: Schema) -> tuple[Row, ...]:
        return tuple(self._row(schema) for _ in range(self._random.randint(0, 2)))

    def _with_column(self, schema: Schema) -> Schema:
        return Schema((*schema, Field(f"c{self._fresh}", STRING)))

    def _column_renamed(self, name: str, schema: Schema, old: str) -> Alter:
        new = f"c{self._fresh}"
        fields = (Field(new if f.name == old else f.name, f.type) for f in schema)
        return Alter(name, Schema(tuple(fields)), renamed_columns={old: new})

    def _retyped(self, schema: Schema, column: str) -> Schema:
        column = column if column in schema else "v"
        others = [t for t in TYPES if t != schema.type_of(column)]
        wanted = self._random.choice(others)
        return Schema(tuple(Field(f.name, wanted if f.name == column else f.type) for f in schema))


def _tells_apart(table: Table, key: tuple[str, ...]) -> bool:
    places = [table.rows.schema.names.index(column) for column in key]
    values = [tuple(row[p] for p in places) for row, count in table.rows for _ in range(count)]
    return len(values) == len(set(values))


def _without(schema: Schema, column: str) -> Schema:
    return Schema(tuple(f for f in schema if f.name != column))
