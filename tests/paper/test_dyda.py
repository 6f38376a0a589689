"""DyDa (1999): the worked examples, Tables 2, 6 and 7, and where the print is wrong or silent."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Literal, Output
from viewkeeper.algebra.types import INTEGER, STRING
from viewkeeper.evolution.adaptation import Adapted, Method, Task, adapted
from viewkeeper.evolution.changes import DropAttribute, DropRelation, SchemaChanged, catalog_after
from viewkeeper.evolution.knowledge import Containment, Knowledge, Replacement
from viewkeeper.evolution.management import Management
from viewkeeper.evolution.map_va import DELTA, plan
from viewkeeper.evolution.mapping import (
    Attribute,
    AttributeMove,
    ConditionMove,
    EvolutionMapping,
    Place,
    RelationMove,
)
from viewkeeper.evolution.messages import (
    InstallVersion,
    QueryBroken,
    ReadRelation,
    RowsArrived,
    UpdateArrived,
)
from viewkeeper.evolution.preferences import Parts, Preferences
from viewkeeper.evolution.quality import Extent
from viewkeeper.evolution.reading import Process, Read
from viewkeeper.evolution.relationships import ConcurrentUpdates
from viewkeeper.evolution.rewriting import EvolvingView
from viewkeeper.evolution.states import TRANSITIONS, Happening, State
from viewkeeper.evolution.synchronization import Synchronized, synchronized
from viewkeeper.protocols.messages import InstallChange, Reflected
from viewkeeper.simulator.choices import Commit, DeliverMessage, DeliverQuestion
from viewkeeper.simulator.evolution.checking import judged
from viewkeeper.simulator.evolution.scenario import EvolutionScenario
from viewkeeper.simulator.evolution.world import EvolutionWorld
from viewkeeper.sql.parser import parse_view
from viewkeeper.timeline import Cut, Transaction
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.pruning import pruned

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


def answered(process: Process[Any], contents: Mapping[RelationName, Any]) -> tuple[Any, list[Read]]:
    """A process driven to its end, every read answered with all rows of what it names."""
    reads: list[Read] = []
    rows = None
    while True:
        try:
            read = process.send(rows)
        except StopIteration as end:
            return end.value, reads
        reads.append(read)
        outputs = tuple(_output(name) for name in read.schema.names)
        rows = contents[read.name].select(outputs)


def _output(name: str) -> Any:
    return Output(name, Column(name))


def rows_of(relation: Any) -> list[tuple[tuple[Any, ...], int]]:
    return [] if relation is None else relation.to_bag().sorted()


def plus(relation: Any) -> list[tuple[Any, ...]]:
    """What the paper writes Δ⁺: the rows that come in."""
    return [row for row, count in rows_of(relation) if count > 0]


def minus(relation: Any) -> list[tuple[Any, ...]]:
    return [row for row, count in rows_of(relation) if count < 0]


# -- Example 1: the broken query ----------------------------------------------------------------------

CATALOG = Catalog(
    (relation(R, "A B C", "A B C"), relation(S, "A D", "A D"), relation(T, "A B", "A B"))
)
VIEW = """
SELECT R.A, R.B, R.C, S.D FROM IS1.R AS R JOIN IS2.S AS S ON R.A = S.A WHERE R.B <= 10
"""


def example_view(**preferences: Any) -> EvolvingView:
    return EvolvingView(parse_view("V", VIEW, CATALOG), Preferences(**preferences))


def manager(view: EvolvingView, catalog: Catalog, extent: Any, **known: Any) -> Management:
    sources = sorted(catalog.sources)
    return Management(view, extent, catalog, Knowledge(**known), Cut.start(sources))


def test_example_1_a_drop_breaks_the_query_and_is_found_in_the_queue():
    view = example_view()
    extent = evaluated(view.definition, lambda name: bag(name, CATALOG))
    management = manager(view, CATALOG, extent)
    update = Transaction("IS1", 1, ((R, bag(R, CATALOG, (1, 5, 7))),))
    (query,) = management.step(UpdateArrived(update))
    assert isinstance(query, ReadRelation)
    assert (query.source, query.relation, query.columns) == ("IS2", "S", ("A", "D"))
    # While the query travels, S.D is dropped; the source can't answer.
    drop = SchemaChanged("IS2", 1, DropAttribute(S, "D"))
    assert management.step(UpdateArrived(drop)) == ()
    (retired,) = management.step(QueryBroken(query.question))
    # Nothing can stand for D, and the view needs it: it ends as it was, and says what is missing.
    assert retired.unreflected == (update, drop)
    assert "the column D is not dispensable" in retired.reason


def test_example_1_with_a_view_that_can_do_without():
    view = example_view(dispensable=Parts(outputs=frozenset({"D"})))
    contents = {R: bag(R, CATALOG), S: bag(S, CATALOG, (1, 4), (1, 5))}
    management = manager(view, CATALOG, evaluated(view.definition, contents.__getitem__))
    update = Transaction("IS1", 1, ((R, bag(R, CATALOG, (1, 5, 7))),))
    drop = SchemaChanged("IS2", 1, DropAttribute(S, "D"))
    (query,) = management.step(UpdateArrived(update))
    management.step(UpdateArrived(drop))
    (again,) = management.step(QueryBroken(query.question))
    # The aborted update is in the drop's concurrent update set; its adaptation asks for the rest of S.
    assert management.relationships.of(drop) == (update,)
    assert (again.relation, again.columns) == ("S", ("A",))
    rows = contents[S].select((_output("A"),))
    (installed,) = management.step(RowsArrived(again.question, rows, Reflected(1)))
    assert installed.included == (update, drop)
    assert rows_of(installed.extent) == [((1, 5, 7), 2)]


# -- Table 2: four types of maintenance-concurrent updates ---------------------------------------------


def table_2_world(
    scripts: Mapping[str, tuple[Any, ...]], make: type[Management] = Management
) -> EvolutionWorld:
    catalog = Catalog((*CATALOG.relations, relation(P, "A D", "A D")))
    initial = {
        R: bag(R, catalog, (1, 5, 7), (2, 6, 8)),
        S: bag(S, catalog, (1, 4), (2, 5)),
        T: bag(T, catalog, (1, 5), (3, 3)),
        P: bag(P, catalog, (1, 4), (3, 9)),
    }
    view = example_view(dispensable=Parts(outputs=frozenset({"C"})), extent=Extent.ANY)
    knowledge = Knowledge((same(R, T, "A B"), same(S, P, "A D")))
    every = {source: scripts.get(source, ()) for source in ("IS1", "IS2", "IS3")}
    return EvolutionWorld(EvolutionScenario(view, catalog, knowledge, initial, every), make)


def _up_to_a_question_to(world: EvolutionWorld, asked: str) -> None:
    while not world.to_source[asked]:
        (source,) = (s for s in world.sources if world.to_source[s])
        world.take(DeliverQuestion(source, 0))
        world.take(DeliverMessage(source, 0))


DU_R = Transaction("IS1", 1, ((R, Bag.of(CATALOG.relations[0].schema, [(3, 1, 1)])),))
DU_S = Transaction("IS2", 1, ((S, Bag.of(CATALOG.relations[1].schema, [(3, 6)])),))
DROP_R = SchemaChanged("IS1", 1, DropRelation(R))
DROP_S = SchemaChanged("IS2", 1, DropRelation(S))
UPDATES = {"DU_R": DU_R, "DROP_R": DROP_R, "DROP_S": DROP_S}


@pytest.mark.parametrize(
    ("handled", "concurrent", "aborts"),
    [
        pytest.param(DU_R, DU_S, False, id="I: DU while a DU is handled"),
        pytest.param(DROP_R, DU_S, False, id="II: DU while an SC is handled"),
        pytest.param(DU_R, DROP_S, True, id="III: SC while a DU is handled"),
        pytest.param(DROP_R, DROP_S, True, id="IV: SC while an SC is handled"),
    ],
)
def test_table_2_all_four_types(handled, concurrent, aborts):
    world = table_2_world({handled.source: (handled,), concurrent.source: (concurrent,)})
    management = world.management
    world.take(Commit(handled.source))
    world.take(DeliverMessage(handled.source, 0))
    _up_to_a_question_to(world, concurrent.source)  # the one that will meet the other update
    world.take(Commit(concurrent.source))
    world.take(DeliverMessage(concurrent.source, 0))
    assert world.management.state is (State.VA if isinstance(handled, SchemaChanged) else State.VM)
    world.take(DeliverQuestion(concurrent.source, 0))
    assert (world.counters.broken == 1) is aborts
    while choices := world.choices():
        world.take(choices[0])
    world.require_finished()
    assert judged(world, search=True).is_strong
    if aborts:
        assert world.included == [(handled, concurrent)]  # seen to together
    else:
        assert world.included == [(handled,), (concurrent,)]
    assert management.applied == world.scenario.end


# Figure 3's arcs, with the events of Figure 4.
ARCS = """
Wait SCr VS; VS Done VA; VA Done Reset-VM; Reset-VM Done Wait; Wait DUr VM; VM Done Wait;
VA CSCd Wait; Reset-VM CSCd Wait; VM CSCd Wait
"""


def test_the_transitions_are_exactly_the_arcs_of_figure_3():
    drawn = {tuple(arc.split()) for arc in ARCS.replace("\n", " ").split(";")}
    ours = {(state.value, what.value, to.value) for (state, what), to in TRANSITIONS.items()}
    assert ours == drawn


class Watched(Management):
    """Writes down every arc it takes, and in which state it asks and installs."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.path: list[str] = []

    def _becomes(self, happening: Happening) -> None:
        super()._becomes(happening)
        self.path += [happening.value, self.state.value]

    def _stepped(self, event: Any) -> Any:
        for action in super()._stepped(event):
            if isinstance(action, ReadRelation):
                self.path.append("asks")
            elif isinstance(action, InstallChange | InstallVersion):
                self.path.append("installs")
            yield action


