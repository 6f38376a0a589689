"""Parts of global transactions on their way: held back, released as one, and never out of order."""

from __future__ import annotations

import datetime as dt

import pytest

from viewkeeper.algebra import Schema
from viewkeeper.algebra.types import INTEGER, STRING
from viewkeeper.engine.integrator import Integrator, states_of
from viewkeeper.engine.transaction_ties import Outbox, Unit, Units
from viewkeeper.errors import UsageError
from viewkeeper.live.feeds import Delivery
from viewkeeper.merging.global_transactions import GlobalTransactions, Overdue, Warn
from viewkeeper.protocols.messages import Reflected
from viewkeeper.sources.interface import RelationChange, SourceTransaction
from viewkeeper.views.definition import RelationName

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
OUTBOX = Outbox("outbox", Schema.of(id=STRING, parts=INTEGER))


def transaction(source: str, at: int, tie: str | None = None, *, boxed: bool = False):
    changes = [RelationChange("r", (), ((at,),))]
    if tie is not None and boxed:
        changes.append(RelationChange("outbox", (), ((tie, 2),)))
    said = (tie, 2) if tie is not None and not boxed else None
    return SourceTransaction(source, {"at": at}, at, NOW, tuple(changes), said)


def delivery(*items, generation: int = 0) -> Delivery:
    return Delivery(items[0].source, items, items[-1].position, "life", generation)


def units(overdue: Overdue = Overdue.SHOW_PARTS) -> Units:
    return Units(GlobalTransactions(5.0, overdue), {"b": OUTBOX})


def told(released) -> list:
    """Sources and places of what was released: units as tuples, positions alone as such."""
    found = []
    for each in released:
        match each:
            case Unit(parts):
                found.append(tuple((p.source, p.position["at"]) for p in parts))
            case Delivery(source, items, position):
                found.append((source, [i.position["at"] for i in items], position["at"]))
            case Warn(code):
                found.append(code)
    return found


def test_without_ties_a_delivery_goes_on_as_it_came():
    whole = delivery(transaction("a", 1), transaction("a", 2))
    assert list(units().released(whole, 0.0)) == [whole]


def test_a_part_waits_for_the_other_and_so_does_what_comes_after_it():
    held = units()
    first = delivery(transaction("a", 1), transaction("a", 2, "t"), transaction("a", 3))
    assert told(held.released(first, 0.0)) == [("a", [1], 1)]
    # The other source's part completes it; positions move only when contents have gone ahead.
    second = delivery(transaction("b", 7, "t", boxed=True))
    assert told(held.released(second, 1.0)) == [
        (("a", 2), ("b", 7)), ("a", [], 2), ("b", [], 7), ("a", [3], 3), ("a", [], 3), ("b", [], 7),
    ]  # fmt: skip


def test_what_is_overdue_is_named_and_shown_or_waited_for():
    shown = units()
    list(shown.released(delivery(transaction("a", 1, "t")), 0.0))
    later = delivery(transaction("b", 1))
    assert told(shown.released(later, 9.0))[:3] == [
        ("b", [1], 1), "global-transaction-incomplete", ("a", [1], 1),
    ]  # fmt: skip
    waiting = units(Overdue.KEEP_WAITING)
    list(waiting.released(delivery(transaction("a", 1, "t")), 0.0))
    assert told(waiting.released(later, 9.0)) == [
        ("b", [1], 1), "global-transaction-incomplete", ("b", [], 1),
    ]  # fmt: skip


# -- a feed that was opened again for other relations ------------------------------------------------


def test_what_was_held_back_is_released_with_all_that_its_delivery_carried():
    held = units()
    tied = delivery(transaction("a", 1, "t"), transaction("a", 2), generation=3)
    assert not list(held.released(tied, 0.0))
    other = delivery(transaction("b", 7, "t", boxed=True), generation=1)
    released = list(held.released(other, 1.0))
    (unit,) = [each for each in released if isinstance(each, Unit)]
    assert [(p.source, p.generation, p.life) for p in unit.parts] == [
        ("a", 3, "life"), ("b", 1, "life"),
    ]  # fmt: skip
    others = [each for each in released if isinstance(each, Delivery)]
    assert {(d.source, d.generation, d.life) for d in others} == {
        ("a", 3, "life"),
        ("b", 1, "life"),
    }


