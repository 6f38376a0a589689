"""Expressions as trees: taking them apart and putting them together."""

from __future__ import annotations

from viewkeeper.algebra.expressions import (
    FALSE,
    TRUE,
    And,
    Arithmetic,
    Call,
    Case,
    Column,
    Comparison,
    InList,
    Literal,
    Or,
    children,
    columns_of,
    conjunction,
    conjuncts,
    substituted,
    transformed,
)
from viewkeeper.algebra.types import INTEGER

A, B, C = Column("a"), Column("b"), Column("c")
ONE = Literal(1, INTEGER)
IS_ONE = Comparison("=", A, ONE)


def test_a_conjunction_of_nothing_is_true_and_of_one_is_that_one():
    assert conjunction(()) == TRUE
    assert conjunction((IS_ONE,)) == IS_ONE
    assert conjunction((IS_ONE, FALSE)) == And((IS_ONE, FALSE))


def test_conjuncts_flatten_nested_ands_and_drop_true_but_keep_ors_whole():
    either = Or((IS_ONE, FALSE))
    assert conjuncts(And((And((IS_ONE, TRUE)), either))) == (IS_ONE, either)


def test_columns_are_found_in_every_corner():
    expression = Case(
        ((InList(A, (ONE, B)), Call("coalesce", (C, ONE))),),
        Arithmetic("+", Column("d"), ONE),
    )
    assert columns_of(expression) == {"a", "b", "c", "d"}
    assert columns_of(ONE) == frozenset()


def test_children_come_from_left_to_right():
    assert list(children(Case(((IS_ONE, A),), B))) == [IS_ONE, A, B]
    assert list(children(InList(A, (B, C)))) == [A, B, C]


def test_substitution_replaces_named_columns_and_nothing_inside_what_it_put_there():
    swapped = substituted(Arithmetic("-", A, B), {"a": B, "b": A})
    assert swapped == Arithmetic("-", B, A)


def test_substitution_reaches_branches_and_lists():
    expression = Case(((InList(A, (A,)), A),), None)
    assert substituted(expression, {"a": C}) == Case(((InList(C, (C,)), C),), None)


def test_a_transformation_that_changes_nothing_gives_an_equal_tree():
    expression = Or((IS_ONE, Case(((IS_ONE, A),), B)))
    assert transformed(expression, lambda node: None) == expression
