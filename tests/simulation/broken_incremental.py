"""Deliberately wrong variants of the incremental view. Each must be caught."""

from __future__ import annotations

from typing import Any

from viewkeeper.algebra.expressions import Column, Literal, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.protocols.accumulating import Accumulating
from viewkeeper.protocols.batched_sweep import BatchedSweep, Route
from viewkeeper.protocols.messages import TXN, Reflected
from viewkeeper.protocols.stores import SelfKeptView
from viewkeeper.protocols.view_manager import Place
from viewkeeper.views.definition import LOCAL


class ForgetsItsOwnTransaction(SelfKeptView):
    """A transaction that changes two occurrences sees neither change from the other."""

    def _sees_own(self, place: int, start: int) -> bool:
        return False


class AccumulatesTheWholeBatch(SelfKeptView):
    """Lets groups change once for a batch, with its last transaction."""

    def _sum_of(self, routes: list[Route]) -> Any:
        change = super()._sum_of(routes)
        if change is None or not self.upkeep.terms[routes[0].start[0]].stages:
            return change
        columns = tuple(Output(n, Column(n)) for n in change.schema.names if n != TXN)
        last = self.batch[-1][0]
        return change.select((*columns, Output(TXN, Literal(last, INTEGER))))


class MinimumWithoutValues(SelfKeptView):
    """Trusts the least value that it has stored, also when it is deleted."""

    def stores_read(self, asked: Any, answers: tuple[Any, ...]) -> Any:
        if not isinstance(asked, Accumulating):
            yield from super().stores_read(asked, answers)
            return
        asked.take(tuple(rows.to_bag() for rows in answers))
        asked.lookups = []
        if not self._open:
            yield from self._round()


class TrustsItsStores(SelfKeptView):
    """Joins a step as it was before the batch, whatever the batch makes of it."""

    def _corrections(self, place: Place, reflects: Reflected) -> Any:
        if self.occurrence(place).source == LOCAL:
            return None, None
        return super()._corrections(place, reflects)


class ForgetsAnInput(SelfKeptView):
    """Does not follow changes of steps into the joins they take part in."""

    def _ways(self, index: int) -> list[Route]:
        return [
            route
            for route in super()._ways(index)
            if self.occurrence(route.start).source != LOCAL or not route.order
        ]


BROKEN = (
    ForgetsItsOwnTransaction,
    AccumulatesTheWholeBatch,
    MinimumWithoutValues,
    TrustsItsStores,
    ForgetsAnInput,
)


class TrustsItsCopies(SelfKeptView):
    """Joins a kept relation as it was before the batch, whatever the batch makes of it."""

    def _corrections(self, place: Place, reflects: Reflected) -> Any:
        if self.occurrence(place).name in self.upkeep.kept:
            return None, None
        return super()._corrections(place, reflects)


class TakesCopiesForAnswers(SelfKeptView):
    """Corrects a kept relation as if nothing that is still remembered were in it."""

    def _corrections(self, place: Place, reflects: Reflected) -> Any:
        if self.occurrence(place).name in self.upkeep.kept:
            return BatchedSweep._corrections(self, place, reflects)
        return super()._corrections(place, reflects)


class LeavesCopiesAsTheyWere(SelfKeptView):
    """Never changes what it has copied."""

    def _start(self) -> None:
        self._routes = []


BROKEN_COPIES = (TrustsItsCopies, TakesCopiesForAnswers, LeavesCopiesAsTheyWere)