def test_a_part_that_is_read_again_is_not_counted_twice():
    """The feed goes back while its part waits: one part of two is here, not two."""
    held = units()
    list(held.released(delivery(transaction("a", 1, "t"), transaction("a", 2)), 0.0))
    held.go_back("a", 1)
    again = delivery(transaction("a", 1, "t"), transaction("a", 2), generation=1)
    assert told(held.released(again, 1.0)) == []
    second = delivery(transaction("b", 7, "t", boxed=True))
    assert told(held.released(second, 2.0))[:1] == [(("a", 1), ("b", 7))]


def test_what_a_feed_delivered_before_it_went_back_is_not_handed_on():
    held = units()
    held.go_back("a", 1)
    assert not list(held.released(delivery(transaction("a", 1, "t")), 0.0))
    assert not list(held.released(delivery(transaction("a", 1)), 0.0))
    assert told(held.released(delivery(transaction("a", 1), generation=1), 0.0)) == [("a", [1], 1)]


@pytest.mark.parametrize(
    "row",
    [
        (None, 2), ("", 2), ("x" * 2_000, 2), ("t", 0), ("t", -1), ("t", 10**9), ("t", "two"), ("t", 2.5),
        ("t", float("nan")), ("t", "²"), ("t", b"2"), ("t", "9" * 5_000), ("t", ""),
    ],
)  # fmt: skip
def test_a_row_of_an_outbox_that_says_nothing_ties_nothing_and_is_named(row):
    item = transaction("b", 1)
    item = item._replace(changes=(*item.changes, RelationChange("outbox", (), (row,))))
    assert told(units().released(delivery(item), 0.0)) == [
        "tie-ignored",
        ("b", [1], 1),
        ("b", [], 1),
    ]


def test_a_message_ties_nothing_where_an_outbox_says_who_may():
    assert told(units().released(delivery(transaction("b", 1, "t")), 0.0)) == [("b", [1], 1)]


def test_an_outbox_without_its_columns_is_refused():
    with pytest.raises(UsageError, match="no column parts"):
        Outbox("outbox", Schema.of(id=STRING))


def test_a_unit_is_never_divided_and_is_one_state():
    integrator = Integrator([RelationName("a", "r"), RelationName("b", "r")])
    unit = object()
    integrator.arrived(transaction("a", 1))
    integrator.arrived(transaction("a", 2), unit)
    integrator.arrived(transaction("b", 1), unit)
    integrator.arrived(transaction("a", 3))
    everything = {"a": None, "b": None}
    # The other source's part is not visible yet: neither is.
    batch = integrator.close_batch({"a": None, "b": Reflected(0)}, 10, 10)
    assert [a.number for a in batch] == [1]
    # However small a batch must be, the unit is in it as a whole.
    batch = integrator.close_batch(everything, 1, 1)
    assert [a.number for a in batch] == [2, 3]
    assert states_of(batch) == [0, 0]
    (last,) = integrator.close_batch(everything, 10, 10)
    assert states_of([*batch, last]) == [0, 0, 1]


def test_the_rest_of_a_delivery_that_sent_its_feed_back_comes_again_and_not_twice():
    held = units()
    mixed = delivery(transaction("a", 1), transaction("a", 2, "g"))
    released = held.released(mixed, 0.0)
    assert told([next(released)]) == [("a", [1], 1)]
    # Whoever took it in has the feed read again from there.
    held.go_back("a", 1)
    assert told(released) == []
    assert told(held.released(delivery(transaction("a", 2, "g"), generation=1), 0.0)) == []
    both = held.released(delivery(transaction("b", 1, "g", boxed=True)), 0.0)
    assert told(both)[0] == (("a", 2), ("b", 1))
