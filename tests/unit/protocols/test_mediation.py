"""A view over relations as a view over sources, and the products that compensate."""

from __future__ import annotations

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Arithmetic, Column, Comparison, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.protocols.compensation import changes_of, with_changes
from viewkeeper.protocols.mediation import Mediation
from viewkeeper.protocols.messages import Part
from viewkeeper.timeline import Transaction
from viewkeeper.views.assembly import Assembly, evaluated
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition

SCHEMA = Schema.of(a=INTEGER, b=INTEGER)
X1, X2, X3, X4 = (
    Occurrence(alias, RelationName(source, f"r{alias}"), SCHEMA)
    for alias, source in (("x1", "s1"), ("x2", "s1"), ("x3", "s2"), ("x4", "s3"))
)
ACROSS = Comparison("=", Arithmetic("+", Column("x1.a"), Column("x2.b")), Column("x3.a"))
INSIDE = Comparison("<", Column("x1.b"), Column("x2.a"))
VIEW = ViewDefinition(
    "v", (Term((X1, X2, X3, X4), (ACROSS, INSIDE), (Output("b", Column("x3.b")),)),)
)
CONTENTS = {
    X1.name: Bag.of(SCHEMA, [(1, 0), (2, 5)]),
    X2.name: Bag.of(SCHEMA, [(1, 1), (9, 2), (9, 2)]),
    X3.name: Bag.of(SCHEMA, [(2, 7), (3, 8)]),
    X4.name: Bag.of(SCHEMA, [(0, 0), (1, 1)]),
}


def test_a_predicate_over_several_relations_of_one_source_goes_to_the_view_over_sources() -> None:
    mediation = Mediation(VIEW)
    assert mediation.virtual(0, "s1").columns == ("x1.a", "x2.b")
    (predicate,) = mediation.by_source.terms[0].predicates
    assert mediation.by_source.terms[0].aliases_in(predicate) == {"s1", "s2"}


def test_a_source_of_which_nobody_needs_a_column_keeps_one_to_count_by() -> None:
    assert Mediation(VIEW).virtual(0, "s3").columns == ("x4.a",)


def test_the_view_over_sources_is_the_view() -> None:
    mediation = Mediation(VIEW)
    virtual = {}
    for part in mediation.virtual_relations():
        assembly = mediation.assemblies[part.term]
        first, *rest = part.aliases
        rows = assembly.prepared(first, CONTENTS[assembly.term.occurrence(first).name])
        covers = frozenset({first})
        for alias in rest:
            contents = CONTENTS[assembly.term.occurrence(alias).name]
            rows = assembly.extended(rows, covers, alias, contents)
            covers |= {alias}
        virtual[part.name] = mediation.contents(part, rows)
    over_sources = evaluated(mediation.by_source, lambda name: virtual[name])
    assert over_sources == evaluated(VIEW, lambda name: CONTENTS[name])
    assert not over_sources.is_empty()


def test_a_partial_keeps_its_rows_on_the_way_to_the_relations_and_back() -> None:
    mediation = Mediation(VIEW)
    given = Bag.signed(Schema.of(**{"s1.x1.a": INTEGER, "s1.x2.b": INTEGER}), [((1, 2), -3)])
    imported, covers = mediation.imported(0, given, ["s1"])
    assert covers == {"x1", "x2"}
    assembly = mediation.assemblies[0]
    joined = assembly.extended(imported, covers, "x3", CONTENTS[X3.name])
    exported = mediation.exported(0, given, "s2", joined)
    there = mediation.source_assemblies[0]
    expected = there.extended(
        given, frozenset({"s1"}), "s2", CONTENTS[X3.name].renamed(["x3.a", "x3.b"])
    )
    assert exported == expected
    assert dict(exported) == {(1, 2, 3, 8): -3}


def test_the_products_with_changes_add_up_to_the_difference_they_make() -> None:
    term = Term((X1, X2), (INSIDE,), (Output("a", Column("x1.a")),))
    assembly = Assembly(term)
    change = {
        X1.name: Bag.signed(SCHEMA, [((2, 5), -1), ((4, 0), 2)]),
        X2.name: Bag.signed(SCHEMA, [((9, 2), -1), ((6, 6), 1)]),
    }
    before = {name: CONTENTS[name] for name in change}
    after = {name: before[name] + change[name] for name in change}
    transaction = Transaction("s1", 1, tuple(change.items()))
    parts = list(with_changes(assembly, Part(0, ("x1", "x2")), changes_of([transaction])))
    assert [part.asks for part in parts] == [("x2",), ("x1",), ()]
    total = Bag(term.schema)
    for part in parts:
        rows, covers = part.given, part.covers
        for alias in part.asks:
            rows = assembly.extended(rows, covers, alias, before[term.occurrence(alias).name])
            covers |= {alias}
        total = total + assembly.finished(rows)
    view = ViewDefinition("v", (term,))
    assert total == evaluated(view, after.__getitem__) - evaluated(view, before.__getitem__)
    assert not total.is_empty()