@pytest.mark.parametrize(
    ("handled", "concurrent", "path"),
    [
        pytest.param("DU_R", None, "DUr VM asks installs Done Wait", id="a DU"),
        pytest.param(
            "DROP_R",
            None,
            "SCr VS Done VA asks asks installs Done Reset-VM Done Wait",
            id="an SC",
        ),
        pytest.param(
            "DU_R",
            "DROP_S",
            "DUr VM asks CSCd Wait SCr VS Done VA asks asks installs Done Reset-VM Done Wait",
            id="an SC while a DU is handled",
        ),
        pytest.param(
            "DROP_R",
            "DROP_S",
            "SCr VS Done VA asks asks CSCd Wait "
            "SCr VS Done VA asks asks installs Done Reset-VM Done Wait",
            id="an SC while an SC is handled",
        ),
    ],
)
def test_the_management_passes_the_states_of_table_4_and_does_in_each_what_it_means(
    handled, concurrent, path
):
    """VS and Reset-VM ask nothing, VA and VM ask and install; a broken query leads back to Wait."""
    updates = [UPDATES[name] for name in (handled, concurrent) if name is not None]
    world = table_2_world({update.source: (update,) for update in updates}, Watched)
    world.take(Commit(updates[0].source))
    world.take(DeliverMessage(updates[0].source, 0))
    if len(updates) > 1:
        _up_to_a_question_to(world, updates[1].source)
        world.take(Commit(updates[1].source))
    while choices := world.choices():
        world.take(choices[0])
    assert " ".join(world.management.path) == path


