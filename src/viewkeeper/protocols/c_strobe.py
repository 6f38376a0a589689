"""C-Strobe: complete consistency with keys, paid for with queries about queries.

Paper: described in SWEEP (1997), section 3; the algorithm is from 1996. Level: complete. Assumes: the
view shows the key of every relation, and answers reflect every change delivered before the question.

Updates are handled one at a time. A deletion is applied by keys. For an insertion the query V⟨U⟩ goes
from source to source, and its answer is then brought back to the state it should have seen:

- rows inserted by later updates are deleted from the answer by their keys, at the warehouse;
- rows *deleted* by later updates are missing from it: a further query with the deleted rows in their
  relation's place fetches what they would have contributed, and its own answer is treated likewise.

With n relations and concurrent deletions everywhere, that is up to (n−1)! queries for one update. The
deleted rows of one relation are asked about together.

Every update that arrived since is treated as concurrent, also one that came after its source had
answered. That is harmless here, and only here, because keys let us drop what is added twice. Which rows
count: all keys inserted since are deleted from the answer, for a row may have come and gone between;
and a deleted row is asked about if it was there to begin with, that is, if no insertion of its key since
came before its deletion.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.protocols.keys import (
    KeyedViewManager,
    deleted_rows,
    inserted_rows,
    key_columns,
    keys_of,
    without_keys,
)
from viewkeeper.protocols.messages import Action, AnswerArrived
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import Occurrence, ViewDefinition
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class _Query:
    """A product of given rows and relations to ask; ``asks`` stays whole, ``remaining`` shrinks."""

    given: Any
    given_covers: frozenset[str]
    asks: tuple[str, ...]
    partial: Any
    covers: frozenset[str]
    remaining: tuple[str, ...]


class CStrobe(KeyedViewManager):
    """One update at a time, with compensating queries until nothing is missing."""

    name = "c-strobe"
    asks = "as strobe, and again for what concurrent deletions took away"
    level = Level.COMPLETE

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        super().__init__(definition, extent)
        self.queue: deque[Transaction] = deque()
        self.current: Transaction | None = None
        # The view after the current update, as far as it is known.
        self._next_extent = extent

    def transaction_arrived(self, transaction: Transaction) -> Iterable[Action]:
        self.queue.append(transaction)
        yield from self._proceed()

    def answer_arrived(self, asked: _Query, answer: AnswerArrived) -> Iterable[Action]:
        (partial,) = answer.answers
        alias, *rest = asked.remaining
        covers = asked.covers | {alias}
        yield from self._visit(
            replace(asked, partial=partial, covers=covers, remaining=tuple(rest))
        )
        yield from self._proceed()

    def _proceed(self) -> Iterator[Action]:
        """Finish the current update when nothing is open, and begin the next one."""
        while not self._open:
            if self.current is not None:
                finished, self.current = self.current, None
                change = self._next_extent - self.extent
                self.extent = self._next_extent
                yield self.install(change, (finished,))
            if not self.queue:
                return
            self.current = self.queue.popleft()
            yield from self._begin(self.current)

    def _begin(self, transaction: Transaction) -> Iterator[Action]:
        self._next_extent = self.extent
        for occurrence, keys in self.deletions(transaction):
            self._next_extent = self.view_without(self._next_extent, occurrence, keys)
        for occurrence, inserted in self.insertions(transaction):
            alias = occurrence.alias
            yield from self._query(self.assembly.prepared(alias, inserted), frozenset({alias}))

    def _query(self, given: Any, covers: frozenset[str]) -> Iterator[Action]:
        start = next(alias for alias in self.assembly.aliases if alias in covers)
        order = self.assembly.join_order(start)
        asks = tuple(alias for alias in order if alias not in covers)
        yield from self._visit(_Query(given, covers, asks, given, covers, asks))

    def _visit(self, query: _Query) -> Iterator[Action]:
        if query.remaining:
            yield self.ask_about(query.remaining[0], query.partial, query.covers, query)
            return
        rows = query.partial
        for alias in query.asks:
            occurrence = self.term.occurrence(alias)
            missing, inserted_keys = self._concurrent(occurrence)
            if inserted_keys is not None:
                rows = without_keys(rows, key_columns(occurrence), inserted_keys)
            if missing is not None and not missing.is_empty():
                given = self.assembly.extended(query.given, query.given_covers, alias, missing)
                yield from self._query(given, query.given_covers | {alias})
        self._next_extent = (self._next_extent + self.assembly.finished(rows)).support()

    def _concurrent(self, occurrence: Occurrence) -> tuple[Any | None, Any | None]:
        """Rows the queued updates deleted that were there before them, and all keys they inserted."""
        missing: Any | None = None
        inserted_keys: Any | None = None
        for transaction in self.queue:
            deleted = deleted_rows(transaction, occurrence)
            inserted = inserted_rows(transaction, occurrence)
            if deleted is None or inserted is None:
                continue
            if inserted_keys is not None:
                deleted = without_keys(deleted, occurrence.key, inserted_keys)
            missing = deleted if missing is None else missing + deleted
            new_keys = keys_of(inserted, occurrence)
            inserted_keys = (
                new_keys if inserted_keys is None else (inserted_keys + new_keys).support()
            )
        return missing, inserted_keys
