"""GROUP BY over numbered changes: what is kept for each group, and how it leads to the next result.

A grouping's change depends on rows that did not change, so something of them must be kept. Here it is
an *accumulator* for each group (how many rows, the sum and the number of present values of each
argument, its least and greatest) and, for MIN, MAX and DISTINCT inside an aggregate, the *values*: each
argument's bag by group. A change carries the number of its transaction in its last column; for every
transaction that changes a group's result there is one row out and one row in with that number.

DISTINCT is the grouping by all columns without aggregates.

What is kept is read by key, and no more of it than the change needs. A least value that is not deleted
stays a bound for the whole batch, so the other values are asked for only when it is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from viewkeeper.algebra.bag import Bag, SignedRow
from viewkeeper.algebra.expressions import (
    Aggregate,
    Column,
    Expression,
    IsNull,
    Not,
    Output,
)
from viewkeeper.algebra.grouping import aggregate_fields
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.measures import measure_of, measure_type, never_null, scaled
from viewkeeper.algebra.running import Group, Kept, Wanted
from viewkeeper.algebra.types import (
    DOUBLE,
    INTEGER,
    Field,
    Row,
    Schema,
    Type,
)
from viewkeeper.errors import invariant

GROUPS = "groups"
ROWS = "rows"
VALUE = "value"


def values_of(argument: int) -> str:
    """The store of an argument's values, by the argument's place."""
    return f"values{argument}"


@dataclass(frozen=True)
class Lookup:
    """Rows of a store that are needed: those with one of the ``keys``, or all. NULL equals NULL."""

    store: str
    key_columns: tuple[str, ...] = ()
    keys: Bag | None = None


@dataclass
class Found:
    """What the lookups gave, by store: first the groups and touched values, then whole bags."""

    first: dict[str, Bag] = field(default_factory=dict)
    whole: dict[str, Bag] = field(default_factory=dict)


@dataclass(frozen=True)
class Accumulated:
    """The numbered change of the groups' rows, and of each store."""

    change: Bag
    stores: dict[str, Bag]


