"""DyDa (1999), section 7 and the appendix: mappings, the six queries, and what aborted updates do to them.

What happens when updates meet is in `test_dyda_concurrency`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Literal
from viewkeeper.algebra.types import INTEGER, STRING
from viewkeeper.evolution.adaptation import Adapted, adapted
from viewkeeper.evolution.changes import DropRelation, catalog_after
from viewkeeper.evolution.knowledge import Containment, Knowledge, Replacement
from viewkeeper.evolution.map_va import DELTA, MapVA, plan
from viewkeeper.evolution.mapping import (
    Attribute,
    AttributeMove,
    ConditionMove,
    EvolutionMapping,
    Place,
    RelationMove,
)
from viewkeeper.evolution.preferences import Parts, Preferences
from viewkeeper.evolution.quality import Extent
from viewkeeper.evolution.rewriting import EvolvingView
from viewkeeper.evolution.synchronization import Synchronized, synchronized
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName, ViewDefinition

R, S, T, P = (
    RelationName("IS1", "R"),
    RelationName("IS2", "S"),
    RelationName("IS3", "T"),
    RelationName("IS3", "P"),
)


def relation(name: RelationName, columns: str, key: str) -> CatalogRelation:
    schema = Schema.of(**dict.fromkeys(columns.split(), INTEGER))
    return CatalogRelation(name, schema, tuple(key.split()))


def bag(name: RelationName, catalog: Catalog, *rows: tuple[Any, ...]) -> Bag:
    return Bag.of(next(r.schema for r in catalog.relations if r.name == name), rows)


def same(lost: RelationName, by: RelationName, attributes: str, **more: Any) -> Replacement:
    """A replacement by attributes of the same names."""
    return Replacement(lost, by, tuple((a, Column(a)) for a in attributes.split()), **more)


class Asked:
    """Relations as the sources hold them; ``reads`` says what was asked of them, with which keys."""

    def __init__(self, contents: Mapping[RelationName, Any]) -> None:
        self.contents = contents
        self.reads: list[tuple[RelationName, Schema, Any]] = []

    def whole(self, name: RelationName, needed: Schema) -> Any:
        self.reads.append((name, needed, None))
        return self.contents[name].only(needed.names)

    def matching(
        self, name: RelationName, needed: Schema, key_columns: tuple[str, ...], keys: Any
    ) -> Any:
        self.reads.append((name, needed, keys))
        return self.contents[name].only(needed.names)  # more than was asked for does no harm

    @property
    def names(self) -> list[RelationName]:
        return [name for name, _, _ in self.reads]


def rows_of(relation: Any) -> list[tuple[tuple[Any, ...], int]]:
    return [] if relation is None else relation.to_bag().sorted()


def plus(relation: Any) -> list[tuple[Any, ...]]:
    """What the paper writes Δ⁺: the rows that come in."""
    return [row for row, count in rows_of(relation) if count > 0]


def minus(relation: Any) -> list[tuple[Any, ...]]:
    return [row for row, count in rows_of(relation) if count < 0]


CATALOG = Catalog(
    (relation(R, "A B C", "A B C"), relation(S, "A D", "A D"), relation(T, "A B", "A B"))
)
VIEW = """
SELECT R.A, R.B, R.C, S.D FROM IS1.R AS R JOIN IS2.S AS S ON R.A = S.A WHERE R.B <= 10
"""


def example_view(**preferences: Any) -> EvolvingView:
    return EvolvingView(parse_view("V", VIEW, CATALOG), Preferences(**preferences))


# -- Example 4: the evolution mapping --------------------------------------------------------------------


def example_4() -> tuple[ViewDefinition, Synchronized]:
    view = example_view(dispensable=Parts(outputs=frozenset({"C"})), extent=Extent.ANY)
    drop = DropRelation(R)
    found = synchronized(view, drop, Knowledge((same(R, T, "A B"),)), catalog_after(CATALOG, drop))
    assert isinstance(found, Synchronized)
    return view.definition, found


def test_example_4_the_evolution_mapping():
    old, found = example_4()
    expected = parse_view(
        "V",
        "SELECT R.A, R.B, S.D FROM IS3.T AS R JOIN IS2.S AS S ON R.A = S.A WHERE R.B <= 10",
        CATALOG,
    )
    assert found.definition.terms == expected.terms
    # Conditions are printed by the view's aliases; the others as the paper has them.
    assert found.mapping.lines() == (
        "IS1.R.A → IS3.T.A",
        "IS1.R.B → IS3.T.B",
        "IS1.R.C dropped",
        "IS1.R → IS3.T",
    )
    assert old.schema.names == ("A", "B", "C", "D")
    assert found.quality.attributes == 3


# -- Example 5: the six queries ---------------------------------------------------------------------------


def example_5(contents: Mapping[RelationName, Any]) -> tuple[Adapted, Asked]:
    old, found = example_4()
    asked = Asked(contents)
    queries = plan(old, found.definition, found.mapping)
    result = adapted(queries, evaluated(old, contents.__getitem__), asked)
    assert result.extent.to_bag() == evaluated(found.definition, contents.__getitem__).to_bag()
    return result, asked


def test_example_5_the_six_queries(embody):
    contents = {
        name: embody(bag(name, CATALOG, *rows))
        for name, rows in {
            R: [(1, 5, 70), (2, 6, 80), (3, 11, 90), (4, 2, 95)],
            S: [(1, 100), (1, 101), (2, 200), (7, 700), (3, 300)],
            T: [(1, 5), (7, 4), (3, 12), (9, 9)],
        }.items()
    }
    result, asked = example_5(contents)
    queries = result.queries
    assert rows_of(queries["V⁰"]) == [((1, 5, 100), 1), ((1, 5, 101), 1), ((2, 6, 200), 1)]
    # Row (1, 5) has two partners in S and is one row of R all the same.
    assert rows_of(queries["R_V"]) == [((1, 5), 1), ((2, 6), 1)]
    assert rows_of(queries["S_NV"]) == [((1, 5), 1), ((7, 4), 1), ((9, 9), 1)]
    assert minus(queries["ΔR"]) == [(2, 6)]
    assert plus(queries["ΔR"]) == [(7, 4), (9, 9)]
    assert minus(queries["ΔV"]) == [(2, 6, 200)]
    assert plus(queries["ΔV"]) == [(7, 4, 700)]
    assert rows_of(result.extent) == [((1, 5, 100), 1), ((1, 5, 101), 1), ((7, 4, 700), 1)]
    # Two of the six ask a source: S_NV asks T, ΔV asks S, and only for what the difference joins.
    assert asked.names == [T, S]
    assert rows_of(asked.reads[1][2]) == [((2,), 1), ((7,), 1), ((9,), 1)]


def test_example_5_without_a_difference_nothing_more_is_asked():
    contents = {
        R: bag(R, CATALOG, (1, 5, 70)),
        S: bag(S, CATALOG, (1, 100)),
        T: bag(T, CATALOG, (1, 5)),
    }
    result, asked = example_5(contents)
    assert asked.names == [T]
    assert rows_of(result.extent) == [((1, 5, 100), 1)]


# -- Tables 6 and 7, Example 6: merging -------------------------------------------------------------------


def places(*texts: str) -> list[Place]:
    return [Place("x", RelationName("IS", text)) for text in texts]


def attributes(*texts: str) -> list[Attribute]:
    return [Attribute("x", RelationName("IS", "R"), text) for text in texts]


CONDITION = Comparison("=", Column("x.a"), Literal(5, INTEGER))


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ("R→S", "S→T", "R→T"),
        ("R→S", "S→", "R→"),
        ("a→b", "b→c", "a→c"),
        ("a→b", "b→", "a→"),
        ("→cond", "cond→", ""),
        ("R→S", "b→c", "R→S b→c"),
        ("a→b", "S→T", "a→b S→T"),
        ("R→S", "T→U", "R→S T→U"),
        ("a→b", "cond→", "a→b cond→"),
        ("→cond", "b→", "→cond b→"),
    ],
)
def test_table_6_transformation_rules(first, second, merged):
    result = written(first).merged(written(second))
    expected = written(merged)
    assert set(result.relations) == set(expected.relations)
    assert set(result.attributes) == set(expected.attributes)
    assert set(result.conditions) == set(expected.conditions)


def written(text: str) -> EvolutionMapping:
    """A mapping as in Table 6: capitals are relations, small letters attributes."""
    relations, moved, conditions = [], [], []
    for pair in text.split():
        before, after = (part or None for part in pair.split("→"))
        some = before or after or ""
        if some == "cond":
            ends = [None if end is None else CONDITION for end in (before, after)]
            conditions.append(ConditionMove(*ends))
        elif some.isupper():
            ends = [None if end is None else places(end)[0] for end in (before, after)]
            relations.append(RelationMove(*ends))
        else:
            (start,) = attributes(before or "")
            moved.append(AttributeMove(start, attributes(after)[0] if after else None))
    return EvolutionMapping(tuple(relations), tuple(moved), tuple(conditions))


def test_example_6_and_table_7_two_drops_merge_to_one_mapping():
    t = RelationName("IS2", "T")
    catalog = Catalog(
        (
            relation(R, "A C", "A"),
            relation(t, "B D", "B"),
            relation(S, "A C", "A"),
            relation(P, "C", "C"),
        )
    )
    text = "SELECT R.A, R.C, T.B, T.D FROM IS1.R AS R JOIN IS2.T AS T ON R.C = T.D"
    original = parse_view("V", text, catalog)
    preferences = Preferences(Parts(outputs=frozenset({"A"})), extent=Extent.ANY)
    knowledge = Knowledge((same(R, S, "A C"), same(S, P, "C")))
    first = DropRelation(R)
    catalog = catalog_after(catalog, first)
    one = synchronized(EvolvingView(original, preferences), first, knowledge, catalog)
    second = DropRelation(S)
    catalog = catalog_after(catalog, second)
    two = synchronized(EvolvingView(one.definition, preferences), second, knowledge, catalog)
    assert one.mapping.lines()[:3] == (
        "IS1.R.A → IS2.S.A", "IS1.R.C → IS2.S.C", "IS1.R → IS2.S"
    )  # fmt: skip
    assert two.mapping.lines()[:3] == (
        "IS2.S.A dropped", "IS2.S.C → IS3.P.C", "IS2.S → IS3.P"
    )  # fmt: skip
    merged = one.mapping.merged(two.mapping)
    # The print has R.A → P.C and puts P into IS2; P is at IS3, and R.C is what became P.C.
    assert merged.lines()[:3] == ("IS1.R.A dropped", "IS1.R.C → IS3.P.C", "IS1.R → IS3.P")
    assert two.definition.schema.names == ("C", "B", "D")


# -- Examples 7, 8 and 9: aborted data updates --------------------------------------------------------------

LETTERS = Catalog(
    (
        CatalogRelation(R, Schema.of(A=INTEGER), ("A",)),
        CatalogRelation(S, Schema.of(B=STRING), ("B",)),
        CatalogRelation(T, Schema.of(C=STRING), ("C",)),
    )
)


def example_9() -> tuple[ViewDefinition, ViewDefinition, MapVA]:
    """R × S with S replaced by T."""
    old = parse_view("V", "SELECT R.A, S.B FROM IS1.R AS R, IS2.S AS S", LETTERS)
    drop = DropRelation(S)
    knowledge = Knowledge((Replacement(S, T, (("B", Column("C")),)),))
    view = EvolvingView(old, Preferences(extent=Extent.ANY))
    found = synchronized(view, drop, knowledge, catalog_after(LETTERS, drop))
    return old, found.definition, plan(old, found.definition, found.mapping)


def product(numbers: str, letters: str) -> list[tuple[tuple[int, str], int]]:
    return [((int(n), letter), 1) for n, letter in itertools.product(numbers, letters)]


def test_example_9_what_is_missing_if_the_present_is_read(embody):
    """The sources have moved on by DU1 (3 into R), DU2 (d into S) and DU3 (e into T), and the extent has not: then
    V'(adapt) has a negative row (3, b) and no (3, a), as in the print."""
    old, new, queries = example_9()
    before = {R: bag(R, LETTERS, (1,), (2,)), S: bag(S, LETTERS, ("a",), ("b",))}
    now = {
        R: embody(bag(R, LETTERS, (1,), (2,), (3,))),
        T: embody(bag(T, LETTERS, ("a",), ("c",), ("e",))),
    }
    result = adapted(queries, embody(evaluated(old, before.__getitem__)), Asked(now))
    found = result.queries
    assert rows_of(found["V⁰"]) == product("12", "ab")
    assert rows_of(found["R_V"]) == [(("a",), 1), (("b",), 1)]
    assert plus(found["ΔR"]) == [("c",), ("e",)]
    assert minus(found["ΔR"]) == [("b",)]
    assert plus(found["ΔV"]) == [row for row, _ in product("123", "ce")]
    assert minus(found["ΔV"]) == [row for row, _ in product("123", "b")]
    assert rows_of(result.extent) == sorted(
        [*product("12", "ace"), *product("3", "ce"), ((3, "b"), -1)]
    )
    # Theorem 4 and Lemma 9: what is missing is V'(DU1) × R_V, both of which are known without a question.
    expected = evaluated(new, lambda name: now[name].to_bag())
    missing = Bag.signed(expected.schema, product("3", "ab"))
    assert result.extent.to_bag() + missing == expected


