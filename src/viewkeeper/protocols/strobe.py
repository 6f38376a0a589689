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

from viewkeeper.protocols.keys import (
    deleted_rows,
    inserted_rows,
    key_columns,
    keys_of,
    require_keys,
    shown_key_columns,
    without_keys,
)
from viewkeeper.protocols.messages import Action, AnswerArrived, Assumptions, Part
from viewkeeper.protocols.view_manager import ViewManager
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


class Strobe(ViewManager):
    """Every insertion is asked about at once; everything is installed when nothing is open."""

    name = "strobe"
    level = Level.STRONG
    assumes = Assumptions(no_inversions=True, keys=True)
    paper = "SWEEP, section 3"

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        require_keys(self.name, definition)
        super().__init__(definition, extent)
        (self.term,) = definition.terms
        (self.assembly,) = self.assemblies
        self.extent = extent
        # The view as it will be when the action list is applied.
        self.actions = extent
        self._received: list[Transaction] = []

    def transaction_arrived(self, transaction: Transaction) -> Iterable[Action]:
        self._received.append(transaction)
        # Deletions first: a modified row is deleted, then inserted under the same key.
        for occurrence in self.term.occurrences:
            deleted = deleted_rows(transaction, occurrence)
            if deleted is not None:
                keys = keys_of(deleted, occurrence)
                shown = shown_key_columns(self.term, occurrence)
                self.actions = without_keys(self.actions, shown, keys)
                for query in self._open.values():
                    query.pending.append((occurrence.alias, keys))
        for occurrence in self.term.occurrences:
            inserted = inserted_rows(transaction, occurrence)
            if inserted is not None and not inserted.is_empty():
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
            alias = query.remaining[0]
            source = self.term.occurrence(alias).source
            part = Part(0, (alias,), query.partial, query.covers)
            yield self.ask(source, (part,), query)
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