# -- Examples 2 and 3: concurrent update sets -----------------------------------------------------------


def named_updates() -> tuple[dict[str, Any], Callable[[Any], str]]:
    updates: dict[str, Any] = {f"DU{n}": Transaction("IS1", n, ()) for n in (1, 2)} | {
        f"SC{n}": SchemaChanged("IS2", n, DropRelation(S)) for n in (1, 2, 3)
    }
    names = {update: name for name, update in updates.items()}
    return updates, names.__getitem__


def test_example_2_a_schema_change_sees_to_what_it_aborted_and_what_that_had_aborted():
    updates, named = named_updates()
    sets = ConcurrentUpdates()
    for name in ("DU1", "SC1", "SC2", "DU2", "SC3"):
        sets.received(updates[name])
    for aborted, by in (("DU1", "SC1"), ("SC1", "SC2"), ("SC2", "SC3"), ("DU2", "SC3")):
        sets.aborted(updates[aborted], by=updates[by])
    assert sets.sequence(named) == "DU1, SC1(DU1), SC2(SC1(DU1)), DU2, SC3(SC2(SC1(DU1)), DU2)"


def test_example_3_the_sequence_grows_while_updates_are_handled():
    updates, named = named_updates()
    sets = ConcurrentUpdates()
    for name in ("DU1", "SC1", "SC2", "DU2", "SC3"):
        sets.received(updates[name])
    for aborted, by in (("DU1", "SC2"), ("SC1", "SC3"), ("DU2", "SC3")):
        sets.aborted(updates[aborted], by=updates[by])
    assert sets.sequence(named) == "DU1, SC1, SC2(DU1), DU2, SC3(SC1, DU2)"


