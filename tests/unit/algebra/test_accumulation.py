"""Running aggregates: after every transaction what grouping everything again would give."""

from __future__ import annotations

import itertools
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slices import seeds
from viewkeeper.algebra import Bag, Field, Schema
from viewkeeper.algebra.accumulation import GROUPS, Accumulation, Found, Lookup
from viewkeeper.algebra.expressions import (
    Aggregate,
    Arithmetic,
    Column,
    Comparison,
    Literal,
    Output,
)
from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, decimal_type
from viewkeeper.errors import InvariantViolated

MONEY = decimal_type(9, 2)
SCHEMA = Schema.of(g=STRING, h=INTEGER, n=INTEGER, m=MONEY, x=DOUBLE)
NUMBERED = Schema((*SCHEMA.fields, Field("_txn", INTEGER)))
AGGREGATES = (
    Aggregate("rows", "count"),
    Aggregate("present", "count", Column("n")),
    Aggregate("total", "sum", Column("n")),
    Aggregate("mean", "avg", Column("n")),
    Aggregate("money", "sum", Column("m")),
    Aggregate("mean_money", "avg", Column("m")),
    Aggregate("least", "min", Column("m")),
    Aggregate("greatest", "max", Column("n")),
    Aggregate("farthest", "max", Column("x")),
    Aggregate("different", "count", Column("n"), distinct=True),
    Aggregate("total_of_different", "sum", Column("m"), distinct=True),
    Aggregate("mean_of_different", "avg", Column("n"), distinct=True),
    Aggregate("twice", "sum", Arithmetic("+", Column("n"), Column("n"))),
)
KEYS = (Output("g", Column("g")), Output("h1", Arithmetic("+", Column("h"), Literal(1, INTEGER))))

rows = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.sampled_from([1, None]),
    st.sampled_from([0, 1, 2, 7, None]),
    st.sampled_from([Decimal("0.25"), Decimal("-1.50"), Decimal("1000.01"), None]),
    st.sampled_from([0.5, float("nan"), float("inf"), None]),
)
# A transaction: how many of the rows that are there it deletes, and what it inserts.
transactions = st.lists(st.tuples(st.integers(0, 3), st.lists(rows, max_size=3)), max_size=6)


def looked_up(store: Bag, lookup: Lookup) -> Bag:
    if lookup.keys is None:
        return store
    wanted = {row for row, _ in lookup.keys}
    places = [store.schema.position(name) for name in lookup.key_columns]
    return Bag(store.schema, (p for p in store if tuple(p[0][i] for i in places) in wanted))


def without_number(change: Bag) -> Bag:
    names = change.schema.names[:-1]
    return change.select(tuple(Output(name, Column(name)) for name in names))


class Running:
    """A grouping that is maintained, beside the rows that it is over."""

    def __init__(self, accumulation: Accumulation, contents: Bag) -> None:
        self.accumulation = accumulation
        self.contents = contents
        self.stores = accumulation.initial(contents.select(accumulation.inputs))

    def take(self, change: Bag) -> Bag:
        """One batch of numbered changes; the numbered change of the groups."""
        number = Output("_txn", Column("_txn"))
        reduced = change.select((*self.accumulation.inputs, number))
        found = Found()
        for lookup in self.accumulation.first_lookups(reduced):
            found.first[lookup.store] = looked_up(self.stores[lookup.store], lookup)
        for lookup in self.accumulation.further_lookups(reduced, found.first[GROUPS]):
            found.whole[lookup.store] = looked_up(self.stores[lookup.store], lookup)
        result = self.accumulation.applied(reduced, found)
        for name, changed in result.stores.items():
            self.stores[name] = self.stores[name] + without_number(changed)
        self.contents = self.contents + without_number(change)
        return result.change

    def grouped(self) -> Bag:
        return self.contents.grouped(self.accumulation.keys, self.accumulation.aggregates)


def numbered(contents: Bag, steps: list) -> tuple[Bag, list[Bag]]:
    """The steps as one numbered change, and the contents after each."""
    change, states = Bag(NUMBERED), []
    for number, (deletions, inserted) in enumerate(steps, 1):
        present = [row for row, count in contents.sorted() for _ in range(count)]
        step = Bag.of(SCHEMA, inserted) - Bag.of(SCHEMA, present[:deletions])
        contents = contents + step
        states.append(contents)
        change = change + step.select(
            (
                *(Output(n, Column(n)) for n in SCHEMA.names),
                Output("_txn", Literal(number, INTEGER)),
            )
        )
    return change, states


