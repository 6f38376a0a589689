"""A group's jobs without a group: view managers over sources in memory, which are ahead of every job."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa

from viewkeeper.algebra import Bag
from viewkeeper.arrow import arrow_schema as plain_schema
from viewkeeper.engine.integrator import Arrival
from viewkeeper.engine.view import View
from viewkeeper.live.managers.live import LiveManager
from viewkeeper.live.managers.manager_factory import ManagerFactory
from viewkeeper.live.questions.change_tables import ChangeTables
from viewkeeper.live.questions.pacing import Pace, SourceLimits
from viewkeeper.live.questions.source_queries import Questions
from viewkeeper.live.questions.stores import Stores
from viewkeeper.live.reading.contents import whole_schemas
from viewkeeper.protocols.messages import TXN, Reflected
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.sources.interface import KeyedRead, RelationChange
from viewkeeper.spark.arrow import table_of
from viewkeeper.spark.staged import Staging
from viewkeeper.timeline import Transaction
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.definition import RelationName, ViewDefinition


class MemoryCut:
    """Relations as they are at one moment; joins are SQLite's."""

    def __init__(self, contents: dict[str, Bag]) -> None:
        self.contents = contents

    def read(self, question: KeyedRead) -> Iterator[pa.RecordBatch]:
        bag = self.contents[question.relation]
        rows = [row for row, count in bag for _ in range(count)]
        if question.keys is not None:
            places = [bag.schema.position(name) for name in question.key_columns]
            wanted = {tuple(key.values()) for key in question.keys.to_pylist()}
            rows = [row for row in rows if tuple(row[p] for p in places) in wanted]
        places = [bag.schema.position(name) for name in question.columns]
        schema = plain_schema(bag.schema)
        arrays = [pa.array([row[p] for row in rows], schema.field(p).type) for p in places]
        yield pa.RecordBatch.from_arrays(
            arrays, schema=pa.schema([schema.field(p) for p in places])
        )

    def query(self, sql: str, schema, parameters=()) -> Iterator[pa.RecordBatch]:
        link = sqlite3.connect(":memory:")
        for relation, bag in self.contents.items():
            link.execute(f"CREATE TABLE {relation} ({', '.join(bag.schema.names)})")
            marks = ", ".join("?" * len(bag.schema))
            rows = [row for row, count in bag for _ in range(count)]
            link.executemany(f"INSERT INTO {relation} VALUES ({marks})", rows)
        rows = link.execute(sql).fetchall()
        link.close()
        types = plain_schema(schema)
        arrays = [
            pa.array([row[i] for row in rows], types.field(i).type) for i in range(len(types))
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=types)

    def row_estimate(self, relation: str) -> None:
        return None


