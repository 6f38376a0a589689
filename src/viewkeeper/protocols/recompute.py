"""Recompute: read everything again and replace the view. Level: strong. Assumes: nothing.

What people do without a view keeper, made right: the sources are asked at different moments, so the
answers belong to no common cut. Each is corrected at once to the cut of all that has arrived, and from
then on takes in what arrives while the others are awaited. When the last one is in, all stand at one
cut, and everything that arrived until then becomes one change of the view.

It takes every view, whatever its terms do: where nothing else can, this can.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from viewkeeper.protocols.messages import Action, AnswerArrived, Assumptions, Part, Reflected
from viewkeeper.protocols.view_manager import Place, ViewManager
from viewkeeper.timeline import Transaction
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level


class Recompute(ViewManager):
    """One round at a time; a round takes in whatever has arrived when its answers are in."""

    name = "recompute"
    asks = "whole relations, once per batch"
    level = Level.STRONG
    assumes = Assumptions()
    paper = "the alternative that every paper starts from"

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        super().__init__(definition, extent)
        self.extent = extent
        self._whole = WholeView(definition)
        self.queue: list[Transaction] = []
        self._contents: dict[Place, Any] = {}

    def require_suitable(self, definition: ViewDefinition) -> None:
        """Any view will do."""

    def transaction_arrived(self, transaction: Transaction) -> Iterable[Action]:
        self.queue.append(transaction)
        for place in self.places_changed(transaction):
            if place in self._contents:
                self._contents[place] += self.prepared_change(place, (transaction,))
        return () if self._open else self._round()

    def answer_arrived(self, asked: tuple[Place, ...], answer: AnswerArrived) -> Iterable[Action]:
        for place, rows in zip(asked, answer.answers, strict=True):
            self._contents[place] = self._corrected(place, rows, answer.reflects)
        if self._open:
            return
        extent = self._recomputed()
        change, self.extent = extent - self.extent, extent
        installed, self.queue = tuple(self.queue), []
        yield self.install(change, installed)

    def _round(self) -> Iterable[Action]:
        """One question to every source, for all occurrences that it holds."""
        self._contents = {}
        for source in self.definition.sources:
            places = tuple(
                (index, occurrence.alias)
                for index, term in enumerate(self.terms)
                for occurrence in term.occurrences
                if occurrence.source == source
            )
            parts = tuple(Part(index, (alias,)) for index, alias in places)
            yield self.ask(source, parts, places)

    def _recomputed(self) -> Any:
        return self._whole.evaluated_from(
            lambda index, occurrence: self._contents[index, occurrence.alias]
        )

    def _corrected(self, place: Place, rows: Any, reflects: Reflected) -> Any:
        """An occurrence's contents as of everything that has arrived."""
        index, alias = place
        occurrence = self.occurrence(place)
        correction = self.recent.correction(occurrence, self.arrived[occurrence.source], reflects)
        if correction is None:
            return rows
        return rows + self.assemblies[index].prepared(alias, correction)
