from viewkeeper.protocols.inbox import AnswerMessage, Inbox, SettledMessage, TransactionMessage
from viewkeeper.protocols.messages import (
    AnswerArrived,
    Reflected,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.timeline import Transaction


def transaction(number: int) -> Transaction:
    return Transaction("s", number, ())


def answer(question: int, reflects: Reflected) -> AnswerMessage:
    return AnswerMessage(AnswerArrived(question, (), reflects))


def test_transactions_are_passed_on_in_the_order_of_the_source():
    inbox = Inbox("s")
    assert inbox.receive(TransactionMessage(transaction(2), 0)) == ()
    assert inbox.receive(TransactionMessage(transaction(1), 0)) == (
        TransactionArrived(transaction(1)),
        TransactionArrived(transaction(2)),
    )


def test_an_answer_waits_for_everything_it_reflects():
    inbox = Inbox("s")
    assert inbox.receive(answer(1, Reflected(0, also=frozenset({2})))) == ()
    assert inbox.holds == 1
    assert inbox.receive(TransactionMessage(transaction(1), 0)) == (
        TransactionArrived(transaction(1)),
    )
    events = inbox.receive(TransactionMessage(transaction(2), 0))
    assert [type(event) for event in events] == [TransactionArrived, AnswerArrived]


def test_an_answer_is_passed_on_before_transactions_that_it_does_not_need():
    inbox = Inbox("s")
    inbox.receive(TransactionMessage(transaction(3), 0))
    inbox.receive(TransactionMessage(transaction(2), 0))
    inbox.receive(answer(1, Reflected(1)))
    events = inbox.receive(TransactionMessage(transaction(1), 0))
    assert [type(event) for event in events] == [
        TransactionArrived,
        AnswerArrived,
        TransactionArrived,
        TransactionArrived,
    ]


def test_a_transaction_that_comes_twice_is_dropped():
    inbox = Inbox("s")
    inbox.receive(TransactionMessage(transaction(1), 0))
    assert inbox.receive(TransactionMessage(transaction(1), 0)) == ()
    assert inbox.holds == 0


def test_settlement_is_told_once_and_never_ahead_of_what_was_delivered():
    inbox = Inbox("s")
    assert inbox.receive(SettledMessage(2)) == ()
    assert SourceSettled("s", 1) in inbox.receive(TransactionMessage(transaction(1), 0))
    assert inbox.receive(SettledMessage(1)) == ()