@dataclass
class LiveWorld:
    """A scenario whose transactions arrive in some order and are worked on in some batches."""

    scenario: Scenario
    definition: ViewDefinition
    seed: int
    # Where a job's rows are staged; in memory, unless a session is given that everything goes to.
    session: Any = None
    # Stands for a session whose executors are this process, and which has nothing to compute.
    NOWHERE: ClassVar[Any] = SimpleNamespace(sparkContext=SimpleNamespace(master="local"))

    def __post_init__(self) -> None:
        self.rng = random.Random(f"live {self.seed}")
        self.arrivals = self._arrivals()
        self.states = self._states()
        self.tables = ChangeTables(whole_schemas([self.definition]))
        self.tables.add(self.arrivals)
        self.extent = self.states[0]
        self.staging = self._staging(Path())
        self.manager = self.made_manager()

    def _arrivals(self) -> list[Arrival]:
        left = {source: list(script) for source, script in self.scenario.scripts.items() if script}
        found: list[Arrival] = []
        while left:
            source = self.rng.choice(sorted(left))
            transaction = left[source].pop(0)
            if not left[source]:
                del left[source]
            changes = tuple((name, _change(name, bag)) for name, bag in transaction.changes)
            found.append(Arrival(len(found) + 1, None, transaction._replace(changes=changes), 1))  # type: ignore[arg-type]
        return found

    def _states(self) -> list[Bag]:
        """The view after each transaction, from scratch."""
        contents = dict(self.scenario.initial)
        states = [evaluated(self.definition, contents.get)]
        for arrival in self.arrivals:
            contents |= self._after(arrival, contents)
            states.append(evaluated(self.definition, contents.get))
        return states

    def _after(
        self, arrival: Arrival, contents: dict[RelationName, Bag]
    ) -> dict[RelationName, Bag]:
        changes = self._plain(arrival).changes
        return {name: contents[name] + change for name, change in changes}

    def _plain(self, arrival: Arrival) -> Transaction:
        source, number = arrival.transaction.source, arrival.transaction.number
        return self.scenario.scripts[source][number - 1]

    def made_manager(self) -> LiveManager:
        """A manager that begins at the extent that is committed."""
        sources = {name: SimpleNamespace(kind="sqlite") for name in self.scenario.scripts}
        world = self

        class InMemory(ManagerFactory):
            def _extent(self, view: str) -> pa.Table:
                return table_of(world.extent.schema, world.extent)

            def _stores(self, view: View) -> Stores:
                return Stores((), {})

        factory = InMemory(
            self.staging,
            tuple(sorted(sources)),
            self.tables,
            sources,  # type: ignore[arg-type]
            SimpleNamespace(bulk=self.session or self.NOWHERE),  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
        )
        return factory.manager(View(self.definition, ""))

    def run(self, batch_max: int) -> list[Bag]:
        """Do all jobs; the states that they lead to, each with those inside it where numbers say so."""
        states = [self.extent]
        told = done = 0
        while done < len(self.arrivals):
            size = self.rng.randint(1, min(batch_max, len(self.arrivals) - done))
            seen = self.rng.randint(done + size, len(self.arrivals))
            self.manager.arrived(self.arrivals[told:seen])
            told = max(told, seen)
            batch = tuple(self.arrivals[done : done + size])
            with tempfile.TemporaryDirectory() as folder:
                job = self._job(batch, told, self._staging(Path(folder)))
                table = self.manager.maintain(job)[self.definition.name]
            done += size
            self.manager.settled(self._numbers(done))
            states += self._shown(table, batch)
            self.extent = states[-1]
        return states

    def _shown(self, table: pa.Table, batch: tuple[Arrival, ...]) -> list[Bag]:
        schema = self.extent.schema
        rows = table.to_pylist()
        state, states = self.extent, []
        for arrival in batch:
            mine = [r for r in rows if r[TXN] == arrival.number]
            signed = [(tuple(r[name] for name in schema.names), r["_count"]) for r in mine]
            state = state + Bag.signed(schema, signed)
            states.append(state)
        return states

    def _numbers(self, done: int) -> dict[str, int]:
        numbers = dict.fromkeys(self.scenario.scripts, 0)
        for arrival in self.arrivals[:done]:
            numbers[arrival.transaction.source] = arrival.transaction.number
        return numbers

    def _staging(self, folder: Path) -> Staging:
        if self.session is None:
            return Staging(self.NOWHERE, folder)
        return Staging(self.session, folder, in_process_rows_max=0, in_arrow_rows_max=0)

    def _job(self, batch: tuple[Arrival, ...], told: int, staging: Staging) -> SimpleNamespace:
        """Its cuts have the batch, and of what else has arrived whatever chance makes visible."""
        last = batch[-1].number
        contents = dict(self.scenario.initial)
        for arrival in self.arrivals[:last]:
            contents |= self._after(arrival, contents)
        later = []
        for arrival in self.arrivals[last:told]:
            after = self._after(arrival, contents)
            # What depends on something that is not visible can't be visible itself.
            if self.rng.random() < 0.6 and all(n > 0 for bag in after.values() for _, n in bag):
                contents |= after
                later.append(arrival)
        cuts, reflected = {}, {}
        for source, number in self._numbers(last).items():
            mine = {n.relation: bag for n, bag in contents.items() if n.source == source}
            cuts[source] = MemoryCut(mine)
            also = (a.transaction.number for a in later if a.transaction.source == source)
            reflected[source] = Reflected(number, also=frozenset(also))
        paces = {source: Pace(SourceLimits()) for source in cuts}
        questions = Questions(cuts, reflected, staging, paces)  # type: ignore[arg-type]
        return SimpleNamespace(
            batch=batch,
            transactions=len(batch),
            concerned=(self.definition.name,),
            questions=questions,
            asking=lambda: contextlib.nullcontext(questions),
            stage=SimpleNamespace(path=staging.folder),
        )


def _change(name: RelationName, bag: Bag) -> RelationChange:
    deleted = [row for row, count in bag for _ in range(-count)]
    inserted = [row for row, count in bag for _ in range(count)]
    return RelationChange(name.relation, deleted, inserted)