@dataclass(frozen=True)
class Accumulation:
    """A grouping of rows over ``schema``, and what is kept to maintain it."""

    keys: tuple[Output, ...]
    aggregates: tuple[Aggregate, ...]
    schema: Schema

    # -- what goes in, what comes out, what is kept ------------------------------------------------

    @cached_property
    def arguments(self) -> tuple[Expression, ...]:
        """What the aggregates are over, each expression once."""
        given = (a.argument for a in self.aggregates if a.argument is not None)
        return tuple(dict.fromkeys(given))

    @cached_property
    def wanted(self) -> tuple[Wanted, ...]:
        """For each argument, what the aggregates want to know of it."""
        return tuple(
            Wanted.by([a for a in self.aggregates if a.argument == argument])
            for argument in self.arguments
        )

    @cached_property
    def inputs(self) -> tuple[Output, ...]:
        """The columns that changes have, before their number: keys and arguments."""
        keys = (Output(f"k{i}", key.expression) for i, key in enumerate(self.keys))
        arguments = (Output(f"a{i}", argument) for i, argument in enumerate(self.arguments))
        return (*keys, *arguments)

    @property
    def key_columns(self) -> tuple[str, ...]:
        return tuple(f"k{i}" for i in range(len(self.keys)))

    @cached_property
    def result_schema(self) -> Schema:
        """A group's row: its keys and its aggregates, under their own names."""
        keys = (Field(k.name, type_of(k.expression, self.schema)) for k in self.keys)
        return Schema((*keys, *aggregate_fields(self.aggregates, self.schema)))

    @cached_property
    def stores(self) -> dict[str, Schema]:
        """What is kept, by name: the groups' accumulators, and the values of some arguments."""
        keys = tuple(
            Field(name, f.type)
            for name, f in zip(self.key_columns, self.result_schema, strict=False)
        )
        kept = [Field(ROWS, INTEGER)]
        found: dict[str, Schema] = {}
        for index, wanted in enumerate(self.wanted):
            argument = self._argument_type(index)
            types = {name: measure_type(name, argument) for name in wanted.measures}
            kept += [Field(f"{name}{index}", type) for name, type in types.items()]
            if wanted.values:
                found[values_of(index)] = Schema((*keys, Field(VALUE, argument)))
        return {GROUPS: Schema((*keys, *kept)), **found}

    @cached_property
    def values_by_store(self) -> dict[str, int]:
        """The stores of values, each with the place of its argument."""
        return {values_of(i): i for i, wanted in enumerate(self.wanted) if wanted.values}

    def lookups(self, store: str) -> tuple[tuple[str, ...], ...]:
        """The columns by which a store is looked up."""
        if store == GROUPS:
            return (self.key_columns,)
        wanted = self.wanted[self.values_by_store[store]]
        touched = ((*self.key_columns, VALUE),) if wanted.distinct else ()
        return (*touched, self.key_columns) if wanted.extremes else touched

    def _argument_type(self, index: int) -> Type:
        return type_of(self.arguments[index], self.schema)

    @cached_property
    def sums_of_doubles(self) -> tuple[Aggregate, ...]:
        """The aggregates that can't be accumulated: adding and taking away doubles does not cancel."""
        return tuple(
            a
            for a in self.aggregates
            if a.function in ("sum", "avg")
            and a.argument is not None
            and type_of(a.argument, self.schema) == DOUBLE
        )

    # -- from whole relations ----------------------------------------------------------------------

    def initial(self, rows: Any) -> dict[str, Any]:
        """What is kept when these are all rows: a relation of any body, with the `inputs`."""
        keys = tuple(Output(name, Column(name)) for name in self.key_columns)
        outputs = [*keys, Output(ROWS, Column(ROWS))]
        aggregates = [Aggregate(ROWS, "count")]
        found: dict[str, Any] = {}
        for index, wanted in enumerate(self.wanted):
            argument = Column(f"a{index}")
            for name in wanted.measures:
                measure = f"{name}{index}"
                type = self.stores[GROUPS].type_of(measure)
                aggregates.append(measure_of(name, measure, argument, self._argument_type(index)))
                outputs.append(Output(measure, never_null(name, Column(measure), type)))
            if wanted.values:
                present = rows.select((*keys, Output(VALUE, argument)))
                found[values_of(index)] = present.where(Not(IsNull(Column(VALUE))))
        groups = rows.grouped(keys, tuple(aggregates)).select(tuple(outputs))
        return {GROUPS: groups, **found}

    def grouped(self, rows: Any) -> Any:
        """The groups' rows when these are all rows: a relation of any body, with the `inputs`."""
        keys = tuple(Output(k.name, Column(f"k{i}")) for i, k in enumerate(self.keys))
        aggregates = tuple(
            a if place is None else replace(a, argument=Column(f"a{place}"))
            for a, place, _ in self._columns
        )
        return rows.grouped(keys, aggregates)

    # -- what must be looked up --------------------------------------------------------------------

    def first_lookups(self, change: Bag) -> list[Lookup]:
        """The touched groups, and how often touched values are there where only that matters."""
        found = [self._lookup(GROUPS, change, self.key_columns)]
        for index, wanted in enumerate(self.wanted):
            if wanted.distinct:
                columns = (*self.key_columns, f"a{index}")
                names = (*self.key_columns, VALUE)
                found.append(self._lookup(values_of(index), change, columns, names))
        return found

    def further_lookups(self, change: Bag, groups: Bag) -> list[Lookup]:
        """All values of those groups whose least or greatest value is deleted."""
        if not any(wanted.extremes for wanted in self.wanted):
            return []
        width = len(self.keys)
        stored = {row[:width]: self._kept(row[width:]) for row, _ in groups}
        found = []
        for index, wanted in enumerate(self.wanted):
            bounds = {key: wanted.bounds(kept[index]) for key, (_, kept) in stored.items()}
            fading = {
                row[:width]
                for row, count in change
                if count < 0 and row[width + index] in bounds.get(row[:width], ())
            }
            if fading:
                schema = Schema(self.stores[GROUPS].fields[:width])
                keys = Bag(schema, ((key, 1) for key in sorted(fading, key=repr)))
                columns = self.key_columns
                found.append(Lookup(values_of(index), columns, keys if columns else None))
        return found

    def _lookup(
        self, store: str, change: Bag, columns: tuple[str, ...], names: tuple[str, ...] = ()
    ) -> Lookup:
        if not columns:
            return Lookup(store)
        names = names or columns
        outputs = tuple(Output(n, Column(c)) for n, c in zip(names, columns, strict=True))
        return Lookup(store, names, change.support().select(outputs).support())

    # -- the running aggregates --------------------------------------------------------------------

    def applied(self, change: Bag, found: Found) -> Accumulated:
        """What the change, numbered in its last column, makes of the groups that were found."""
        width = len(self.keys)
        by_group: dict[Row, list[SignedRow]] = {}
        for row, count in change:
            by_group.setdefault(row[:width], []).append((row[width:], count))
        kept = {row[:width]: row[width:] for row, _ in found.first[GROUPS]}
        counts = _by_group(found.first, width)
        whole = _by_group(found.whole, width)
        rows: list[SignedRow] = []
        stored: list[SignedRow] = []
        for key, members in by_group.items():
            before = kept.get(key)
            group = Group(
                self._kept(before),
                self.wanted,
                [counts.get(values_of(i), {}).get(key, {}) for i in range(len(self.wanted))],
                [whole.get(values_of(i), {}).get(key) for i in range(len(self.wanted))],
            )
            rows += self._results(key, group, members)
            after = self._stored(group)
            last = max(row[-1] for row, _ in members)  # type: ignore[type-var]
            if before is not None:
                stored.append(((*key, *before, last), -1))
            if after is not None:
                stored.append(((*key, *after, last), 1))
        number = change.schema.fields[-1]
        groups = Bag(Schema((*self.stores[GROUPS].fields, number)), stored)
        result = Bag(Schema((*self.result_schema.fields, number)), rows)
        return Accumulated(result, {GROUPS: groups, **self._value_changes(change)})

    def _results(self, key: Row, group: Group, members: list[SignedRow]) -> Iterable[SignedRow]:
        """One row out and one row in for each transaction that changes the group's result."""
        by_number: dict[Any, list[SignedRow]] = {}
        for row, count in members:
            by_number.setdefault(row[-1], []).append((row[:-1], count))
        before = self._result(group)
        for number in sorted(by_number):
            group.change(by_number[number])
            after = self._result(group)
            if after != before:
                if before is not None:
                    yield (*key, *before, number), -1
                if after is not None:
                    yield (*key, *after, number), 1
            before = after

    def _result(self, group: Group) -> Row | None:
        if self.keys and not group.rows:
            return None
        return tuple(
            group.rows if index is None else group.arguments[index].value(aggregate, type)
            for aggregate, index, type in self._columns
        )

    @cached_property
    def _columns(self) -> list[tuple[Aggregate, int | None, Type]]:
        """Each aggregate with the place of its argument and the type of its column."""
        place = {argument: index for index, argument in enumerate(self.arguments)}
        fields = self.result_schema.fields[len(self.keys) :]
        return [
            (a, None if a.argument is None else place[a.argument], f.type)
            for a, f in zip(self.aggregates, fields, strict=True)
        ]

    def _kept(self, row: Row | None) -> tuple[int, list[Kept]]:
        """A stored accumulator without its key: the number of rows, and what is kept by argument."""
        if row is None:
            return 0, [Kept() for _ in self.wanted]
        rows, *measures = row
        invariant(isinstance(rows, int), "an accumulator counts its rows")
        values = iter(measures)
        return rows, [  # type: ignore[return-value]
            Kept(**{name: next(values) for name in wanted.measures})  # type: ignore[arg-type]
            for wanted in self.wanted
        ]

    def _stored(self, group: Group) -> Row | None:
        if self.keys and not group.rows:
            return None
        return (
            group.rows,
            *(
                scaled(getattr(argument.kept, name), self.stores[GROUPS].type_of(f"{name}{index}"))
                for index, (wanted, argument) in enumerate(
                    zip(self.wanted, group.arguments, strict=True)
                )
                for name in wanted.measures
            ),
        )

    def _value_changes(self, change: Bag) -> dict[str, Bag]:
        number = change.schema.names[-1]
        keys = tuple(Output(name, Column(name)) for name in self.key_columns)
        return {
            values_of(index): change.select(
                (*keys, Output(VALUE, Column(f"a{index}")), Output(number, Column(number)))
            ).where(Not(IsNull(Column(VALUE))))
            for index, wanted in enumerate(self.wanted)
            if wanted.values
        }


def _by_group(found: dict[str, Bag], width: int) -> dict[str, dict[Row, dict[Any, int]]]:
    """Bags of values as counts by group and value."""
    result: dict[str, dict[Row, dict[Any, int]]] = {}
    for store, bag in found.items():
        if store == GROUPS:
            continue
        groups = result.setdefault(store, {})
        for row, count in bag:
            groups.setdefault(row[:width], {})[row[width]] = count
    return result