def test_example_3_as_the_management_finds_the_sets_by_itself():
    """The example's five updates through the machine: each query that breaks tells who broke it.

    In the print SC2's adaptation ends although SC1, handled before it, waits for SC3. Ours takes in all
    that was aborted before it, so it meets SC3 as well, and SC3 sees to all of them.
    """
    u = RelationName("IS5", "U")
    catalog = Catalog(
        (
            *CATALOG.relations,
            relation(RelationName("IS4", "P"), "A D", "A D"),
            relation(u, "A B", "A B"),
        )
    )
    p = RelationName("IS4", "P")
    view = example_view(dispensable=Parts(outputs=frozenset({"C"})), extent=Extent.ANY)
    knowledge = {"replacements": (same(R, T, "A B"), same(S, p, "A D"), same(T, u, "A B"))}
    contents = {name.name: bag(name.name, catalog) for name in catalog.relations}
    management = manager(
        view, catalog, evaluated(view.definition, contents.__getitem__), **knowledge
    )
    updates: dict[str, Any] = {
        "DU1": Transaction("IS1", 1, ((R, bag(R, catalog, (1, 5, 7))),)),
        "SC1": SchemaChanged("IS1", 2, DropRelation(R)),
        "SC2": SchemaChanged("IS2", 1, DropRelation(S)),
        "DU2": Transaction("IS4", 1, ((p, bag(p, catalog, (1, 4))),)),
        "SC3": SchemaChanged("IS3", 1, DropRelation(T)),
    }
    named = {update: name for name, update in updates.items()}.__getitem__

    def sequence() -> str:
        return management.relationships.sequence(named)

    def arrive(*names: str) -> None:
        for name in names:
            assert management.step(UpdateArrived(updates[name])) == ()

    (asked,) = management.step(UpdateArrived(updates["DU1"]))
    arrive("SC1", "SC2")
    assert (asked.relation, sequence()) == ("S", "DU1, SC1, SC2")
    # S is gone: DU1 waits for SC2. SC1 is next, and asks for T, which stands for R.
    (asked,) = management.step(QueryBroken(asked.question))
    arrive("DU2", "SC3")
    assert (asked.relation, sequence()) == ("T", "DU1, SC1, SC2(DU1), DU2, SC3")
    # T is gone too: SC1 waits for SC3. So do SC2, which would need T, and DU2 behind it.
    (asked,) = management.step(QueryBroken(asked.question))
    assert sequence() == "DU1, SC1, SC2(DU1), DU2, SC3(SC1, SC2(DU1), DU2)"
    # SC3 sees to everything, over U and P.
    rows = Bag.of(Schema.of(A=INTEGER, B=INTEGER), [(1, 5)])
    assert (asked.source, asked.relation) == ("IS5", "U")
    (asked,) = management.step(RowsArrived(asked.question, rows, Reflected(0)))
    rows = Bag.of(Schema.of(A=INTEGER, D=INTEGER), [(1, 4)])
    assert (asked.source, asked.relation) == ("IS4", "P")
    (installed,) = management.step(RowsArrived(asked.question, rows, Reflected(1)))
    assert [named(update) for update in installed.included] == ["DU1", "SC1", "SC2", "DU2", "SC3"]
    assert rows_of(installed.extent) == [((1, 5, 4), 1)]


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


