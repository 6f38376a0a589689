"""DyDa (1999), sections 3 to 7: data and schema changes that meet, in the engine that runs live.

The paper's update queue is the group's intake; its concurrent update set is what has arrived and is in no state when a
schema change is taken. Where the engine differs, and why, is in decision 152.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from paper.dyda_world import PaperWorld, insert
from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.types import INTEGER, STRING
from viewkeeper.engine import messages as m
from viewkeeper.engine.cuts import broken_types
from viewkeeper.errors import SourceError
from viewkeeper.simulator.engine.judging import judged
from viewkeeper.simulator.engine.updates import Alter, Update

SELECT = "SELECT R.A, R.B, R.C, S.D FROM IS1.R AS R JOIN IS2.S AS S ON R.A = S.A WHERE R.B <= 10"
ANY = "-- dispensable: C\n-- extent: any\n" + SELECT


def rel(columns: str, *rows: tuple[Any, ...]) -> Bag:
    return Bag.of(Schema.of(**dict.fromkeys(columns.split(), INTEGER)), rows)


def same(lost: str, by: str, attributes: str) -> Mapping[str, Any]:
    """A replacement by attributes of the same names."""
    return {"relation": lost, "by": by, "attributes": {a: a for a in attributes.split()}}


# -- Example 1: the broken query ----------------------------------------------------------------------


def example_1(text: str) -> PaperWorld:
    """R changes; while the query for S travels, S.D is dropped, and the source can't answer."""
    world = PaperWorld(
        text,
        {"IS1.R": rel("A B C"), "IS2.S": rel("A D", (1, 4), (1, 5))},
        {"IS1": (insert("R", (1, 5, 7)),), "IS2": (Alter("S", rel("A").schema),)},
    )
    world.ask("IS1")
    world.commit("IS2")
    assert world.path == ["DUr", "VM", "asks"]
    world.compute()
    assert world.path[-2:] == ["CSCd", "Wait"]
    world.settle()
    return world


def test_example_1_a_drop_breaks_the_query_and_is_found_in_the_queue():
    world = example_1(SELECT)
    # Nothing can stand for D, and the view needs it: it ends as it was, and says what is missing.
    assert "the column D is not dispensable" in world.ledger.ended["V"]
    assert world.states == [[]]


def test_example_1_with_a_view_that_can_do_without():
    world = example_1("-- dispensable: D\n" + SELECT)
    # The aborted change is shown after the view was adapted, in a state of its own.
    assert world.states == [[], [], [(1, 5, 7), (1, 5, 7)]]
    assert not judged(world).problems


def test_a_broken_query_without_a_cause_ends_the_group():
    """Lemma 3 the other way round: what breaks a query is in the queue, or it is a defect that must be seen."""
    relations = {"IS1.R": rel("A B C"), "IS2.S": rel("A D")}
    world = PaperWorld(SELECT, relations, {"IS1": (insert("R", (1, 5, 7)),)})
    world.ask("IS1")
    (job,) = world.group.jobs.by_row
    world._step((world.group.number, m.Failed(broken_types("IS2", "S.D", "nothing"), job)))
    with pytest.raises(SourceError, match="broken-query"):
        world.settle()


# -- Table 2, Figures 3 and 4, Table 4 -------------------------------------------------------------------

RELATIONS = {
    "IS1.R": rel("A B C", (1, 5, 7), (2, 6, 8)),
    "IS2.S": rel("A D", (1, 4), (2, 5)),
    "IS3.T": rel("A B", (1, 5), (3, 3)),
    "IS3.P": rel("A D", (1, 4), (3, 9)),
}
REPLACEMENTS = (same("IS1.R", "IS3.T", "A B"), same("IS2.S", "IS3.P", "A D"))
DU_R, DU_S = insert("R", (3, 1, 1)), insert("S", (3, 6))
DROP_R, DROP_S = Alter("R"), Alter("S")
MAINTAINED = "DUr VM asks installs Done Wait"
ADAPTED = "SCr VS Done VA asks installs Done Reset-VM Done Wait"


def table_2(handled: Update, concurrent: Update | None) -> PaperWorld:
    """``handled`` has asked when ``concurrent`` happens, at the source that is asked."""
    scripts = {"IS1": (handled,), "IS2": () if concurrent is None else (concurrent,)}
    world = PaperWorld(ANY, RELATIONS, scripts, REPLACEMENTS)
    world.ask("IS1")
    if concurrent is not None:
        world.commit("IS2")
    world.settle()
    return world


