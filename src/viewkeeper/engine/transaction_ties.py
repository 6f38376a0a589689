"""Transactions over several sources, on their way from the feeds to the groups.

An application ties the parts by an id that it writes in each of them, with the number of parts: in
PostgreSQL as a logical message, elsewhere (and there too) as a row of an outbox table. Where a source has an
outbox, only its rows count: who may write them is the owner's to say. What is tied is
held back until it is whole; `merging.global_transactions` decides, here its words are carried out.

A source whose next part is held back stands still, for everybody: its feed's position does not pass.
A feed that goes back reads what was held back once more: then it is forgotten here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from viewkeeper.algebra.types import Schema
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.errors import UsageError
from viewkeeper.merging.global_transactions import (
    Action,
    GlobalTransactions,
    NumberUnit,
    Part,
    PartArrived,
    Tie,
    TimePassed,
    Warn,
)
from viewkeeper.sources.interface import FeedItem, Position, Progress, SourceTransaction
from viewkeeper.sources.transaction_block import TransactionBlock, one_by_one

ID, PARTS = "id", "parts"
ID_LENGTH_MAX, PARTS_MAX = 1_000, 1_000


@dataclass(frozen=True, eq=False)
class Unit:
    """Transactions of several sources that must show in one state, each as its source delivered it.

    ``since``: where the feeds stood before it.
    """

    parts: tuple[Delivery, ...]
    since: Mapping[str, Position] = field(default_factory=dict)

    @property
    def items(self) -> Iterator[FeedItem | TransactionBlock]:
        return (item for part in self.parts for item in part.items)

    @property
    def generations(self) -> dict[str, int]:
        """Of each of its sources, how often its feed had gone back."""
        return {part.source: part.generation for part in self.parts}


@dataclass(frozen=True)
class Outbox:
    """A relation in which a source's transactions say what they are part of."""

    relation: str
    schema: Schema

    def __post_init__(self) -> None:
        for column in (ID, PARTS):
            if column not in self.schema.names:
                raise UsageError(
                    "bad-outbox",
                    f"the outbox {self.relation} has no column {column}",
                    detail=f"its columns are {', '.join(self.schema.names)}",
                    hint="it needs id (a text) and parts (how many transactions have that id)",
                )

    def tie(self, transaction: SourceTransaction) -> Tie | Warn | None:
        """What a transaction is part of; a warning where its row does not say it."""
        for change in transaction.changes:
            if change.relation == self.relation and change.inserted:
                row = change.inserted[0]
                place = self.schema.position
                return _read_tie(transaction.source, row[place(ID)], row[place(PARTS)])
        return None


def _read_tie(source: str, tie: object, parts: object) -> Tie | Warn:
    # Digits that are no more than ASCII: nothing else is a number of parts in every database.
    count = "1" if parts is None else str(parts)
    is_number = count.isascii() and count.isdigit() and len(count) <= len(str(PARTS_MAX))
    name = "" if tie is None else str(tie)
    if 0 < len(name) <= ID_LENGTH_MAX and is_number and 1 <= int(count) <= PARTS_MAX:
        return Tie(name, int(count))
    message = (
        f"a row in the outbox of source {source} was passed over: expected an id of up to "
        f"{ID_LENGTH_MAX} characters and 1 to {PARTS_MAX} parts, found {count[:40]} parts"
    )
    return Warn("tie-ignored", name[:40], message)


class Units:
    """Holds deliveries back as far as they must be. Used under a lock."""

    def __init__(self, machine: GlobalTransactions, outboxes: Mapping[str, Outbox]) -> None:
        self._machine = machine
        self._outboxes = outboxes
        # Where each source's feed stands when nothing of it is held back any more.
        self._ahead: dict[str, Delivery] = {}
        self._generation: dict[str, int] = {}

    def relations_of(self, source: str) -> tuple[str, ...]:
        """What must be read of the source beside the views' relations."""
        return (self._outboxes[source].relation,) if source in self._outboxes else ()

    def go_back(self, source: str, generation: int) -> None:
        """The source's feed goes back: what is held of it comes again, in that generation."""
        self._generation[source] = generation
        self._machine.forget(source)
        self._ahead.pop(source, None)

    def released(self, delivery: Delivery, now_seconds: float) -> Iterator[Delivery | Unit | Warn]:
        """What may go on, in order."""
        if delivery.generation < self._generation.get(delivery.source, 0):
            return  # read before the feed went back: a part of it would count twice
        if delivery.source in self._outboxes:
            # Who ties its transactions by rows has them looked at one by one.
            delivery = replace(delivery, items=tuple(one_by_one(delivery.items)))
        if not self._machine.held and not self._ties_any(delivery.items):
            yield delivery
            return
        self._ahead[delivery.source] = replace(delivery, items=())
        for item in one_by_one(delivery.items):
            if delivery.generation < self._generation.get(delivery.source, 0):
                break  # what was released just now sent the feed back: the rest of it comes again
            if not isinstance(item, Progress):
                # With all that its delivery says of it, for it may be held for a while.
                alone = replace(delivery, items=(item,), position=item.position)
                tie = self._tie(item)
                if isinstance(tie, Warn):
                    yield tie
                    tie = None
                part = Part(delivery.source, alone, tie)
                yield from self._carried_out(self._machine.step(PartArrived(part, now_seconds)))
        yield from self._carried_out(self._machine.step(TimePassed(now_seconds)))
        for source in [s for s in self._ahead if not self._machine.holds(s)]:
            yield self._ahead.pop(source)

    def _ties_any(self, items: Iterable[FeedItem | TransactionBlock]) -> bool:
        if self._outboxes:
            return any(map(self._tie, items))
        return any(isinstance(item, SourceTransaction) and item.tie for item in items)

    def _tie(self, item: FeedItem | TransactionBlock) -> Tie | Warn | None:
        if not isinstance(item, SourceTransaction):
            return None
        outbox = self._outboxes.get(item.source)
        if outbox is not None:
            return outbox.tie(item)
        return None if item.tie is None else Tie(*item.tie)

    def _carried_out(self, actions: tuple[Action, ...]) -> Iterator[Delivery | Unit | Warn]:
        for action in actions:
            match action:
                case NumberUnit((part,)):
                    yield part.transaction
                case NumberUnit(parts):
                    yield Unit(tuple(part.transaction for part in parts))
                    for part in parts:
                        # The feed's place moves with it; its contents have gone ahead.
                        yield replace(part.transaction, items=())
                case Warn():
                    yield action
