"""Strobe: keys in the view, deletions handled at the warehouse, changes applied at quiet moments.

Paper: described in SWEEP (1997), section 3; the algorithm is from 1996. Level: strong. Assumes: the view
shows the key of every relation, and answers reflect every change delivered before the question.

A deletion needs no query: the rows it takes out of the view are found by their keys. An insertion is
asked about, source after source. Deletions that arrive meanwhile are noted with the open query and
applied to its answer; insertions that arrive meanwhile may be contained in two answers, and the second
copy is dropped, because keys make every row unique. Since an answer may be ahead of the changes handled
so far, nothing is installed until no query is open.

| here | there |
|---|---|
| ``_Query.pending`` | pending(Q) |
| ``actions`` | AL, the action list |
| ``_open`` | UQS |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.protocols.keys import KeyedViewManager, key_columns, without_keys
from viewkeeper.protocols.messages import Action, AnswerArrived
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level


@dataclass
class _Query:
    """V⟨U⟩ for inserted rows, on its way from source to source."""

    partial: Any
    covers: frozenset[str]
    remaining: tuple[str, ...]
    # Keys deleted while it is open, by occurrence.
    pending: list[tuple[str, Any]] = field(default_factory=list)


class Strobe(KeyedViewManager):
    """Every insertion is asked about at once; everything is installed when nothing is open."""

    name = "strobe"
    asks = "rows by key, n − 1 questions for each insertion, none for a deletion"
    level = Level.STRONG

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        super().__init__(definition, extent)
        # The view as it will be when the action list is applied.
        self.actions = extent
        self._received: list[Transaction] = []

    def transaction_arrived(self, transaction: Transaction) -> Iterable[Action]:
        self._received.append(transaction)
        # Deletions first: a modified row is deleted, then inserted under the same key.
        for occurrence, keys in self.deletions(transaction):
            self.actions = self.view_without(self.actions, occurrence, keys)
            for query in self._open.values():
                query.pending.append((occurrence.alias, keys))
        for occurrence, inserted in self.insertions(transaction):
            first, *rest = self.assembly.join_order(occurrence.alias)
            partial = self.assembly.prepared(first, inserted)
            yield from self._visit(_Query(partial, frozenset({first}), tuple(rest)))
        yield from self._quiescent()

    def answer_arrived(self, asked: _Query, answer: AnswerArrived) -> Iterable[Action]:
        (asked.partial,) = answer.answers
        alias, *rest = asked.remaining
        asked.covers |= {alias}
        asked.remaining = tuple(rest)
        yield from self._visit(asked)
        yield from self._quiescent()

    def _visit(self, query: _Query) -> Iterator[Action]:
        """Ask the next source; or, with all visited, put the answer on the action list."""
        if query.remaining:
            yield self.ask_about(query.remaining[0], query.partial, query.covers, query)
            return
        rows = query.partial
        for alias, keys in query.pending:
            rows = without_keys(rows, key_columns(self.term.occurrence(alias)), keys)
        # Duplicates are dropped: with all keys in the view, twice the same row is once too often.
        self.actions = (self.actions + self.assembly.finished(rows)).support()

    def _quiescent(self) -> Iterator[Action]:
        if not self._open and self._received:
            change, self.extent = self.actions - self.extent, self.actions
            installed, self._received = tuple(self._received), []
            yield self.install(change, installed)
