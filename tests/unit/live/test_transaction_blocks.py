"""A group that is told of blocks does what it would do with their transactions one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slices import seeds
from unit.live.live_world import LiveWorld
from unit.sources.test_transaction_block import SCHEMA, Script, block_of, scripts
from viewkeeper.arrow import batch_of
from viewkeeper.engine.cuts import reflected_by
from viewkeeper.engine.integrator import (
    Arrival,
    Integrator,
    last_positions,
    numbers_of,
    reflected_numbers,
    rows_in,
    singly,
    states_of,
    transactions_in,
)
from viewkeeper.live.managers.live import IncrementalManager
from viewkeeper.live.questions.change_tables import ChangeTables
from viewkeeper.protocols.batched_sweep import BatchedSweep
from viewkeeper.protocols.messages import Reflected
from viewkeeper.simulator.generator import Size, random_scenario
from viewkeeper.sources.interface import RelationChange
from viewkeeper.sources.transaction_block import ChangedRows, TransactionBlock
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import RelationName

NAMES = [RelationName(source, relation) for source in "st" for relation in "ab"]
# What arrives, source by source: some as blocks, some one by one.
lots = st.lists(st.tuples(st.sampled_from("st"), st.booleans(), scripts), max_size=5)
Lots = list[tuple[str, bool, list[Script]]]


def integrators(told: Lots) -> tuple[Integrator, Integrator]:
    """The same has arrived at both: as it was told, and one by one."""
    mixed, plain = Integrator(NAMES), Integrator(NAMES)
    first = dict.fromkeys("st", 1)
    for source, is_block, changed in told:
        block = block_of(changed, source, first[source])
        first[source] += len(changed)
        for transaction in block.transactions():
            plain.arrived(transaction)
            if not is_block:
                mixed.arrived(transaction)
        if is_block:
            mixed.block_arrived(block)
    return mixed, plain


@given(lots)
def test_a_block_is_numbered_like_its_transactions(told: Lots):
    mixed, plain = integrators(told)
    assert list(singly(mixed.pending)) == list(plain.pending)
    assert mixed.waiting == plain.waiting == transactions_in(plain.pending)
    assert [mixed.newest(s) for s in "st"] == [plain.newest(s) for s in "st"]
    assert numbers_of(mixed.pending).tolist() == [arrival.number for arrival in plain.pending]
    assert states_of(tuple(mixed.pending)) == states_of(tuple(plain.pending))
    assert last_positions(mixed.pending) == last_positions(plain.pending)


reflections = st.builds(
    Reflected, st.integers(0, 12), also=st.frozensets(st.integers(1, 30), max_size=6)
)


@given(
    lots,
    st.fixed_dictionaries({source: st.none() | reflections for source in "st"}),
    st.integers(1, 20),
    st.integers(1, 60),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0.5, 2.0, 10.0])),
)
def test_batches_end_where_they_would_for_single_transactions(
    told: Lots,
    reflects: dict[str, Reflected | None],
    transactions_max: int,
    rows_max: int,
    weights: dict[RelationName, float],
):
    mixed, plain = integrators(told)
    while True:
        batch = mixed.close_batch(reflects, transactions_max, rows_max, None, weights)
        expected = plain.close_batch(reflects, transactions_max, rows_max, None, weights)
        assert list(singly(batch)) == list(expected)
        assert list(singly(mixed.pending)) == list(plain.pending)
        assert sum(arrival.rows for arrival in batch) == sum(arrival.rows for arrival in expected)
        if not expected:
            break


@given(lots, st.lists(st.booleans(), min_size=40, max_size=40))
def test_a_cut_says_of_a_block_what_it_says_of_its_transactions(told: Lots, seen: list[bool]):
    class Cut:
        def reflects_each(self, transactions):
            return [seen[t.identity % 40] for t in transactions]

        def reflects_block(self, block):
            return self.reflects_each(block.transactions())

    mixed, plain = integrators(told)
    for source in "st":
        waiting = [
            [a.origin for a in arrivals.pending if a.origin.source == source]
            for arrivals in (mixed, plain)
        ]
        first, second = (reflected_by(Cut(), 0, origins) for origins in waiting)  # type: ignore[arg-type]
        assert first == second
        for name in NAMES:
            if name.source == source:
                found = reflected_numbers(mixed.pending, name, first)
                exact = reflected_numbers(plain.pending, name, first)
                # A block may name transactions that do not touch the relation: they have no rows.
                assert set(exact.tolist()) <= set(found.tolist())


@given(lots)
def test_changes_are_found_by_number_however_they_came(told: Lots):
    mixed, plain = integrators(told)
    tables, expected = (ChangeTables(dict.fromkeys(NAMES, SCHEMA)) for _ in "12")
    tables.add(mixed.pending)
    expected.add(plain.pending)
    last = transactions_in(plain.pending)
    for first in range(1, last + 1, 3):
        for name in NAMES:
            numbers = list(range(first, last + 1, 1 + first % 2))
            found = tables.changes(name, numbers, SCHEMA.names)
            assert found.equals(expected.changes(name, numbers, SCHEMA.names))
        tables.forget(first)
        expected.forget(first)


@given(reflections, st.integers(1, 20), st.integers(0, 20))
def test_numbers_are_divided_by_whether_they_are_included(found: Reflected, first: int, more: int):
    pieces = list(found.divided(first, first + more))
    numbers = [n for start, end, _ in pieces for n in range(start, end + 1)]
    assert numbers == list(range(first, first + more + 1))
    for start, end, is_included in pieces:
        assert all(found.includes(n) is is_included for n in range(start, end + 1))


@dataclass
class Flooded(LiveWorld):
    """Tells of neighbours that are of one source as of a block."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.blocks = 0
        self.tables = ChangeTables(self.tables_schemas)
        self._added = 0
        self.manager = self.made_manager()
        tell = self.manager.arrived

        def arrived(arrivals: Sequence[Arrival]) -> None:
            found = list(self._together(list(arrivals)))
            self.tables.add(found)
            tell(found)

        self.manager.arrived = arrived  # type: ignore[method-assign]

    @property
    def tables_schemas(self):
        return {o.name: o.schema for t in self.definition.all_terms for o in t.occurrences}

    def _together(self, arrivals: list[Arrival]) -> Iterator[Arrival]:
        while arrivals:
            source = arrivals[0].transaction.source
            size = 1
            while size < len(arrivals) and arrivals[size].transaction.source == source:
                size += 1
            size = self.rng.randint(1, size)
            some, arrivals = arrivals[:size], arrivals[size:]
            if size == 1:
                yield some[0]
            else:
                self.blocks += 1
                yield self._block(some)

    def _block(self, some: list[Arrival]) -> Arrival:
        first = some[0]
        changes: dict[RelationName, list[tuple[int, RelationChange]]] = {}
        for place, arrival in enumerate(some):
            for name, change in arrival.transaction.changes:
                changes.setdefault(name, []).append((place, change))
        columns = tuple((name, self._changed(name, mine)) for name, mine in changes.items())
        transaction = Transaction(
            first.transaction.source, first.transaction.number, columns, len(some)
        )
        marks = np.arange(len(some))
        by_relation = {name.relation: rows for name, rows in columns}
        origin = TransactionBlock(
            transaction.source, marks, marks, marks, lambda n: {"at": n}, by_relation
        )
        return Arrival(first.number, origin, transaction, sum(rows_in(r) for _, r in columns))

    def _changed(self, name: RelationName, mine: list[tuple[int, RelationChange]]) -> ChangedRows:
        schema = self.tables_schemas[name]
        signed = [
            (place, row, count)
            for place, change in mine
            for rows, count in ((change.deleted, -1), (change.inserted, 1))
            for row in rows
        ]
        places, rows, counts = zip(*signed, strict=True) if signed else ((), (), ())
        table = pa.Table.from_batches([batch_of(rows, schema)])
        return ChangedRows(schema, table, np.array(places, np.int64), np.array(counts, np.int64))