@pytest.mark.parametrize(
    ("handled", "concurrent", "path", "states"),
    [
        pytest.param(DU_R, None, MAINTAINED, 2, id="a DU"),
        pytest.param(DROP_R, None, ADAPTED, 2, id="an SC"),
        pytest.param(DU_R, DU_S, f"{MAINTAINED} {MAINTAINED}", 3, id="I: DU while a DU is handled"),
        pytest.param(
            DROP_R, DU_S, f"{ADAPTED} {MAINTAINED}", 3, id="II: DU while an SC is handled"
        ),
        pytest.param(
            DU_R,
            DROP_S,
            f"DUr VM asks CSCd Wait {ADAPTED} {MAINTAINED}",
            3,
            id="III: SC while a DU is handled",
        ),
        pytest.param(
            DROP_R,
            DROP_S,
            f"SCr VS Done VA asks CSCd Wait {ADAPTED}",
            2,
            id="IV: SC while an SC is handled",
        ),
    ],
)
def test_table_2_all_four_types_pass_the_states_of_table_4(handled, concurrent, path, states):
    """VS and Reset-VM ask nothing, VA and VM ask and install; a broken query leads back to Wait."""
    world = table_2(handled, concurrent)
    assert " ".join(world.path) == path
    assert len(world.states) == states
    assert not judged(world).problems


# Figure 3's arcs, with the events of Figure 4.
ARCS = """
Wait SCr VS; VS Done VA; VA Done Reset-VM; Reset-VM Done Wait; Wait DUr VM; VM Done Wait;
VA CSCd Wait; Reset-VM CSCd Wait; VM CSCd Wait
"""
# The engine's Reset-VM asks nothing, so that it detects nothing. Changes that have all arrived are
# synchronized one after the other, and adapted to once: one more arc.
NEVER = ("Reset-VM", "CSCd", "Wait")
ALSO = ("VS", "SCr", "VS")


def arcs_of(path: list[str]) -> set[tuple[str, ...]]:
    words = ["Wait", *(word for word in path if word not in ("asks", "installs"))]
    return {tuple(words[n : n + 3]) for n in range(0, len(words) - 2, 2)}


def test_the_engine_takes_exactly_the_arcs_of_figure_3():
    drawn = {tuple(arc.split()) for arc in ARCS.replace("\n", " ").split(";")}
    found: set[tuple[str, ...]] = set()
    for handled in (DU_R, DROP_R):
        for concurrent in (None, DU_S, DROP_S):
            found |= arcs_of(table_2(handled, concurrent).path)
    found |= arcs_of(example_3().path)
    assert found == drawn - {NEVER} | {ALSO}


# -- Examples 2 and 3: concurrent update sets -----------------------------------------------------------


def example_3() -> PaperWorld:
    """DU1, SC1, SC2, DU2, SC3: what is being handled when the next one breaks it."""
    world = PaperWorld(
        ANY,
        {
            "IS1.R": rel("A B C"),
            "IS2.S": rel("A D"),
            "IS3.T": rel("A B"),
            "IS4.P": rel("A D"),
            "IS5.U": rel("A B", (1, 5)),
        },
        {
            "IS1": (insert("R", (1, 5, 7)), Alter("R")),
            "IS2": (Alter("S"),),
            "IS4": (insert("P", (1, 4)),),
            "IS3": (Alter("T"),),
        },
        (
            same("IS1.R", "IS3.T", "A B"),
            same("IS2.S", "IS4.P", "A D"),
            same("IS3.T", "IS5.U", "A B"),
        ),
    )
    world.ask("IS1")  # DU1 asks for S
    world.commit("IS1")  # SC1
    world.commit("IS2")  # SC2
    world.compute()
    world.up_to(m.FillViews)
    # S is gone: DU1 waits. SC1 and SC2 have both arrived, and one adaptation sees to both.
    assert changes_seen_to(world) == ["drop IS1.R", "drop IS2.S"]
    world.commit("IS4")  # DU2
    world.commit("IS3")  # SC3
    world.carry_out()
    world.up_to(m.FillViews)
    # T is gone too: SC3 sees to everything, over U and P.
    assert changes_seen_to(world) == ["drop IS1.R", "drop IS2.S", "drop IS3.T"]
    world.settle()
    return world


def changes_seen_to(world: PaperWorld) -> list[str]:
    """The schema changes whose rows the next filling brings in."""
    return [str(step) for plan in world.group._state.pending.taken for step in plan.steps]


