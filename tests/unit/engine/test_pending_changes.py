"""Which extents are adapted, which relations are followed for that, and what of it a next run begins with."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from unit.engine.small_group import SmallGroup
from unit.engine.test_router import engine
from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.engine.commits import Commits
from viewkeeper.engine.cuts import Purpose, broken_types
from viewkeeper.engine.failures import Failures
from viewkeeper.engine.pending_changes import PendingChanges
from viewkeeper.engine.schema_changes import Evolution, foreseen
from viewkeeper.engine.view import View
from viewkeeper.evolution.knowledge_file import read_knowledge
from viewkeeper.sources.interface import RelationSchema, SchemaChange
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

SCHEMA = Schema.of(k=INTEGER, v=INTEGER)
CATALOG = Catalog(tuple(CatalogRelation(RelationName("s", n), SCHEMA, ("k",)) for n in "abcd"))
KEYED = "SELECT x.k, x.v FROM s.a AS x"


def chain(*pairs: str) -> Evolution:
    """What stands for what: "ab" says that b can replace a."""
    same = {"k": "k", "v": "v"}
    entries = [
        {"relation": f"s.{lost}", "by": f"s.{by}", "containment": "equal", "attributes": same}
        for lost, by in pairs
    ]
    return Evolution(CATALOG, read_knowledge({"replacements": entries}, CATALOG, ()).knowledge)


def view(text: str = KEYED) -> View:
    return View(parse_view("V", text, CATALOG), text)


def drop(relation: str) -> SchemaChange:
    before = RelationSchema(relation, SCHEMA, ("k",), "")
    return SchemaChange("s", {"n": 1}, relation, before, None, "…", False, {})


def pending(text: str = KEYED, *dropped: str) -> tuple[PendingChanges, dict[str, View]]:
    """A view that was filled, after drops that it has taken."""
    known, views = chain("ab", "bc"), {"V": view(text)}
    found = PendingChanges(())
    for relation in dropped:
        plan = foreseen(drop(relation), views, known)
        found.take(plan, views)
        views, known = plan.views(views), plan.evolution
        found.new = ("V",)
    return found, views


def test_relations_are_followed_to_the_end_of_a_chain_of_replacements():
    assert [n.relation for n in chain("ab", "bc", "cd").watched({"V": view()})] == ["b", "c", "d"]


def test_an_extent_is_adapted_from_the_definition_that_it_belongs_to():
    """Two drops: one plan, from the first view to the third."""
    found, views = pending(KEYED, "a", "b")
    (plan,) = found.adaptations(views).values()
    assert [str(o.name) for o in plan.substitute.term.occurrences] == ["s.c"]
    assert plan.lost_shown == ("k", "v")


@pytest.mark.parametrize("text", ["SELECT x.v FROM s.a AS x", "SELECT DISTINCT x.k FROM s.a AS x"])
def test_what_map_va_cant_adapt_is_computed_from_its_sources(text):
    found, views = pending(text, "a")
    assert found.adaptations(views) == {}


def test_no_extent_is_adapted_over_a_source_that_has_jumped():
    found, views = pending(KEYED, "a")
    found.jumps["s"] = {"n": 7}
    assert found.adaptations(views) == {}


def test_a_view_that_was_never_filled_has_no_extent_to_adapt():
    known, views = chain("ab"), {"V": view()}
    found = PendingChanges(("V",))
    plan = foreseen(drop("a"), views, known)
    found.take(plan, views)
    assert found.adaptations(plan.views(views)) == {}


# -- what a run begins with --------------------------------------------------------------------------------


def taken_together(reader_has_taken: bool) -> list[SchemaChange]:
    """By a view that reads b, and one that reads a and only watches b, whose drop it has taken."""
    made, change = engine(0), drop("b")
    views = {"reader": view("SELECT x.k FROM s.b AS x"), "watcher": view()}
    taken = {"watcher": (change,)} | ({"reader": (change,)} if reader_has_taken else {})
    made._routed = {"s": {"n": 0}}
    made._beginning = SimpleNamespace(views=views, new=frozenset(), taken=taken)
    return made._taken_by(tuple(views))


def test_a_change_that_a_watching_view_has_taken_is_still_due_for_one_that_reads_the_relation():
    assert taken_together(reader_has_taken=False) == []
    assert taken_together(reader_has_taken=True) == [drop("b")]


# -- failures of cuts that were given up ------------------------------------------------------------------------


def test_a_failure_of_cuts_that_were_given_up_is_none():
    """What broke them may be a change that was taken since: its cause would never be told."""
    group = SmallGroup()
    failures = Failures(group.state, group.cuts, group.batches, Commits(group.state))
    error = broken_types("s", "a", "b")
    action = group.open(Purpose.JOB)
    group.cuts.drop()
    failures.take(error, None, action.ticket)
    assert group.state.error is None
    group.cuts.open(Purpose.JOB, ())
    failures.take(error, None, action.ticket)
    assert group.state.error is None
    failures.take(error, None, action.ticket + 1)
    assert group.state.error is error