def test_example_5_the_six_queries(embody):
    old, found = example_4()
    contents = {
        name: embody(bag(name, CATALOG, *rows))
        for name, rows in {
            R: [(1, 5, 70), (2, 6, 80), (3, 11, 90), (4, 2, 95)],
            S: [(1, 100), (1, 101), (2, 200), (7, 700), (3, 300)],
            T: [(1, 5), (7, 4), (3, 12), (9, 9)],
        }.items()
    }
    extent = evaluated(old, contents.__getitem__)
    cut = Cut.start(("IS1", "IS2", "IS3"))
    task = Task(
        pruned(old), pruned(found.definition), found.mapping, extent, cut, cut, lambda _: None
    )
    result, reads = answered(adapted(task), contents)
    assert isinstance(result, Adapted)
    assert result.method is Method.MAP_VA
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
    assert result.extent.to_bag() == evaluated(found.definition, contents.__getitem__).to_bag()
    # Two of the six ask a source: S_NV asks T, ΔV asks S, and only for what the difference joins.
    assert [read.name for read in reads] == [T, S]
    assert rows_of(reads[1].keys) == [((2,), 1), ((7,), 1), ((9,), 1)]


def test_example_5_without_a_difference_nothing_more_is_asked():
    old, found = example_4()
    contents = {
        R: bag(R, CATALOG, (1, 5, 70)),
        S: bag(S, CATALOG, (1, 100)),
        T: bag(T, CATALOG, (1, 5)),
    }
    cut = Cut.start(("IS1", "IS2", "IS3"))
    extent = evaluated(old, contents.__getitem__)
    task = Task(
        pruned(old), pruned(found.definition), found.mapping, extent, cut, cut, lambda _: None
    )
    result, reads = answered(adapted(task), contents)
    assert [read.name for read in reads] == [T]
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


def example_9(embody, du1: Any = None) -> tuple[Task, dict[RelationName, Any]]:
    """R × S with S replaced by T; the sources have moved on by DU1, DU2 and DU3 already."""
    old = parse_view("V", "SELECT R.A, S.B FROM IS1.R AS R, IS2.S AS S", LETTERS)
    drop = DropRelation(S)
    knowledge = Knowledge((Replacement(S, T, (("B", Column("C")),)),))
    view = EvolvingView(old, Preferences(extent=Extent.ANY))
    found = synchronized(view, drop, knowledge, catalog_after(LETTERS, drop))
    before = {R: bag(R, LETTERS, (1,), (2,)), S: bag(S, LETTERS, ("a",), ("b",))}
    extent = embody(evaluated(old, before.__getitem__))
    now = {
        R: embody(bag(R, LETTERS, (1,), (2,), (3,))),
        T: embody(bag(T, LETTERS, ("a",), ("c",), ("e",))),
    }
    changes = {R: embody(du1), T: embody(bag(T, LETTERS, ("e",)))} if du1 is not None else {}
    task = Task(
        pruned(old),
        pruned(found.definition),
        found.mapping,
        extent,
        Cut.start(("IS1", "IS2", "IS3")),
        Cut.of({"IS1": 1, "IS2": 2, "IS3": 1}),
        lambda occurrence: changes.get(occurrence.name),
    )
    return task, now


def product(numbers: str, letters: str) -> list[tuple[tuple[int, str], int]]:
    return [((int(n), letter), 1) for n, letter in itertools.product(numbers, letters)]


def test_example_9_the_adapted_extent_lacks_what_the_aborted_update_missed(embody):
    """Without the correction: V'(adapt) has a negative row (3, b) and no (3, a)."""
    task, now = example_9(embody)
    result, _ = answered(adapted(task), now)
    queries = result.queries
    assert rows_of(queries["V⁰"]) == product("12", "ab")
    assert rows_of(queries["R_V"]) == [(("a",), 1), (("b",), 1)]
    assert plus(queries["ΔR"]) == [("c",), ("e",)]
    assert minus(queries["ΔR"]) == [("b",)]
    assert plus(queries["ΔV"]) == [row for row, _ in product("123", "ce")]
    assert minus(queries["ΔV"]) == [row for row, _ in product("123", "b")]
    assert rows_of(result.extent) == sorted(
        [*product("12", "ace"), *product("3", "ce"), ((3, "b"), -1)]
    )


def test_example_9_corrected_locally(embody):
    task, now = example_9(embody, bag(R, LETTERS, (3,)))
    result, reads = answered(adapted(task), now)
    # The missing part is V'(DU1) × R_V, and no source is asked for it.
    assert rows_of(result.queries["missing"]) == product("3", "ab")
    assert [read.name for read in reads] == [T, R]
    assert rows_of(result.extent) == product("123", "ace")