def test_examples_2_and_3_a_schema_change_sees_to_what_it_aborted_and_what_that_had_aborted():
    """In the print SC2's adaptation ends although SC1, handled before it, waits for SC3. Ours takes all changes that
    have arrived before it adapts; aborted data changes come after it, in their order. DU1 is of R, which is gone."""
    world = example_3()
    (*_, last) = world.fills
    assert [str(arrival.origin.source) for arrival in last.waiting] == ["IS4"]
    assert world.states == [[], [], [(1, 5, 4)]]
    assert not judged(world).problems


def test_example_6_two_drops_before_an_adaptation_lead_to_one_merged_mapping():
    """Table 7, third column: the engine adapts once, from the original view to version 2."""
    text = (
        "-- dispensable: A\n-- extent: any\n"
        "SELECT R.A, R.C, T.B, T.D FROM IS1.R AS R JOIN IS2.T AS T ON R.C = T.D"
    )
    world = PaperWorld(
        text,
        {
            "IS1.R": rel("A C", (1, 10), (2, 20)),
            "IS2.T": rel("B D", (7, 10), (8, 30)),
            "IS2.S": rel("A C", (1, 10)),
            "IS3.P": rel("C", (10,), (30,)),
        },
        {"IS1": (Alter("R"),), "IS2": (Alter("S"),)},
        (same("IS1.R", "IS2.S", "A C"), same("IS2.S", "IS3.P", "C")),
    )
    world.ask("IS1")
    world.commit("IS2")
    world.carry_out()
    world.up_to(m.FillViews)
    ((_, mapping),) = world.group._state.pending.outdated.values()
    # The print has R.A → P.C and puts P into IS2; P is at IS3, and R.C is what became P.C.
    assert mapping.lines() == ("IS1.R.A dropped", "IS1.R.C → IS3.P.C", "IS1.R → IS3.P")
    world.settle()
    assert world.states[-1] == [(10, 7, 10), (30, 8, 30)]
    assert not judged(world).problems


# -- sections 5.1.1 and 5.1.2: local correction and name mapping -------------------------------------------


def renamed(relation: str, before: str, columns: str, **names: str) -> Alter:
    return Alter(relation, rel(columns).schema, renamed_columns=names)


def test_case_1_renames_that_have_arrived_are_applied_before_a_question_is_sent():
    world = PaperWorld(
        SELECT,
        {"IS1.R": rel("A B C"), "IS2.S": rel("A D", (1, 4))},
        {
            "IS2": (renamed("S", "A", "X D", A="X"), Alter("S", renamed_to="Q")),
            "IS1": (insert("R", (1, 5, 7)),),
        },
    )
    for source in ("IS2", "IS2", "IS1"):
        world.commit(source)
    world.settle()
    assert "CSCd" not in world.path
    (occurrence,) = (
        o for o in world.ledger.views["V"].definition.terms[0].occurrences if o.alias == "S"
    )
    assert (occurrence.name.relation, occurrence.schema.names) == ("Q", ("X", "D"))
    assert world.states[-1] == [(1, 5, 7, 4)]


def test_case_2_a_broken_query_is_sent_again_under_the_new_names_until_it_succeeds():
    world = PaperWorld(
        SELECT,
        {"IS1.R": rel("A B C"), "IS2.S": rel("A D", (1, 4))},
        {
            "IS2": (renamed("S", "A", "X D", A="X"), renamed("S", "X", "Y D", X="Y")),
            "IS1": (insert("R", (1, 5, 7)),),
        },
    )
    world.ask("IS1")
    for _ in range(2):
        world.commit("IS2")
        world.compute()
        world.ask_again()
    world.settle()
    assert world.counts["broken queries"] == 2
    assert world.states == [[], [(1, 5, 7, 4)]]
    assert not judged(world).problems


def test_an_answer_under_a_name_that_means_another_column_now_is_not_believed():
    """A → C, then D → A: a question for A would succeed, and give what was D."""
    world = PaperWorld(
        SELECT,
        {"IS1.R": rel("A B C"), "IS2.S": rel("A D", (1, 4), (4, 1))},
        {
            "IS1": (insert("R", (1, 5, 7)),),
            "IS2": (renamed("S", "A", "C D", A="C"), renamed("S", "D", "C A", D="A")),
        },
    )
    world.sources["IS2"].commit(world._left["IS2"].popleft())
    world.sources["IS2"].commit(world._left["IS2"].popleft())
    world.commit("IS1")  # its feed is faster
    world.settle()
    assert world.states == [[], [(1, 5, 7, 4)]]
    assert not judged(world).problems


# -- Examples 7 to 9, lemmas 5 to 9: aborted data updates ------------------------------------------------------


