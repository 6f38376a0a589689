from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.types import INTEGER
from viewkeeper.protocols.messages import Reflected
from viewkeeper.protocols.recent import RecentTransactions
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views import Occurrence, RelationName

ROWS = Schema.of(k=INTEGER)
NAME = RelationName("s", "r")
OCCURRENCE = Occurrence("x", NAME, ROWS)


def recent(*numbers: int) -> RecentTransactions:
    """Transaction n inserts the row (n,)."""
    known = RecentTransactions(("s",))
    known.add(Transaction("s", n, ((NAME, Bag.of(ROWS, [(n,)])),)) for n in numbers)
    return known


def signed(*pairs: tuple[int, int]) -> Bag:
    return Bag.signed(ROWS, [((value,), count) for value, count in pairs])


def test_what_is_reflected_but_later_is_taken_out():
    assert recent(1, 2, 3).correction(OCCURRENCE, 1, Reflected(3)) == signed((2, -1), (3, -1))


def test_what_is_wanted_but_not_reflected_is_put_in():
    missing = Reflected(3, without=frozenset({1}))
    assert recent(1, 2, 3).correction(OCCURRENCE, 3, missing) == signed((1, 1))


def test_both_at_once():
    reflects = Reflected(0, also=frozenset({3}))
    assert recent(1, 2, 3).correction(OCCURRENCE, 2, reflects) == signed((1, 1), (2, 1), (3, -1))


def test_nothing_to_correct_is_none():
    assert recent(1, 2).correction(OCCURRENCE, 2, Reflected(2)) is None
    other = Occurrence("y", RelationName("s", "other"), ROWS)
    assert recent(1, 2).correction(other, 0, Reflected(2)) is None


def test_a_transaction_is_forgotten_when_it_is_applied_and_every_answer_to_come_reflects_it():
    known = recent(1, 2)
    known.forget(CutVector.of({"s": 2}))
    assert len(known) == 2  # applied, but a query might not see it yet
    known.settle("s", 1)
    known.forget(CutVector.of({"s": 0}))
    assert len(known) == 2  # seen by all queries, but not applied
    known.forget(CutVector.of({"s": 2}))
    assert len(known) == 1


def test_an_open_question_keeps_what_was_not_settled_when_it_was_asked():
    known = recent(1)
    known.asked(7, "s")
    known.settle("s", 1)
    known.forget(CutVector.of({"s": 1}))
    assert len(known) == 1  # the answer to 7 may still miss it
    known.answered(7)
    known.forget(CutVector.of({"s": 1}))
    assert len(known) == 0