def test_examples_7_and_8_the_formulas_hold_for_any_rows():
    """V⁰ ⊕ ΔV is V'(R', T') ⊖ V'(DU1, VE(V, S)); with the missing part it is V'(R', T')."""
    for r, s, t, du1 in itertools.product(
        ([], [1], [1, 2]), ([], ["a"], ["a", "b"]), ([], ["b"], ["b", "c"]), ([], [3], [3, 4])
    ):
        task, _ = example_9(lambda rows: rows)
        change = bag(R, LETTERS, *((n,) for n in du1))
        contents = {R: bag(R, LETTERS, *((n,) for n in r)), S: bag(S, LETTERS, *((x,) for x in s))}
        extent = evaluated(task.old, contents.__getitem__)
        now = {R: contents[R] + change, T: bag(T, LETTERS, *((x,) for x in t))}
        expected = evaluated(task.new, now.__getitem__)
        for correct in (True, False):
            moved = {R: change} if correct and du1 else {}
            asked = Task(
                task.old, task.new, task.mapping, extent, task.before, task.after,
                lambda occurrence, moved=moved: moved.get(occurrence.name),
            )  # fmt: skip
            result, _ = answered(adapted(asked), now)
            missing = [((n, x), 1) for n in du1 for x in s if r]
            lacking = Bag.signed(result.extent.schema, [] if correct else missing)
            assert result.extent + lacking == expected


@pytest.mark.parametrize("earlier", [(), ("b",), ("b", "b", "c")])
def test_lemma_6_changes_of_the_substitute_before_the_drop_come_in_with_the_adaptation(earlier):
    """They are in the substitute's rows already: nothing is added for them, and nothing asked."""
    world, quiet = (letters_world(T, changes) for changes in (earlier, ()))
    assert world.counters.queries == quiet.counters.queries
    rows = [((n, x), 1) for n in (1, 2) for x in sorted({"a", "c"})]
    more = [((n, x), 1) for n in (1, 2) for x in earlier]
    assert world.management.extent == Bag.signed(world.management.extent.schema, rows + more)
    assert judged(world, search=True).is_strong


@pytest.mark.parametrize("earlier", [("x",), ("x", "y")])
def test_lemma_7_changes_of_the_dropped_relation_do_not_change_what_the_adaptation_gives(earlier):
    world, quiet = (letters_world(S, changes) for changes in (earlier, ()))
    # Their own maintenance asks for R, once each; the adaptation asks what it asks without them.
    assert world.counters.queries - len(earlier) == quiet.counters.queries
    assert world.management.extent == quiet.management.extent
    assert judged(world, search=True).is_strong


def letters_world(changed: RelationName, values: tuple[str, ...]) -> EvolutionWorld:
    """V = R × S; inserts of one relation, then S is dropped and T stands for it, all before anything is
    handled but the inserts, whose maintenance meets the drop."""
    view = EvolvingView(
        parse_view("V", "SELECT R.A, S.B FROM IS1.R AS R, IS2.S AS S", LETTERS),
        Preferences(extent=Extent.ANY),
    )
    inserts = [
        Transaction(changed.source, n, ((changed, bag(changed, LETTERS, (value,))),))
        for n, value in enumerate(values, 1)
    ]
    scripts: dict[str, tuple[Any, ...]] = {"IS1": (), "IS2": (), "IS3": ()}
    scripts[changed.source] = tuple(inserts)
    drop = SchemaChanged("IS2", len(scripts["IS2"]) + 1, DropRelation(S))
    scripts["IS2"] = (*scripts["IS2"], drop)
    initial = {
        R: bag(R, LETTERS, (1,), (2,)),
        S: bag(S, LETTERS, ("a",), ("b",)),
        T: bag(T, LETTERS, ("a",), ("c",)),
    }
    knowledge = Knowledge((Replacement(S, T, (("B", Column("C")),)),))
    world = EvolutionWorld(EvolutionScenario(view, LETTERS, knowledge, initial, scripts))
    for source in scripts:
        for _ in scripts[source]:
            world.take(Commit(source))
    # The drop is known before any answer comes.
    for source in ("IS3", "IS2"):
        while world.to_warehouse[source]:
            world.take(DeliverMessage(source, 0))
    while choices := world.choices():
        world.take(choices[0])
    world.require_finished()
    assert world.records[-1].method is Method.MAP_VA
    return world


