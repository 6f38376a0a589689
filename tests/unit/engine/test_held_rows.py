"""What waits for views that can't begin, and what does not."""

from __future__ import annotations

from viewkeeper.engine.held_rows import Held, parted
from viewkeeper.engine.integrator import Arrival
from viewkeeper.simulator.engine.sources import START
from viewkeeper.sources.interface import SourceTransaction
from viewkeeper.timeline import Transaction


def arrivals(*sources: str, units=()) -> tuple[Arrival, ...]:
    """Transactions of these sources; ``units`` says of some places to which unit they belong."""
    found = []
    for place, source in enumerate(sources):
        origin = SourceTransaction(source, {"n": place}, place, START, (), None)
        transaction = Transaction(source, place + 1, ())
        found.append(Arrival(place + 1, origin, transaction, 1, dict(units).get(place)))
    return tuple(found)


# Which view reads which source.
READS = {"s": ("P",), "t": ("A",), "u": ("A", "P"), "w": ()}


def concerned(batch) -> tuple[str, ...]:
    return tuple(sorted({view for a in batch for view in READS[a.origin.source]}))


def runs(batch, held) -> list[tuple[str, bool]]:
    found = parted(batch, concerned, held)
    return [("".join(a.origin.source for a in run), waits) for run, _, waits in found]


def test_nothing_is_parted_where_nothing_waits():
    assert runs(arrivals("s", "t", "u"), Held(frozenset())) == [("stu", False)]


def test_what_a_blocked_view_does_not_read_does_not_wait():
    held = Held(frozenset({"P"}))
    assert runs(arrivals("t", "s", "t", "w"), held) == [("t", False), ("s", True), ("tw", False)]


def test_what_follows_in_a_view_or_a_source_waits_too():
    held = Held(frozenset({"P"}))
    # The third concerns A, which must not show it before what it has in common with P.
    assert runs(arrivals("t", "u", "t"), held) == [("t", False), ("ut", True)]


def test_rows_that_wait_for_different_views_are_apart():
    held = Held(frozenset({"P", "A"}))
    assert runs(arrivals("s", "t", "s"), held) == [("s", True), ("t", True), ("s", True)]


def test_what_a_periodic_view_reads_is_a_row_of_its_own_even_when_it_can_begin():
    held = Held(frozenset(), ["P"])
    assert runs(arrivals("t", "s", "t"), held) == [("t", False), ("s", False), ("t", False)]


def test_a_unit_is_not_parted():
    unit = object()
    batch = arrivals("t", "t", "s", "t", units={1: unit, 2: unit})
    assert runs(batch, Held(frozenset({"P"}))) == [("t", False), ("tst", True)]
