"""Reading at cuts while a feed runs, and the reference that every answer must equal."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from live.sources.workload import RELATIONS, Effect
from viewkeeper.arrow import rows_of
from viewkeeper.sources.interface import (
    Feed,
    FeedItem,
    KeyedRead,
    Position,
    SchemaChange,
    Snapshot,
    Source,
    SourceTransaction,
)

WAIT_SECONDS_MAX = 600.0


def effect_of(transactions: Iterable[SourceTransaction]) -> Effect:
    """The summed net effect of transactions, zero counts dropped."""
    total: Counter[Any] = Counter()
    for transaction in transactions:
        for change in transaction.changes:
            for row in change.deleted:
                total[change.relation, row] -= 1
            for row in change.inserted:
                total[change.relation, row] += 1
    return without_zeros(total)


def without_zeros(effect: Effect) -> Effect:
    return Counter({key: count for key, count in effect.items() if count})


def read_all(cut: Snapshot, relations: Sequence[str] = RELATIONS) -> Effect:
    """Everything in these relations at the cut, as a state."""
    state: Counter[Any] = Counter()
    for relation in relations:
        schema = cut.schemas[relation].schema
        for batch in cut.read(KeyedRead(relation, schema.names)):
            state.update((relation, row) for row in rows_of(batch, schema))
    return state


class FeedLog:
    """A feed followed in a thread of its own; everything it delivered, in order."""

    def __init__(self, source: Source, start: Position, relations: Sequence[str] = RELATIONS):
        self.source = source
        self.items: list[FeedItem] = []
        self.error: Exception | None = None
        self.position: Position = start
        self._feed: Feed = source.feed(relations, start)
        self._moved = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        try:
            while not self._stop.is_set():
                items = self._feed.poll(0.05)
                with self._moved:
                    self.items += items
                    self.position = self._feed.position
                    self._moved.notify_all()
        except Exception as error:
            with self._moved:
                self.error = error
                self._moved.notify_all()
        finally:
            self._feed.close()

    def wait_for(self, bound: Position) -> None:
        """Until everything up to ``bound`` has been delivered; raises what the feed raised."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX

        def passed() -> bool:
            return (
                self.error is not None
                or self.source.compare_positions(self.position, bound) >= 0
                or time.monotonic() > deadline
            )

        with self._moved:
            while not passed():
                self._moved.wait(0.5)
            if self.error is not None:
                raise self.error
            if self.source.compare_positions(self.position, bound) < 0:
                raise TimeoutError(f"the feed stands at {self.position}, short of {bound}")

    def catch_up(self) -> None:
        """Until the feed has delivered everything that is committed now."""
        with self.source.cut([]) as cut:
            bound = cut.bound
        self.wait_for(bound)

    @property
    def transactions(self) -> list[SourceTransaction]:
        return [item for item in list(self.items) if isinstance(item, SourceTransaction)]

    @property
    def schema_changes(self) -> list[SchemaChange]:
        return [item for item in list(self.items) if isinstance(item, SchemaChange)]

    def __enter__(self) -> FeedLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=300)


@dataclass
class Verdict:
    """How many cuts were probed, and the first differences found."""

    probes: int = 0
    wrong: list[str] = field(default_factory=list)


def probe_cuts(
    source: Source,
    log: FeedLog,
    initial: Effect,
    *,
    cuts: int,
    enough: Callable[[Verdict], bool] = lambda verdict: False,
    more: Callable[[], bool] = lambda: False,
) -> Verdict:
    """Open cuts one after the other; every answer must equal what the reflected transactions give."""
    verdict, reference = Verdict(), Reference(initial)
    while (verdict.probes < cuts or more()) and not enough(verdict):
        with source.cut(RELATIONS) as cut:
            answer = read_all(cut)
        log.wait_for(cut.bound)
        expected = reference.at(cut, log.transactions)
        verdict.probes += 1
        if expected != answer:
            verdict.wrong.append(describe(answer, expected))
    return verdict


class Reference:
    """The initial state and all transactions of a feed, less those that a cut does not reflect."""

    def __init__(self, initial: Effect) -> None:
        self._total = Counter(initial)
        self._counted = 0

    def at(self, cut: Snapshot, transactions: Sequence[SourceTransaction]) -> Effect:
        self._total.update(effect_of(transactions[self._counted :]))
        self._counted = len(transactions)
        state = Counter(self._total)
        state.subtract(effect_of(t for t in transactions if not cut.reflects(t)))
        return without_zeros(state)


def describe(answer: Effect, reference: Effect) -> str:
    extra = Counter(answer)
    extra.subtract(reference)
    shown = [f"{key}: {count:+d}" for key, count in extra.items() if count][:5]
    return "answer minus reference: " + "; ".join(shown)


def followed(
    source: Source, start: Position, relations: Sequence[str] = ("things",)
) -> list[SourceTransaction | SchemaChange]:
    """Everything that happened since ``start``."""
    with FeedLog(source, start, relations) as log:
        log.catch_up()
    return [item for item in log.items if isinstance(item, SourceTransaction | SchemaChange)]
