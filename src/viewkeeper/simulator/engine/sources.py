"""A simulated database: a log of transactions and schema changes, exact cuts, and a feed that can go back.

As PostgreSQL does, a transaction is in the log before cuts show it, and two may become visible in another order
than that of the log. A schema change waits until all before it are visible, and is visible at once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import Row, Schema
from viewkeeper.sources.interface import (
    Position,
    RelationChange,
    RelationSchema,
    SchemaChange,
    SourceTransaction,
)
from viewkeeper.sources.transaction_block import TransactionBlock

Item = SourceTransaction | SchemaChange
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def position(number: int) -> Position:
    return {"n": number}


def compare(source: str, left: Position, right: Position) -> int:
    return int(left["n"] > right["n"]) - int(left["n"] < right["n"])


@dataclass(frozen=True)
class Write:
    """A transaction: rows out and rows in, by relation; ``tie`` makes it a part of a global one."""

    changes: tuple[tuple[str, tuple[Row, ...], tuple[Row, ...]], ...]
    tie: tuple[str, int] | None = None


@dataclass(frozen=True)
class Alter:
    """A schema change: the relation's new schema, or another name, or its end (``schema`` None).

    ``rewritten``: its rows are others after it, without a change of theirs in the log.
    """

    relation: str
    schema: Schema | None = None
    renamed_to: str | None = None
    renamed_columns: Mapping[str, str] = field(default_factory=dict)
    rewritten: tuple[Row, ...] | None = None


Update = Write | Alter
Contents = dict[str, Bag]


class SimulatedSource:
    """One database. Positions are numbers of log entries."""

    def __init__(self, name: str, initial: Mapping[str, Bag]) -> None:
        self.name = name
        self.log: list[Item] = []
        # The contents after each entry of the log, the initial ones first.
        self.history: list[Contents] = [dict(initial)]
        self._invisible: list[int] = []

    @property
    def end(self) -> int:
        return len(self.log)

    @property
    def now(self) -> Contents:
        return self.history[-1]

    @property
    def start(self) -> int:
        """A position before which everything is visible: a feed may begin there."""
        return min(self._invisible, default=self.end + 1) - 1

    def may_alter(self) -> bool:
        """A schema change waits for transactions that are not visible yet."""
        return not self._invisible

    def commit(self, update: Update, *, is_hidden: bool = False) -> None:
        number = self.end + 1
        if isinstance(update, Write):
            self._write(number, update)
            if is_hidden:
                self._invisible.append(number)
        else:
            self._alter(number, update)

    def _write(self, number: int, write: Write) -> None:
        after = dict(self.now)
        changes = []
        for relation, deleted, inserted in write.changes:
            schema = after[relation].schema
            signed = [*((row, -1) for row in deleted), *((row, 1) for row in inserted)]
            after[relation] = after[relation] + Bag(schema, signed)
            changes.append(RelationChange(relation, deleted, inserted))
        at = START + dt.timedelta(seconds=number)
        self.log.append(
            SourceTransaction(self.name, position(number), number, at, tuple(changes), write.tie)
        )
        self.history.append(after)

    def _alter(self, number: int, alter: Alter) -> None:
        after = dict(self.now)
        rows = after.pop(alter.relation)
        described = None
        if alter.renamed_to is not None:
            after[alter.renamed_to] = rows
        elif alter.schema is not None:
            after[alter.relation] = _altered(rows, alter, alter.schema)
            described = RelationSchema(alter.relation, alter.schema, (), "")
        self.log.append(
            SchemaChange(
                self.name,
                position(number),
                alter.relation,
                RelationSchema(alter.relation, rows.schema, (), ""),
                described,
                str(alter),
                alter.rewritten is not None,
                alter.renamed_columns,
                alter.renamed_to,
            )
        )
        self.history.append(after)

    @property
    def hidden(self) -> tuple[int, ...]:
        return tuple(self._invisible)

    def show(self, number: int) -> None:
        """A transaction becomes visible to cuts."""
        self._invisible.remove(number)

    def cut(self, relations: Iterable[str]) -> SimulatedCut:
        return SimulatedCut(self, tuple(relations))

    def items(self, start: int, count: int, relations: Iterable[str]) -> tuple[list[Item], int]:
        """What a feed of these relations brings from a position on, and where it stands then."""
        wanted = set(relations)
        found: list[Item] = []
        at = start
        for item in self.log[start : start + count]:
            at += 1
            if isinstance(item, SchemaChange):
                if item.relation in wanted:
                    found.append(item)
            else:
                kept = tuple(change for change in item.changes if change.relation in wanted)
                if kept or item.tie is not None:
                    found.append(item._replace(changes=kept))
        return found, at


def _altered(rows: Bag, alter: Alter, schema: Schema) -> Bag:
    if alter.rewritten is not None:
        return Bag.of(schema, alter.rewritten)
    old_names = {new: old for old, new in alter.renamed_columns.items()}
    places = [
        rows.schema.names.index(old) if (old := old_names.get(n, n)) in rows.schema else None
        for n in schema.names
    ]
    pairs = ((tuple(None if p is None else row[p] for p in places), c) for row, c in rows)
    return Bag(schema, pairs)


class SimulatedCut:
    """Contents at one moment: all of the log but what is not visible yet."""

    life = "one"

    def __init__(self, source: SimulatedSource, relations: tuple[str, ...]) -> None:
        self._hidden = frozenset(source.hidden)
        self._upto = source.end
        visible = [n for n in range(1, source.end + 1) if n not in self._hidden]
        self.bound = position(max(visible, default=0))
        self.contents: Contents = dict(source.now)
        for number in self._hidden:
            item = source.log[number - 1]
            if isinstance(item, SourceTransaction):
                for relation, deleted, inserted in item.changes:
                    schema = self.contents[relation].schema
                    signed = [*((row, 1) for row in deleted), *((row, -1) for row in inserted)]
                    self.contents[relation] = self.contents[relation] + Bag(schema, signed)
        self.missing = [name for name in relations if name not in self.contents]
        self.schemas = {
            name: RelationSchema(name, self.contents[name].schema, (), "")
            for name in relations
            if name in self.contents
        }

    def reflects_each(self, transactions: Sequence[SourceTransaction]) -> list[bool]:
        return [
            int(each.identity) <= self._upto and int(each.identity) not in self._hidden
            for each in transactions
        ]

    def reflects_stretch(self, stretch: TransactionBlock) -> list[bool]:
        return self.reflects_each(stretch.transactions())
