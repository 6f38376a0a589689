"""Staged relations: what stays in Arrow, and how large tables reach Spark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import (
    TRUE,
    And,
    Arithmetic,
    Column,
    Comparison,
    IsNull,
    Literal,
    Not,
    Output,
)
from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING
from viewkeeper.protocols.batched_sweep import BatchedSweep
from viewkeeper.protocols.messages import (
    AnswerArrived,
    AskSource,
    BatchClosed,
    Reflected,
    TransactionArrived,
)
from viewkeeper.simulator.generator import Size, random_scenario
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.run import judged
from viewkeeper.simulator.world import World
from viewkeeper.sql.parser import parse_view
from viewkeeper.timeline import Transaction
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ROWS = Schema.of(k=INTEGER, name=STRING)
NAMES = st.sampled_from(["a", "b", "", "ä"])
COUNTS = st.integers(-2, 2).filter(bool)


def rows_of(*columns):
    """Rows with some NULLs."""
    return st.tuples(*(st.none() | column for column in columns))


BAG = Bag.signed(ROWS, [((1, "a"), 2), ((2, None), -1), ((None, "c"), 1)])


@pytest.fixture
def staging(spark, tmp_path):
    from viewkeeper.spark.staged import Staging

    return Staging(spark, tmp_path)


def test_keys_are_found_without_a_spark_job(staging):
    from viewkeeper.spark.staged import StagedRelation

    twice = staging.of_bag(BAG) + staging.of_bag(BAG)
    keys = twice.select((Output("key", Column("k")),)).where(Not(IsNull(Column("key")))).support()
    assert isinstance(keys, StagedRelation)
    assert keys.to_bag() == Bag.of(Schema.of(key=INTEGER), [(1,), (2,)])


def test_what_cancels_is_in_no_support(staging):
    gone = staging.of_bag(BAG) - staging.of_bag(BAG)
    assert gone.support().to_bag().is_empty()
    assert gone.is_empty()


def test_filters_and_expressions_give_what_bags_give(staging):
    predicate = Comparison(">", Column("k"), Literal(1, INTEGER))
    outputs = (Output("next", Arithmetic("+", Column("k"), Literal(1, INTEGER))),)
    staged = staging.of_bag(BAG)
    assert staged.where(predicate).to_bag() == BAG.where(predicate)
    assert staged.select(outputs).to_bag() == BAG.select(outputs)


def test_large_tables_and_doubles_take_the_long_way_and_arrive(staging, monkeypatch):
    from viewkeeper.spark import staged as module

    monkeypatch.setattr(module, "IN_PLAN_ROWS_MAX", 1)
    schema = Schema.of(x=DOUBLE, k=INTEGER)
    bag = Bag.of(schema, [(float("nan"), 1), (float("nan"), 1), (-0.0, 2), (0.0, 2)])
    assert staging.of_bag(bag).support().to_bag() == bag.support()
    other = Bag.of(Schema.of(j=INTEGER), [(1,), (2,)])
    joined = staging.of_bag(bag).join(staging.of_bag(other), (("k", "j"),))
    assert joined.to_bag() == bag.join(other, (("k", "j"),))


LEFT = Schema.of(k=INTEGER, name=STRING, at=INTEGER)
RIGHT = Schema.of(j=INTEGER, label=STRING, lo=INTEGER, hi=INTEGER)
INTERVAL = And(
    (Comparison("<=", Column("lo"), Column("at")), Comparison("<=", Column("at"), Column("hi")))
)


@given(
    st.lists(st.tuples(rows_of(st.integers(0, 3), NAMES, st.integers(0, 5)), COUNTS), max_size=12),
    st.lists(
        st.tuples(rows_of(st.integers(0, 3), NAMES, st.integers(0, 5), st.integers(0, 5)), COUNTS),
        max_size=12,
    ),
    st.sampled_from([(("k", "j"),), (("name", "label"),), (("k", "j"), ("name", "label"))]),
    st.sampled_from([TRUE, INTERVAL]),
)
def test_joins_in_arrow_give_what_bags_give_and_need_no_spark(left, right, on, where):
    from viewkeeper.spark.arrow import table_of
    from viewkeeper.spark.staged import StagedRelation, Staging

    here = Staging(None, None, in_process_rows_max=0)  # type: ignore[arg-type]
    one, other = Bag.signed(LEFT, left), Bag.signed(RIGHT, right)
    staged = [
        here.relation(table_of(schema, lines), schema)
        for schema, lines in ((LEFT, left), (RIGHT, right))
    ]
    joined = staged[0].join(staged[1], on, where)
    assert isinstance(joined, StagedRelation)
    assert joined.to_bag() == one.join(other, on, where)


@given(
    st.lists(st.tuples(rows_of(st.integers(0, 1), NAMES, st.integers(0, 5)), COUNTS), max_size=6),
    st.lists(
        st.tuples(rows_of(st.integers(0, 1), NAMES, st.integers(0, 5), st.integers(0, 5)), COUNTS),
        max_size=12,
    ),
    st.sampled_from([(("k", "j"),), (("name", "label"),)]),
)
def test_columns_whose_values_repeat_are_coded_and_whatever_is_done_with_them_gives_the_same(
    left, right, on
):
    from viewkeeper.coding import is_coded
    from viewkeeper.spark.arrow import table_of
    from viewkeeper.spark.staged import Staging

    here = Staging(None, None, in_process_rows_max=0)  # type: ignore[arg-type]
    one, other = Bag.signed(LEFT, left), Bag.signed(RIGHT, right)
    staged, plain = (
        side[0].join(side[1], on).select(tuple(Output(f"x.{n}", Column(n)) for n in ("label", "name", "k")))
        for side in ((*(here.relation(table_of(b.schema, list(b)), b.schema) for b in (one, other)),), (one, other))
    )  # fmt: skip
    lines = staged.lines
    uses = {"x.name": len(one), "x.label": len(other), "x.k": lines + 1}
    for field in staged.coded_table.schema.remove(3):
        assert is_coded(field) == (lines > 0 and lines >= 4 * uses[field.name]), field
    here_again = here.relation(staged.coded_table, plain.schema)
    spelled = here.relation(table_of(plain.schema, list(plain)), plain.schema)
    renamed = [f"y.{number}" for number in range(3)]
    for mine, wanted in (
        (here_again, plain),
        (here_again + spelled, plain + plain),
        (spelled + -here_again, plain - plain),
        (here_again.renamed(renamed), plain.renamed(renamed)),
        (here_again.where(IsNull(Column("x.name"))), plain.where(IsNull(Column("x.name")))),
        (here_again.support(), plain.support()),
        (
            here_again.join(spelled.renamed(renamed), (("x.label", "y.1"),)),
            plain.join(plain.renamed(renamed), (("x.label", "y.1"),)),
        ),
    ):
        assert mine.to_bag() == wanted
    assert here_again.table.schema == here.relation(spelled.table, plain.schema).table.schema


def test_a_line_is_as_long_as_it_would_be_without_codes():
    """A join that would be too large for memory must not look small because its side is coded."""
    import pyarrow as pa

    from viewkeeper.coding import line_bytes

    plain = pa.table({"k": list(range(1_000)), "name": ["x" * 500] * 1_000})
    coded = plain.set_column(1, "name", plain["name"].dictionary_encode())
    assert coded.nbytes < plain.nbytes / 10
    assert line_bytes(coded) == pytest.approx(line_bytes(plain), rel=0.02)
    assert line_bytes(plain.slice(0, 0)) == line_bytes(coded.slice(0, 0)) - 504 == 0


@given(st.lists(st.tuples(rows_of(st.integers(0, 2), NAMES), COUNTS), max_size=10))
def test_unsigned_lines_lead_to_every_row_of_the_support_and_to_none_that_is_not_there(lines):
    """What protocols take keys from: no sign may cancel another, here as in a bag."""
    from viewkeeper.spark.arrow import table_of
    from viewkeeper.spark.staged import Staging

    here = Staging(None, None, in_process_rows_max=0)  # type: ignore[arg-type]
    found = dict(here.relation(table_of(ROWS, lines), ROWS).unsigned().to_bag())
    bag = Bag.signed(ROWS, lines)
    assert {row for row, _ in bag.support()} <= found.keys() <= {row for row, _ in lines}
    assert all(count > 0 for count in found.values())
    assert bag.unsigned() == bag.support()


SPANS = Schema.of(lo=INTEGER, name=STRING, hi=INTEGER, k=INTEGER)
# Of numbers far apart the last bits are looked at first: some of these have the same.
FAR = st.sampled_from([1, 1 + 2**40, 7**20, -(2**50)])
SPANS_OF = [
    st.tuples(st.integers(0, 6), st.none() | NAMES, st.integers(0, 6), k)
    for k in (st.none() | st.just(1), FAR)
]


@given(st.one_of(*(st.lists(st.tuples(span, COUNTS), max_size=14) for span in SPANS_OF)))
def test_versions_hold_at_every_moment_what_the_lines_held_and_never_overlap(lines):
    from viewkeeper.spark.arrow import table_of
    from viewkeeper.spark.staged import Staging

    bag = Bag.signed(SPANS, lines)
    here = Staging(None, None, in_process_rows_max=0)  # type: ignore[arg-type]
    staged = here.relation(table_of(SPANS, lines), SPANS).versions("lo", "hi")
    versions = bag.versions("lo", "hi")
    assert staged.to_bag() == versions
    assert staged.lines == len(versions)
    rest = (Output("name", Column("name")), Output("k", Column("k")))
    for moment in range(8):
        now = Literal(moment, INTEGER)
        holds = And((Comparison("<=", Column("lo"), now), Comparison("<=", now, Column("hi"))))
        valid = versions.where(holds)
        assert valid.select(rest) == bag.where(holds).select(rest)
        assert len(valid) == len(valid.select(rest))


class _Closed(BatchedSweep):
    eager = False


def test_a_row_that_a_whole_batch_changes_leaves_no_lines_that_cancel():
    """One order, then its customer renamed again and again: the order's row is there once."""
    from viewkeeper.spark.staged import Staging

    orders, customers = RelationName("shop", "orders"), RelationName("crm", "customers")
    schemas = {orders: Schema.of(o=INTEGER, c=INTEGER), customers: Schema.of(c=INTEGER, n=STRING)}
    catalog = Catalog(tuple(CatalogRelation(name, each) for name, each in schemas.items()))
    text = "SELECT o.o, c.n FROM shop.orders o JOIN crm.customers c ON o.c = c.c"
    view = parse_view("named", text, catalog)
    here = Staging(None, None, in_process_rows_max=0)  # type: ignore[arg-type]
    sweep = _Closed(view, here.of_bag(Bag(view.schema)))
    times = 30
    first = Bag.of(schemas[orders], [(1, 7)])
    sweep.step(TransactionArrived(Transaction("shop", 1, ((orders, here.of_bag(first)),))))
    for number in range(1, times + 1):
        rows = [((7, f"name {number - 1}"), -1), ((7, f"name {number}"), 1)]
        change = here.of_bag(Bag.signed(schemas[customers], rows))
        sweep.step(TransactionArrived(Transaction("crm", number, ((customers, change),))))
    now = {
        "shop": (Bag.of(Schema.of(**{"o.o": INTEGER, "o.c": INTEGER}), [(1, 7)]), 1),
        "crm": (
            Bag.of(Schema.of(**{"c.c": INTEGER, "c.n": STRING}), [(7, f"name {times}")]),
            times,
        ),
    }
    todo, installed = list(sweep.step(BatchClosed(times + 1))), None
    while todo:
        action = todo.pop()
        if isinstance(action, AskSource):
            rows, upto = now[action.source]
            answers = (here.of_bag(rows),) * len(action.parts)
            todo += sweep.step(AnswerArrived(action.question, answers, Reflected(upto)))
        else:
            installed = action
    assert installed.change.lines == len(installed.change.to_bag()) == 1 + 2 * times


@pytest.mark.parametrize("limit", ["IN_ARROW_BYTES_MAX", "IN_ARROW_ROWS_MAX"])
def test_a_join_that_grows_too_large_is_left_to_spark(spark, tmp_path, monkeypatch, limit):
    from viewkeeper.spark import staged as module

    monkeypatch.setattr(module, limit, 2)
    here = module.Staging(spark, tmp_path, 0, module.IN_ARROW_ROWS_MAX)
    other = Bag.of(Schema.of(j=INTEGER), [(1,), (2,), (2,)])
    joined = here.of_bag(BAG).join(here.of_bag(other), (("k", "j"),))
    assert not isinstance(joined, module.StagedRelation)
    assert joined.to_bag() == BAG.join(other, (("k", "j"),))


@pytest.mark.parametrize("seed", range(3))
def test_batched_sweep_is_complete_on_staged_relations_too(staging, seed):
    scenario = random_scenario(seed, Size(transactions=4))
    network = Network(fifo=False, inversions=True)
    world = World(scenario, BatchedSweep, network, embody=staging.of_bag)
    run_to_end(world, SeededScheduler(seed))
    assert judged(BatchedSweep, seed, scenario, world).is_good