def at(change: Bag, number: int) -> Bag:
    return without_number(change.where(Comparison("<=", Column("_txn"), Literal(number, INTEGER))))


@pytest.mark.parametrize("keys", [KEYS, ()], ids=["by group", "without keys"])
@given(initially=st.lists(rows, max_size=6), batches=st.lists(transactions, max_size=3))
@settings(max_examples=seeds(150, least=20), deadline=None)
def test_every_transaction_leaves_what_grouping_again_would_give(keys, initially, batches):
    running = Running(Accumulation(keys, AGGREGATES, SCHEMA), Bag.of(SCHEMA, initially))
    for batch in batches:
        before = running.grouped()
        change, states = numbered(running.contents, batch)
        found = running.take(change)
        for number, contents in enumerate(states, 1):
            expected = contents.grouped(keys, AGGREGATES)
            assert before + at(found, number) == expected
        inputs = running.contents.select(running.accumulation.inputs)
        assert running.stores == running.accumulation.initial(inputs)


@given(initially=st.lists(rows, max_size=6), batches=st.lists(transactions, max_size=3))
@settings(max_examples=50, deadline=None)
def test_distinct_is_the_grouping_by_all_columns(initially, batches):
    keys = (Output("g", Column("g")), Output("n", Column("n")))
    running = Running(Accumulation(keys, (), SCHEMA), Bag.of(SCHEMA, initially))
    for batch in batches:
        before = running.contents.select(keys).support()
        change, states = numbered(running.contents, batch)
        found = running.take(change)
        for number, contents in enumerate(states, 1):
            assert before + at(found, number) == contents.select(keys).support()


def minimum(contents: list) -> Running:
    accumulation = Accumulation(
        (Output("g", Column("g")),), (Aggregate("least", "min", Column("n")),), SCHEMA
    )
    return Running(accumulation, Bag.of(SCHEMA, contents))


def row(n: int) -> tuple:
    return ("a", None, n, None, None)


@pytest.mark.parametrize(("deleted", "asks"), [(1, True), (2, False), (3, False)])
def test_all_values_of_a_group_are_asked_for_only_when_its_least_is_deleted(deleted, asks):
    running = minimum([row(1), row(2), row(3)])
    change = Bag.signed(NUMBERED, [((*row(deleted), 1), -1)])
    reduced = change.select((*running.accumulation.inputs, Output("_txn", Column("_txn"))))
    groups = running.stores[GROUPS]
    assert bool(running.accumulation.further_lookups(reduced, groups)) == asks


def test_a_result_that_stays_makes_no_rows():
    running = minimum([row(1), row(2)])
    change = Bag.signed(NUMBERED, [((*row(2), 1), -1), ((*row(5), 2), 1)])
    assert running.take(change).is_empty()


def test_a_least_value_may_come_and_go_within_one_batch():
    running = minimum([row(5)])
    steps = [((*row(1), 1), 1), ((*row(1), 2), -1), ((*row(5), 3), -1)]
    found = running.take(Bag.signed(NUMBERED, steps))
    assert found.sorted() == [
        (("a", 1, 1), 1),
        (("a", 1, 2), -1),
        (("a", 5, 1), -1),
        (("a", 5, 2), 1),
        (("a", 5, 3), -1),
    ]


def test_a_sum_may_pass_through_what_64_bits_do_not_hold():
    largest = 2**63 - 1
    accumulation = Accumulation((), (Aggregate("total", "sum", Column("n")),), SCHEMA)
    running = Running(accumulation, Bag.of(SCHEMA, [row(largest)]))
    steps = [((*row(largest), 1), 1), ((*row(-largest), 1), 1)]
    assert running.take(Bag.signed(NUMBERED, steps)).is_empty()


def test_rows_that_were_never_there_are_noticed():
    running = minimum([row(1)])
    steps = list(itertools.repeat(((*row(1), 1), -1), 2))
    with pytest.raises(InvariantViolated, match="more rows leave a group"):
        running.take(Bag.signed(NUMBERED, steps))


def test_sums_of_doubles_are_told():
    aggregates = (
        Aggregate("s", "sum", Column("x")),
        Aggregate("m", "max", Column("x")),
        Aggregate("a", "avg", Column("n")),
    )
    assert [a.name for a in Accumulation((), aggregates, SCHEMA).sums_of_doubles] == ["s"]
