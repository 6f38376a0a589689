"""`Bag`, the reference: counts, zeros, joins and their NULLs."""

from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal

import pytest

from viewkeeper.algebra import Bag, Field, Schema
from viewkeeper.algebra.expressions import Arithmetic, Column, Comparison, Literal, Output
from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, decimal_type
from viewkeeper.errors import InvariantViolated, UsageError

A = Schema.of(a=INTEGER, b=STRING)
C = Schema.of(c=INTEGER, d=STRING)


def test_counts_of_equal_rows_meet_and_zeros_vanish():
    bag = Bag.signed(A, [((1, "x"), 2), ((1, "x"), -2), ((2, "y"), 0), ((3, "z"), -1)])
    assert dict(bag) == {(3, "z"): -1}
    assert len(bag) == 1
    assert bag.count((1, "x")) == 0


def test_what_is_taken_away_from_itself_is_empty():
    bag = Bag.of(A, [(1, "x"), (1, "x")])
    assert (bag - bag).is_empty()
    assert not (bag - Bag.of(A, [(1, "x")])).is_empty()


def test_only_relations_with_the_same_schema_are_added():
    with pytest.raises(InvariantViolated, match="same schema"):
        Bag.of(A) + Bag.of(C)


def test_counts_multiply_in_a_join_with_their_signs():
    left = Bag.signed(A, [((1, "x"), 2), ((2, "y"), -1)])
    right = Bag.signed(C, [((1, "p"), -3), ((2, "q"), -1)])
    assert dict(left.join(right, (("a", "c"),))) == {(1, "x", 1, "p"): -6, (2, "y", 2, "q"): 1}


def test_null_joins_with_nothing_not_even_null():
    left, right = Bag.of(A, [(None, "x")]), Bag.of(C, [(None, "p")])
    assert left.join(right, (("a", "c"),)).is_empty()
    assert len(left.join(right)) == 1


def test_a_null_in_one_key_of_several_is_enough():
    left, right = Bag.of(A, [(1, None)]), Bag.of(C, [(1, None)])
    assert left.join(right, (("a", "c"), ("b", "d"))).is_empty()


def test_nan_joins_with_nan_and_zero_with_negative_zero():
    x, y = Schema.of(x=DOUBLE), Schema.of(y=DOUBLE)
    left, right = Bag.of(x, [(math.nan,), (0.0,)]), Bag.of(y, [(float("nan"),), (-0.0,)])
    assert len(left.join(right, (("x", "y"),))) == 2


def test_integers_join_with_decimals_but_not_with_doubles():
    d = Schema((Field("d", decimal_type(5, 2)),))
    left = Bag.of(A, [(1, "x")])
    assert len(left.join(Bag.of(d, [(Decimal("1.00"),), (Decimal("1.01"),)]), (("a", "d"),))) == 1
    with pytest.raises(InvariantViolated, match="residual"):
        left.join(Bag.of(Schema.of(x=DOUBLE)), (("a", "x"),))


def test_a_join_keeps_the_pairs_of_which_its_condition_is_true():
    left, right = Bag.of(A, [(1, "x"), (3, "x"), (None, "x")]), Bag.of(C, [(2, "p")])
    smaller = left.join(right, (), Comparison("<", Column("a"), Column("c")))
    assert dict(smaller) == {(1, "x", 2, "p"): 1}


def test_two_sides_with_a_column_in_common_are_refused():
    with pytest.raises(UsageError, match="two columns named a"):
        Bag.of(A).join(Bag.of(A))


def test_rows_that_a_projection_makes_equal_add_up_or_cancel():
    bag = Bag.signed(A, [((1, "x"), 2), ((1, "y"), 3), ((2, "x"), 1), ((2, "y"), -1)])
    assert dict(bag.select((Output("a", Column("a")),))) == {(1,): 5}


def test_a_projection_computes_and_names_its_columns():
    twice = Output("twice", Arithmetic("*", Column("a"), Literal(2, INTEGER)))
    assert Bag.of(A, [(2, "x")]).select((twice,)) == Bag.of(Schema.of(twice=INTEGER), [(4,)])


def test_support_forgets_counts_and_the_positive_part_keeps_them():
    bag = Bag.signed(A, [((1, "x"), 2), ((2, "y"), -1)])
    assert dict(bag.support()) == {(1, "x"): 1, (2, "y"): 1}
    assert dict(bag.positive()) == {(1, "x"): 2}


def test_foreign_values_are_checked_on_the_way_in():
    with pytest.raises(UsageError):
        Bag.of(A, [("1", "x")])


def test_sorted_depends_on_values_alone():
    schema = Schema.of(x=DOUBLE)
    values = [math.nan, 1.0, None, -math.inf]
    orders = [Bag.of(schema, [(v,) for v in order]).sorted() for order in (values, values[::-1])]
    assert orders[0] == orders[1]
    assert [row[0] for row, _ in orders[0]][:3] == [None, -math.inf, 1.0]


def test_copies_are_equal_also_where_there_is_a_nan():
    bag = Bag.signed(Schema.of(x=DOUBLE), [((math.nan,), 2), ((None,), -1)])
    assert copy.deepcopy(bag) == bag
    assert pickle.loads(pickle.dumps(bag)) == bag
    assert hash(pickle.loads(pickle.dumps(bag))) == hash(bag)


def test_renaming_needs_a_name_for_every_column():
    with pytest.raises(ValueError, match="zip"):
        Bag.of(A).renamed(["only one"])


def test_only_some_columns_in_another_order_add_up():
    bag = Bag.signed(A, [((1, "x"), 2), ((2, "x"), -1)])
    assert bag.only(["b"]) == Bag.signed(Schema.of(b=STRING), [(("x",), 1)])
    assert bag.only(["b", "a"]).count(("x", 1)) == 2
    assert bag.only(A.names) is bag


def test_matching_keeps_counts_and_finds_no_null():
    bag = Bag.signed(A, [((1, "x"), 3), ((2, "y"), -1), ((None, "z"), 1)])
    keys = Bag.of(Schema.of(a=INTEGER), [(1,), (2,), (None,), (9,)])
    assert bag.matching(("a",), keys) == Bag.signed(A, [((1, "x"), 3), ((2, "y"), -1)])