def flooded(seed: int) -> Flooded:
    scenario = random_scenario(seed, Size(transactions=14))
    return Flooded(scenario, scenario.definition, seed)


def test_every_state_is_right_when_transactions_come_in_blocks():
    seen, count = 0, seeds(120, least=20)
    for seed in range(count):
        world = flooded(seed)
        assert isinstance(world.manager, IncrementalManager)
        assert world.run(6) == world.states, seed
        seen += world.blocks
    assert seen > 1.5 * count


def test_whoever_forgets_that_a_block_is_partly_reflected_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
):
    """Shows that the worlds above can tell: an answer is taken to reflect all of a block, or nothing."""

    def whole(numbered, reflects):
        number, block = numbered
        yield (number, block), reflects.includes(block.number)

    monkeypatch.setattr("viewkeeper.protocols.batched_sweep._pieces", whole)
    worlds = map(flooded, range(60))
    assert any(world.run(6) != world.states for world in worlds)


def test_a_block_that_a_batch_divides_is_taken_in_parts():
    scenario = random_scenario(1, Size(transactions=2))
    source = scenario.definition.sources[0]

    class Patient(BatchedSweep):
        eager = False

    manager = Patient(scenario.definition, scenario.extent)
    manager.transactions_arrived([Transaction(source, 1, (), 10)])
    assert [t for _, t in manager._taken(4)] == [Transaction(source, 1, (), 4)]
    assert [(n, t) for n, t in manager._taken(6)] == [(5, Transaction(source, 5, (), 6))]
    assert not manager.queue