def letters(column: str, *values: str) -> Bag:
    return Bag.of(Schema.of(**{column: STRING}), [(value,) for value in values])


def example_9(**scripts: tuple[Update, ...]) -> PaperWorld:
    """R × S with T to stand for S. DU1 has asked for S when all the others happen."""
    world = PaperWorld(
        "-- extent: any\nSELECT R.A, S.B FROM IS1.R AS R, IS2.S AS S",
        {
            "IS1.R": rel("A", (1,), (2,)),
            "IS2.S": letters("B", "a", "b"),
            "IS3.T": letters("C", "a", "c"),
        },
        scripts,
        ({"relation": "IS2.S", "by": "IS3.T", "attributes": {"B": "C"}},),
    )
    if "IS1" in scripts:
        world.ask("IS1")
    for source in ("IS3", "IS2"):
        for _ in scripts.get(source, ()):
            world.commit(source)
    world.settle()
    assert [list(fill.adaptations) for fill in world.fills[-1:]] == [["V"]]  # by Map-VA
    assert not judged(world).problems
    return world


def product(numbers: str, values: str) -> list[tuple[int, str]]:
    return sorted((int(n), value) for n in numbers for value in values)


def test_example_9_aborted_updates_are_in_states_of_their_own_and_nothing_is_missing():
    """DU1 adds 3 to R, DU2 d to S, DU3 e to T; then S is dropped. The expected extent is the paper's."""
    world = example_9(
        IS1=(insert("R", (3,)),),
        IS2=(insert("S", ("d",)), Alter("S")),
        IS3=(insert("T", ("e",)),),
    )
    # Adapted at the cut of the old extent; then DU1 and DU3, each maintained over the new view.
    assert world.states[0] == product("12", "ab")
    assert world.states[1] == product("12", "ac")
    assert world.states[-1] == product("123", "ace")
    assert len(world.states) == 4


@pytest.mark.parametrize("earlier", [(), ("b",), ("b", "e")])
def test_lemma_6_updates_of_the_substitute_come_in_though_no_view_had_read_it(earlier):
    """Those that are in no state yet are taken out of what the adaptation reads, and are maintained after it."""
    inserts = tuple(insert("T", (value,)) for value in earlier)
    world = example_9(IS1=(insert("R", (3,)),), IS2=(Alter("S"),), IS3=inserts)
    expected = sorted([*product("123", "ac"), *((n, x) for n in (1, 2, 3) for x in earlier)])
    assert world.states[-1] == expected


@pytest.mark.parametrize("earlier", [("x",), ("x", "y")])
def test_lemma_7_updates_of_the_dropped_relation_have_no_effect_on_the_adaptation(earlier):
    inserts = tuple(insert("S", (value,)) for value in earlier)
    world = example_9(IS1=(insert("R", (3,)),), IS2=(*inserts, Alter("S")))
    quiet = example_9(IS1=(insert("R", (3,)),), IS2=(Alter("S"),))
    assert world.states[1:] == quiet.states[1:]


def test_lemma_5_an_update_of_the_drops_own_source_before_it_is_applied_or_gone():
    """A source's updates are never taken out of their order, whatever is aborted."""
    world = example_9(IS2=(insert("S", ("d",)), Alter("S")))
    assert world.states[-1] == product("12", "ac")


def test_lemma_2_and_theorem_1_every_order_of_arrival_ends_the_same():
    """The order inside a source is kept; between sources any order is possible, and all are right."""
    scripts = {
        "IS1": (insert("R", (3,)),),
        "IS2": (insert("S", ("d",)), Alter("S")),
        "IS3": (insert("T", ("e",)),),
    }
    ends = set()
    for order in {
        ("IS1", "IS2", "IS2", "IS3"),
        ("IS3", "IS2", "IS2", "IS1"),
        ("IS2", "IS3", "IS1", "IS2"),
    }:
        world = PaperWorld(
            "-- extent: any\nSELECT R.A, S.B FROM IS1.R AS R, IS2.S AS S",
            {
                "IS1.R": rel("A", (1,), (2,)),
                "IS2.S": letters("B", "a", "b"),
                "IS3.T": letters("C", "a", "c"),
            },
            scripts,
            ({"relation": "IS2.S", "by": "IS3.T", "attributes": {"B": "C"}},),
        )
        for source in order:
            world.commit(source)
            world.carry_out()
        world.settle()
        assert not judged(world).problems
        ends.add(tuple(world.states[-1]))
    assert ends == {tuple(product("123", "ace"))}