def test_example_9_at_the_cut_of_the_extent_nothing_is_missing(embody):
    """What is in no state is taken out of what is read; the engine then maintains it (`test_dyda_concurrency`)."""
    old, _, queries = example_9()
    before = {R: bag(R, LETTERS, (1,), (2,)), S: bag(S, LETTERS, ("a",), ("b",))}
    at_cut = {R: embody(before[R]), T: embody(bag(T, LETTERS, ("a",), ("c",)))}
    result = adapted(queries, embody(evaluated(old, before.__getitem__)), Asked(at_cut))
    assert rows_of(result.extent) == product("12", "ac")


def test_examples_7_and_8_the_formulas_hold_for_any_rows():
    """V⁰ ⊕ ΔV is V'(R', T') ⊖ V'(DU1, VE(V, S)); at one cut, where DU1 is empty, it is V'(R, T)."""
    old, new, queries = example_9()
    for r, s, t, du1 in itertools.product(
        ([], [1], [1, 2]), ([], ["a"], ["a", "b"]), ([], ["b"], ["b", "c"]), ([], [3], [3, 4])
    ):
        change = bag(R, LETTERS, *((n,) for n in du1))
        contents = {R: bag(R, LETTERS, *((n,) for n in r)), S: bag(S, LETTERS, *((x,) for x in s))}
        now = {R: contents[R] + change, T: bag(T, LETTERS, *((x,) for x in t))}
        result = adapted(queries, evaluated(old, contents.__getitem__), Asked(now))
        # The old extent shows rows of S only where R has some.
        lacking = [((n, x), 1) for n in du1 for x in s if r]
        expected = evaluated(new, now.__getitem__)
        assert result.extent + Bag.signed(expected.schema, lacking) == expected


