"""Names are mapped and answers corrected below everything else."""

from __future__ import annotations

import pytest

from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.errors import InvariantViolated
from viewkeeper.evolution.changes import (
    AddAttribute,
    ChangeType,
    DropAttribute,
    RenameAttribute,
    RenameRelation,
    SchemaChanged,
)
from viewkeeper.evolution.messages import QueryBroken, RowsArrived
from viewkeeper.evolution.naming import Names, after, before
from viewkeeper.evolution.query_engine import Answered, Interrupted, QueryEngine
from viewkeeper.evolution.reading import Read
from viewkeeper.evolution.update_log import UpdateLog
from viewkeeper.protocols.messages import Reflected
from viewkeeper.timeline import Cut, Transaction
from viewkeeper.views.definition import RelationName

R, Q = RelationName("s", "r"), RelationName("s", "q")
AB = Schema.of(a=INTEGER, b=INTEGER)


class Desk:
    """A query engine, with updates numbered as they come."""

    def __init__(self) -> None:
        self.log = UpdateLog(Cut.start(["s"]))
        self.engine = QueryEngine(self.log)
        self.number = 0

    def changed(self, *changes) -> None:
        for change in changes:
            self.number += 1
            self.log.add(SchemaChanged("s", self.number, change))

    def inserted(self, name: RelationName, schema: Schema, *row: int) -> None:
        self.number += 1
        rows = Bag.of(schema, [row])
        self.log.add(Transaction("s", self.number, ((name, rows),)))

    def ask(self, wanted: int = 0):
        return self.engine.ask(Read(R, AB, wanted))

    def answer(self, question: int, reflects: int, *rows: tuple[int, int]):
        found = Bag.of(Schema.of(x=INTEGER, y=INTEGER), rows)
        return self.engine.rows_arrived(RowsArrived(question, found, Reflected(reflects)))


def test_case_1_renames_that_have_arrived_are_applied_before_a_query_is_sent():
    desk = Desk()
    desk.changed(RenameAttribute(R, "a", "x"), RenameRelation(R, "q"), RenameAttribute(Q, "x", "y"))
    query = desk.ask()
    assert (query.relation, query.columns) == ("q", ("y", "b"))
    answered = desk.answer(query.question, 3, (1, 2))
    assert answered == Answered(Bag.of(AB, [(1, 2)]))


def test_case_2_a_broken_query_is_sent_again_until_it_succeeds():
    desk = Desk()
    first = desk.ask()
    desk.changed(RenameAttribute(R, "a", "x"))
    second = desk.engine.broken(QueryBroken(first.question))
    assert second.columns == ("x", "b")
    desk.changed(RenameRelation(R, "q"))
    third = desk.engine.broken(QueryBroken(second.question))
    assert (third.relation, third.columns) == ("q", ("x", "b"))
    assert isinstance(desk.answer(third.question, 2, (1, 2)), Answered)


def test_a_drop_among_renames_is_the_cause():
    desk = Desk()
    query = desk.ask()
    desk.changed(RenameAttribute(R, "a", "x"), DropAttribute(R, "x"), RenameRelation(R, "q"))
    outcome = desk.engine.broken(QueryBroken(query.question))
    assert isinstance(outcome, Interrupted)
    assert outcome.cause.number == 2


def test_an_answer_under_a_name_that_means_another_column_now_is_not_believed():
    """a → c, then b → a: the query for a succeeds, and gives what was b."""
    desk = Desk()
    query = desk.ask()
    desk.changed(
        RenameAttribute(R, "a", "c"), RenameAttribute(R, "b", "a"), AddAttribute(R, AB.fields[1])
    )
    again = desk.answer(query.question, 3, (9, 9))
    assert again.columns == ("c", "a")


def test_an_answer_from_before_a_change_that_has_arrived_is_good():
    desk = Desk()
    query = desk.ask()
    desk.changed(RenameAttribute(R, "a", "c"))
    assert isinstance(desk.answer(query.question, 0, (1, 2)), Answered)


def test_a_changed_type_interrupts_even_if_the_source_answers():
    desk = Desk()
    query = desk.ask()
    desk.changed(ChangeType(R, "b", INTEGER, INTEGER))
    assert isinstance(desk.answer(query.question, 1, (1, 2)), Interrupted)


def test_a_change_of_what_was_not_asked_for_disturbs_nothing():
    desk = Desk()
    query = desk.ask()
    desk.changed(DropAttribute(R, "z"), RenameRelation(Q, "p"), AddAttribute(R, AB.fields[0]))
    assert isinstance(desk.answer(query.question, 3, (1, 2)), Answered)


def test_a_query_that_breaks_without_a_reason_is_our_defect():
    desk = Desk()
    query = desk.ask()
    with pytest.raises(InvariantViolated, match="no schema change explains it"):
        desk.engine.broken(QueryBroken(query.question))


def test_answers_to_processes_that_were_given_up_are_ignored():
    desk = Desk()
    assert desk.engine.broken(QueryBroken(17)) is None
    assert desk.answer(17, 0) is None


def test_local_correction_works_across_renames_in_both_directions():
    desk = Desk()
    desk.inserted(R, AB, 1, 1)
    desk.changed(RenameAttribute(R, "a", "x"))
    desk.inserted(R, Schema.of(x=INTEGER, b=INTEGER), 2, 2)
    # The view does not know the rename yet and wants the state after the first insert.
    query = desk.ask(wanted=1)
    answered = desk.answer(query.question, 3, (1, 1), (2, 2))
    assert answered == Answered(Bag.of(AB, [(1, 1)]))
    # It has been synchronized with the rename: older changes come in its new names.
    (rename,) = (c for c in desk.log._changes["s"])
    desk.log.synchronized(rename)
    xb = Schema.of(x=INTEGER, b=INTEGER)
    change = desk.log.change(Names(R, ("x", "b")), xb, 0, 3)
    assert change == Bag.of(xb, [(1, 1), (2, 2)])


def test_what_is_applied_and_settled_is_forgotten():
    desk = Desk()
    for number in range(4):
        desk.inserted(R, AB, number, number)
    desk.log.forget(Cut.of({"s": 3}), Cut.of({"s": 2}))
    assert len(desk.log) == 2


@pytest.mark.parametrize(
    "change",
    [RenameAttribute(R, "a", "x"), RenameRelation(R, "q"), AddAttribute(R, AB.fields[0])],
)
def test_going_after_a_change_and_back_before_it_is_going_nowhere(change):
    names = Names(R, ("b",)) if isinstance(change, AddAttribute) else Names(R, ("a", "b"))
    later = after(names, change)
    assert later is not None
    assert before(later, change) == names
