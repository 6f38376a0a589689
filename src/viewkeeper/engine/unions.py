"""Where a group's own part of the feeds ends: what lies before it, and what another group applies.

Groups become one at one cut. Each of them takes in everything up to there as its own; what lies beyond
is the successor's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.transaction_ties import Unit
from viewkeeper.sources.interface import FeedItem, Position, SchemaChange
from viewkeeper.sources.transaction_block import TransactionBlock

# Of a source, whether its first position is before (-1), at (0) or behind (1) its second.
Compare = Callable[[str, Position, Position], int]


class Member(Protocol):
    """A group that comes to its end together with others.

    ``is_done``: whether it has applied all up to its end, and takes no schema change.
    """

    is_done: bool

    def has_passed_change(self, change: SchemaChange) -> bool:
        """Whether the change is behind it, or it does not read its source."""
        ...


class Union:
    """Groups that come to one end, and the schema changes beyond it that they take: all of them or none.

    A source that has changed its schema shows other columns than a view that is still behind has: it must
    take the change before it can be computed up to the end. If some views knew of the change and others,
    over the same relation, did not, no one who begins with all of them could tell what they are over.
    """

    def __init__(self, members: Iterable[Member]) -> None:
        self._members = tuple(members)
        self._decided: list[tuple[SchemaChange, bool]] = []
        # Live, groups still ask from threads of their own.
        self._lock = threading.Lock()

    def takes(self, change: SchemaChange) -> bool:
        """Whether its members take a change that lies beyond their end; one decides for all."""
        with self._lock:
            for known, is_taken in self._decided:
                if is_same(known, change):
                    return is_taken
            is_taken = not all(member.is_done for member in self._members)
            self._decided.append((change, is_taken))
            return is_taken

    @property
    def taken(self) -> list[SchemaChange]:
        return [change for change, is_taken in tuple(self._decided) if is_taken]

    @property
    def is_over(self) -> bool:
        """Whether every member has applied all up to the end, and taken what all take."""
        return all(
            member.is_done and all(map(member.has_passed_change, self.taken))
            for member in self._members
        )


def is_same(one: SchemaChange, other: SchemaChange) -> bool:
    """Whether a feed tells of one change twice. A statement that changes a table and renames it is two
    changes at one position."""
    place = one.source, one.relation, one.position, one.renamed_to
    return place == (other.source, other.relation, other.position, other.renamed_to)


def latest(cuts: Iterable[Mapping[str, Position]], compare: Compare) -> dict[str, Position]:
    """For each source, the latest of its positions in some cuts."""
    found: dict[str, Position] = {}
    for cut in cuts:
        for source, position in cut.items():
            if source not in found or compare(source, position, found[source]) > 0:
                found[source] = position
    return found


def divided(
    message: Delivery | Unit, end: Mapping[str, Position], compare: Compare
) -> tuple[Delivery | Unit | None, Delivery | Unit | None]:
    """What of a message lies before the end, and what beyond; either may be nothing."""
    if isinstance(message, Unit):
        return _divided_unit(message, end, compare)
    return _divided_delivery(message, end, compare)


def _divided_unit(
    unit: Unit, end: Mapping[str, Position], compare: Compare
) -> tuple[Unit | None, Unit | None]:
    # The cuts that groups stand at have all parts of a unit or none, as far as they were one group.
    # Views of which some had a part already get the others as what they are by now: single changes.
    before = tuple(p for p in unit.parts if _is_before(p.source, p.position, end, compare))
    beyond = tuple(p for p in unit.parts if p not in before)
    return (
        replace(unit, parts=before) if before else None,
        replace(unit, parts=beyond) if beyond else None,
    )


def _divided_delivery(
    delivery: Delivery, end: Mapping[str, Position], compare: Compare
) -> tuple[Delivery | None, Delivery | None]:
    source = delivery.source
    if _is_before(source, delivery.position, end, compare):
        return delivery, None
    items = tuple(_told_apart(delivery, end, compare))
    # SQLite tells a new schema with the place where it was noticed: what lies before may follow.
    own = [n for n, item in enumerate(items, 1) if _is_before(source, item.position, end, compare)]
    size = own[-1] if own else 0
    before = replace(delivery, items=items[:size], position=end[source])
    return before, replace(delivery, items=items[size:])


def _told_apart(
    delivery: Delivery, end: Mapping[str, Position], compare: Compare
) -> Iterator[FeedItem | TransactionBlock]:
    """The items, with a block across the end told singly."""
    for item in delivery.items:
        if isinstance(item, TransactionBlock):
            first = item.position_of(int(item.marks[0]))
            begins_before = _is_before(item.source, first, end, compare)
            if begins_before and not _is_before(item.source, item.position, end, compare):
                yield from item.transactions()
                continue
        yield item


def _is_before(
    source: str, position: Position, end: Mapping[str, Position], compare: Compare
) -> bool:
    return source not in end or compare(source, position, end[source]) <= 0