# -- Examples 10, 11 and 12: the appendix --------------------------------------------------------------------


def appendix() -> tuple[ViewDefinition, Synchronized]:
    r, s, t = (RelationName("IS", name) for name in "RST")
    catalog = Catalog((relation(r, "A C", "A"), relation(s, "A C", "A"), relation(t, "B", "B")))
    text = "SELECT R.A AS IS_R_A, T.B AS IS_T_B FROM IS.R AS R, IS.T AS T WHERE R.C = 5"
    old = parse_view("V", text, catalog)
    drop = DropRelation(r)
    knowledge = Knowledge((same(r, s, "A C", containment=Containment.EQUAL),))
    found = synchronized(EvolvingView(old), drop, knowledge, catalog_after(catalog, drop))
    assert isinstance(found, Synchronized)
    return old, found


def test_example_10_r_v_is_what_the_extent_shows_of_r():
    old, found = appendix()
    assert plan(old, found.definition, found.mapping).lost_shown == ("IS_R_A",)


def test_example_11_s_nv_asks_the_substitute_under_its_own_names():
    old, found = appendix()
    queries = plan(old, found.definition, found.mapping)
    s = RelationName("IS", "S")
    rows = Bag.of(Schema.of(A=INTEGER, C=INTEGER), [(1, 5), (2, 6), (3, 5)])
    asked = Asked({s: rows})
    result = queries.s_nv(asked)
    assert [(name, needed.names) for name, needed, _ in asked.reads] == [(s, ("A", "C"))]
    assert rows_of(result) == [((1,), 1), ((3,), 1)]


def test_example_12_delta_v_is_the_new_view_with_the_difference_in_the_substitutes_place():
    old, found = appendix()
    queries = plan(old, found.definition, found.mapping)
    term = queries.carrier.term
    assert [o.alias for o in term.occurrences] == [DELTA, "T"]
    # The print repeats C = 5 here, on a column that ΔR does not have; S_NV has applied it already.
    assert term.predicates == ()
    t = RelationName("IS", "T")
    rows = Bag.of(Schema.of(B=INTEGER), [(7,), (8,)])
    delta_r = Bag.signed(Schema.of(IS_R_A=INTEGER), [((1,), 1), ((2,), -1)])
    result = queries.delta_v(delta_r, Asked({t: rows}))
    assert plus(result) == [(1, 7), (1, 8)]
    assert minus(result) == [(2, 7), (2, 8)]
