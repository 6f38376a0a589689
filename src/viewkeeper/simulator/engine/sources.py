"""A simulated database: a log of transactions and schema changes, exact cuts, and a feed that can go back.

As PostgreSQL does, a transaction is in the log before cuts show it, and two may become visible in another order
than that of the log. A schema change waits until all before it are visible, and is visible at once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from viewkeeper.algebra import Bag
from viewkeeper.simulator.engine.updates import (
    Alter,
    Statement,
    Table,
    Tables,
    Update,
    Write,
    altered,
    alters_of,
    reported,
)
from viewkeeper.sources.interface import (
    Position,
    RelationChange,
    SchemaChange,
    SourceTransaction,
)
from viewkeeper.sources.transaction_block import TransactionBlock

Item = SourceTransaction | SchemaChange
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def position(number: int, part: int = 0) -> Position:
    """Behind an entry of the log; with a part, between the changes of the entry that follows."""
    return {"n": number, "part": part} if part else {"n": number}


def compare(source: str, left: Position, right: Position) -> int:
    one, other = ((at["n"], at.get("part", 0)) for at in (left, right))
    return int(one > other) - int(one < other)


PARTS_MAX = 100


def number_of(at: Position) -> float:
    """A position as one number: what lies inside an entry has a fraction."""
    return float(at["n"]) + float(at.get("part", 0)) / PARTS_MAX


class SimulatedSource:
    """One database. Positions are numbers of log entries."""

    def __init__(self, name: str, initial: Mapping[str, Table]) -> None:
        self.name = name
        # The items of each entry: a transaction, or what a statement changes.
        self.log: list[tuple[Item, ...]] = []
        # The contents after each entry of the log, the initial ones first.
        self.history: list[Tables] = [dict(initial)]
        # The contents between the changes of an entry.
        self._inside: dict[float, Tables] = {}
        # Which run of the server this is.
        self.life = "1"
        self._invisible: list[int] = []

    @property
    def end(self) -> int:
        return len(self.log)

    @property
    def now(self) -> Tables:
        return self.history[-1]

    def at(self, number: float) -> Tables:
        """The contents at a position."""
        return self._inside[number] if number % 1 else self.history[int(number)]

    def changes_behind(self, number: float) -> Iterator[tuple[float, SchemaChange]]:
        """The schema changes behind a position, each with its own."""
        for item in (item for entry in self.log[int(number) :] for item in entry):
            if isinstance(item, SchemaChange) and number_of(item.position) > number:
                yield number_of(item.position), item

    @property
    def start(self) -> int:
        """A position before which everything is visible: a feed may begin there."""
        return min(self._invisible, default=self.end + 1) - 1

    def may_commit(self, update: Update) -> bool:
        """A schema change waits for transactions that are not visible yet."""
        return isinstance(update, Write) or not self._invisible

    def restart(self) -> None:
        """A server that comes back shows all that it has in its log."""
        self.life = str(int(self.life) + 1)
        self._invisible = []

    def commit(self, update: Update, *, is_hidden: bool = False) -> None:
        number = self.end + 1
        if isinstance(update, Write):
            self._show_what_it_rests_on(update)
            self._write(number, update)
            if is_hidden:
                self._invisible.append(number)
            return
        alters = alters_of(update)
        has_one_place = not isinstance(update, Statement) or update.has_one_place
        items: list[Item] = []
        tables = self.now
        for place, alter in enumerate(alters, 1):
            is_last = place == len(alters)
            at = position(number) if is_last or has_one_place else position(number - 1, place)
            after = altered(tables, alter)
            items += reported(self.name, at, alter, tables, after)
            tables = after
            if not is_last:
                self._inside[number_of(position(number - 1, place))] = tables
        self.log.append(tuple(items))
        self.history.append(tables)

    def _show_what_it_rests_on(self, write: Write) -> None:
        """A transaction that changes a row sees the one that wrote it, and so do cuts from then on."""
        for number in self.hidden:
            for item in self.log[number - 1]:
                if isinstance(item, SourceTransaction) and self._meet(item, write):
                    self._invisible.remove(number)

    def _meet(self, earlier: SourceTransaction, write: Write) -> bool:
        for relation, *rows in write.changes:
            key = self.now[relation].key
            places = [self.now[relation].rows.schema.names.index(c) for c in key]
            mine = {tuple(row[p] for p in places) for some in rows for row in some}
            theirs = (c for c in earlier.changes if c.relation == relation)
            others = {tuple(r[p] for p in places) for _, *c in theirs for some in c for r in some}
            if key and mine & others:
                return True
        return False

    def _write(self, number: int, write: Write) -> None:
        after = dict(self.now)
        changes = []
        for relation, deleted, inserted in write.changes:
            table = after[relation]
            signed = [*((row, -1) for row in deleted), *((row, 1) for row in inserted)]
            rows = table.rows + Bag(table.rows.schema, signed)
            after[relation] = replace(table, rows=rows)
            changes.append(RelationChange(relation, deleted, inserted))
        at = START + dt.timedelta(seconds=number)
        self.log.append(
            (SourceTransaction(self.name, position(number), number, at, tuple(changes), write.tie),)
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
        at = min(start + count, self.end)
        for number in range(start + 1, at + 1):
            skips = [i for i in self.log[number - 1] if isinstance(i, SchemaChange) and i.skips]
            if any(item.relation in wanted for item in skips):
                found = self._skipped(found, skips[0])
            for item in self.log[number - 1]:
                found += self._told(item, wanted)
        return found, at

    def _skipped(self, found: list[Item], torn: SchemaChange) -> list[Item]:
        """What was not recorded is left out, back to the last schema change; of the relations that it
        changed the feed says that they must be read again."""
        kept = list(found)
        changed: dict[str, None] = {}
        while kept and isinstance(kept[-1], SourceTransaction) and kept[-1].tie is None:
            last = kept.pop()
            changed |= dict.fromkeys(c.relation for c in last.changes)  # type: ignore[union-attr]
        at = int(torn.position["n"])
        later = {c.relation for _, c in self.changes_behind(at)}
        if later & {*changed, torn.relation}:
            return found  # a feed that skips goes to the present, behind all changes of these relations
        for relation in changed:
            if relation != torn.relation:
                told = self.history[at][relation].described(relation)
                kept.append(replace(torn, relation=relation, before=told, after=told))
        return kept

    def _told(self, item: Item, wanted: set[str]) -> list[Item]:
        if isinstance(item, SchemaChange):
            return [item] if item.relation in wanted else []
        kept = tuple(change for change in item.changes if change.relation in wanted)
        return [item._replace(changes=kept)] if kept or item.tie is not None else []


class SimulatedCut:
    """Contents at one moment: all of the log but what is not visible yet."""

    def __init__(self, source: SimulatedSource, relations: tuple[str, ...]) -> None:
        self._source = source
        self.life = source.life
        self._hidden = frozenset(source.hidden)
        self._upto = source.end
        visible = [n for n in range(1, source.end + 1) if n not in self._hidden]
        self.bound = position(max(visible, default=0))
        self.contents: dict[str, Bag] = {name: t.rows for name, t in source.now.items()}
        for number in self._hidden:
            for item in source.log[number - 1]:
                if isinstance(item, SourceTransaction):
                    self._take_out(item)
        self.missing = [name for name in relations if name not in self.contents]
        self.schemas = {
            name: source.now[name].described(name) for name in relations if name in self.contents
        }

    def _take_out(self, transaction: SourceTransaction) -> None:
        for relation, deleted, inserted in transaction.changes:
            schema = self.contents[relation].schema
            signed = [*((row, 1) for row in deleted), *((row, -1) for row in inserted)]
            self.contents[relation] = self.contents[relation] + Bag(schema, signed)

    @property
    def is_no_prefix(self) -> bool:
        """Whether it shows a transaction, and not one that its log has before."""
        return any(number < self.bound["n"] for number in self._hidden)

    @property
    def is_lost(self) -> bool:
        """Whether the server was restarted since: nothing can be asked of it any more."""
        return self.life != self._source.life

    @property
    def is_outdated(self) -> bool:
        """Whether a relation of it has another schema by now: the source may refuse to answer (a broken query)."""
        changes = self._source.changes_behind(self._upto)
        return any(change.relation in self.schemas for _, change in changes)

    def reflects_each(self, transactions: Sequence[SourceTransaction]) -> list[bool]:
        return [
            int(each.identity) <= self._upto and int(each.identity) not in self._hidden
            for each in transactions
        ]

    def reflects_block(self, block: TransactionBlock) -> list[bool]:
        return self.reflects_each(block.transactions())


__all__ = ["Alter", "SimulatedCut", "SimulatedSource", "Statement", "Table", "Write"]