def test_the_correction_needs_questions_when_more_relations_join():
    """What the paper does not say: with three relations DU1 × R_V still lacks the third one."""
    third = RelationName("IS4", "Q")
    catalog = Catalog((*LETTERS.relations, CatalogRelation(third, Schema.of(D=INTEGER), ("D",))))
    old = parse_view("V", "SELECT R.A, S.B, Q.D FROM IS1.R AS R, IS2.S AS S, IS4.Q AS Q", catalog)
    drop = DropRelation(S)
    knowledge = Knowledge((Replacement(S, T, (("B", Column("C")),)),))
    view = EvolvingView(old, Preferences(extent=Extent.ANY))
    found = synchronized(view, drop, knowledge, catalog_after(catalog, drop))
    du1 = bag(R, catalog, (3,))
    before = {
        R: bag(R, catalog, (1,)),
        S: bag(S, catalog, ("a",)),
        third: bag(third, catalog, (7,), (8,)),
    }
    now = before | {R: before[R] + du1, T: bag(T, catalog, ("a",))}
    task = Task(
        pruned(old),
        pruned(found.definition),
        found.mapping,
        evaluated(old, before.__getitem__),
        Cut.start(("IS1", "IS2", "IS3", "IS4")),
        Cut.of({"IS1": 1, "IS2": 1, "IS3": 0, "IS4": 0}),
        lambda occurrence: du1 if occurrence.name == R else None,
    )
    result, reads = answered(adapted(task), now)
    assert [read.name for read in reads] == [T, third]
    assert result.extent == evaluated(found.definition, now.__getitem__)


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
    queries = plan(pruned(old), pruned(found.definition), found.mapping)
    assert queries.lost_shown == ("IS_R_A",)


def test_example_11_s_nv_asks_the_substitute_under_its_own_names():
    old, found = appendix()
    queries = plan(pruned(old), pruned(found.definition), found.mapping)
    s = RelationName("IS", "S")
    rows = Bag.of(Schema.of(A=INTEGER, C=INTEGER), [(1, 5), (2, 6), (3, 5)])
    result, reads = answered(queries.s_nv(Cut.of({"IS": 1})), {s: rows})
    assert [(read.name, read.schema.names) for read in reads] == [(s, ("A", "C"))]
    assert rows_of(result) == [((1,), 1), ((3,), 1)]


def test_example_12_delta_v_is_the_new_view_with_the_difference_in_the_substitutes_place():
    old, found = appendix()
    queries = plan(pruned(old), pruned(found.definition), found.mapping)
    term = queries.carrier.term
    assert [o.alias for o in term.occurrences] == [DELTA, "T"]
    # The print repeats C = 5 here, on a column that ΔR does not have; S_NV has applied it already.
    assert term.predicates == ()
    t = RelationName("IS", "T")
    rows = Bag.of(Schema.of(B=INTEGER), [(7,), (8,)])
    delta_r = Bag.signed(Schema.of(IS_R_A=INTEGER), [((1,), 1), ((2,), -1)])
    result, _ = answered(queries.delta_v(delta_r, Cut.of({"IS": 1})), {t: rows})
    assert plus(result) == [(1, 7), (1, 8)]
    assert minus(result) == [(2, 7), (2, 8)]


# -- section 5.1.2: name mapping ------------------------------------------------------------------------------


def test_a_data_change_that_meets_no_schema_change_is_installed_as_ever():
    view = example_view()
    contents = {R: bag(R, CATALOG), S: bag(S, CATALOG, (1, 4))}
    management = manager(view, CATALOG, evaluated(view.definition, contents.__getitem__))
    update = Transaction("IS1", 1, ((R, bag(R, CATALOG, (1, 5, 7))),))
    (query,) = management.step(UpdateArrived(update))
    (installed,) = management.step(RowsArrived(query.question, contents[S], Reflected(0)))
    assert isinstance(installed, InstallChange)
    assert rows_of(installed.change) == [((1, 5, 7, 4), 1)]
