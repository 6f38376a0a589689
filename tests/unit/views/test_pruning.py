from viewkeeper.algebra import Schema
from viewkeeper.algebra.expressions import Aggregate, Column, Comparison, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.views import Grouping, Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.pruning import pruned

WIDE = Schema.of(id=INTEGER, a=INTEGER, b=INTEGER, c=INTEGER)


def names(definition: ViewDefinition) -> list[tuple[str, ...]]:
    return [o.schema.names for term in definition.terms for o in term.occurrences]


def test_only_columns_in_predicates_and_outputs_are_kept():
    left = Occurrence("x", RelationName("s", "l"), WIDE, ("id",))
    right = Occurrence("y", RelationName("s", "r"), WIDE, ("id",))
    term = Term(
        (left, right),
        (Comparison("=", Column("x.a"), Column("y.id")),),
        (Output("c", Column("x.c")),),
    )
    found = pruned(ViewDefinition("v", (term,)))
    assert names(found) == [("a", "c"), ("id",)]
    assert [o.key for o in found.terms[0].occurrences] == [(), ("id",)]
    assert found.schema == ViewDefinition("v", (term,)).schema


def test_occurrences_of_one_relation_keep_the_same_columns():
    name = RelationName("s", "l")
    term = Term(
        (Occurrence("x", name, WIDE), Occurrence("y", name, WIDE)),
        (Comparison("=", Column("x.a"), Column("y.b")),),
        (Output("id", Column("x.id")),),
    )
    assert names(pruned(ViewDefinition("v", (term,)))) == [("id", "a", "b"), ("id", "a", "b")]


def test_a_relation_of_which_nothing_is_read_keeps_one_column_to_be_counted_by():
    term = Term(
        (Occurrence("x", RelationName("s", "l"), WIDE),),
        (),
        (Output("n", Column("n")),),
        Grouping((), (Aggregate("n", "count"),)),
    )
    assert names(pruned(ViewDefinition("v", (term,)))) == [("id",)]
