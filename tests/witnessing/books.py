"""What each source committed, in the order of its commits: learned from the tables, not from a log.

Whoever commits holds the source's lock over the commit and over the look at the tables that follows it.
So nothing else is committed in between, the order is that of the looks, and what is different from the
look before is what the transaction did, whatever its statements were. Transactions may be open side by
side; only their commits wait for each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from live.sources.rig import Writer
from viewkeeper.algebra import Bag, Schema
from viewkeeper.consistency import SourceHistories
from viewkeeper.timeline import Transaction
from viewkeeper.views import RelationName

Read = Callable[[Writer, RelationName, Schema], list[tuple[Any, ...]]]


def read_table(writer: Writer, name: RelationName, schema: Schema) -> list[tuple[Any, ...]]:
    """A relation's rows, by its own name."""
    rows = writer.fetch(f"SELECT {', '.join(schema.names)} FROM {name.relation}")
    return [tuple(row) for row in rows]


class Books:
    """The transactions since `begin`, of every source. ``read`` knows what tables are called now."""

    def __init__(self, schemas: Mapping[RelationName, Schema], read: Read = read_table) -> None:
        self.schemas = dict(schemas)
        self.sources = tuple(sorted({name.source for name in schemas}))
        self.locks = {source: threading.RLock() for source in self.sources}
        self._read = read
        self._now: dict[RelationName, Bag] = {}
        self._initial: dict[RelationName, Bag] = {}
        self._scripts: dict[str, list[Transaction]] = {}

    def begin(self, writers: Mapping[str, Writer]) -> None:
        """What is there now is the beginning. To be called while nobody writes."""
        for source in self.sources:
            self._now |= self._contents(source, writers[source])
        self._initial = dict(self._now)
        self._scripts = {source: [] for source in self.sources}

    def commit(self, source: str, writer: Writer) -> None:
        """End the writer's transaction, and take note of it."""
        with self.locks[source]:
            writer.commit()
            self.record(source, writer)

    def record(self, source: str, writer: Writer) -> None:
        """Something was committed, or perhaps was: see what. Holding the source's lock."""
        after = self._contents(source, writer)
        changes = tuple(
            (name, bag - self._now[name]) for name, bag in after.items() if bag != self._now[name]
        )
        self._now |= after
        if changes:
            script = self._scripts[source]
            script.append(Transaction(source, len(script) + 1, changes))

    @property
    def now(self) -> dict[RelationName, Bag]:
        return dict(self._now)

    @property
    def transactions(self) -> dict[str, int]:
        """How many of each source changed something."""
        return {source: len(script) for source, script in self._scripts.items()}

    def histories(self, relations: Iterable[RelationName] | None = None) -> SourceHistories:
        """The transactions as far as they concern some relations, numbered by themselves."""
        wanted = tuple(self.schemas if relations is None else relations)
        scripts: dict[str, list[Transaction]] = {name.source: [] for name in wanted}
        for source, script in scripts.items():
            for transaction in self._scripts[source]:
                changes = tuple(c for c in transaction.changes if c[0] in wanted)
                if changes:
                    script.append(Transaction(source, len(script) + 1, changes))
        return SourceHistories({name: self._initial[name] for name in wanted}, scripts)

    def _contents(self, source: str, writer: Writer) -> dict[RelationName, Bag]:
        return {
            name: Bag.of(schema, self._read(writer, name, schema))
            for name, schema in self.schemas.items()
            if name.source == source
        }
