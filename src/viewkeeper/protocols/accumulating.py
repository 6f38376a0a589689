"""How far a batch has come in one term: its ways through the join, then its accumulations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.algebra.accumulation import GROUPS, Accumulated, Found, Lookup
from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.errors import invariant
from viewkeeper.protocols.batched_sweep import Route
from viewkeeper.protocols.messages import TXN
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.upkeep import Stage, TermUpkeep

_NUMBER = Output(TXN, Column(TXN))


@dataclass
class Accumulating:
    """Rows on their way through an accumulation, and what was found for them in the stores."""

    stage: Stage
    change: Bag
    # What must still be looked up; first what is always needed, then what that leads to.
    lookups: list[Lookup] = field(default_factory=list)
    found: Found = field(default_factory=Found)

    def __post_init__(self) -> None:
        self.lookups = self.stage.accumulation.first_lookups(self.change)

    def take(self, answers: tuple[Bag, ...]) -> None:
        """The rows that the lookups gave."""
        is_first = GROUPS not in self.found.first
        into = self.found.first if is_first else self.found.whole
        for lookup, rows in zip(self.lookups, answers, strict=True):
            into[lookup.store] = rows
        self.lookups = []
        if is_first:
            groups = self.found.first[GROUPS]
            self.lookups = self.stage.accumulation.further_lookups(self.change, groups)

    @property
    def is_ready(self) -> bool:
        return not self.lookups

    def result(self) -> Accumulated:
        invariant(self.is_ready, "some rows have not been looked up")
        return self.stage.accumulation.applied(self.change, self.found)


class TermWork:
    """One term's part of a batch. Its ``change`` is None as long as there is none."""

    def __init__(self, upkeep: TermUpkeep, routes: list[Route]) -> None:
        self.upkeep = upkeep
        self.routes = routes
        self.change: Any | None = None
        self.is_joined = False
        self.accumulating: Accumulating | None = None
        self._stages = list(upkeep.stages)

    @property
    def is_done(self) -> bool:
        return self.is_joined and not self._stages

    def joined(self, change: Any | None) -> None:
        """The numbered change of the term's linear part is known."""
        self.is_joined = True
        self.change = change if change is None or not self._stages else change.to_bag()
        self._stop_if_nothing()

    def accumulated(self, assembly: Assembly) -> Iterator[tuple[str, Bag]]:
        """Go through the accumulations as far as the answers allow; the changes of their stores."""
        while self._stages and self.change is not None:
            stage = self._stages[0]
            if self.accumulating is None:
                self.accumulating = Accumulating(stage, self._into(stage))
            if not self.accumulating.is_ready:
                return
            result = self.accumulating.result()
            self.accumulating = None
            self._stages.pop(0)
            for kept, change in result.stores.items():
                if not change.is_empty():
                    yield stage.store(kept), change
            self.change = self._out_of(stage, result.change, assembly)
            self._stop_if_nothing()

    def _into(self, stage: Stage) -> Bag:
        """The columns that an accumulation takes."""
        change: Bag = self.change  # type: ignore[assignment]
        if stage is self.upkeep.grouping:
            return change  # it was joined with these columns
        return change.select((*stage.accumulation.inputs, _NUMBER))

    def _out_of(self, stage: Stage, change: Bag, assembly: Assembly) -> Bag:
        """The term's rows of an accumulation's result."""
        if stage is not self.upkeep.grouping:
            return change
        chosen: Bag = assembly.chosen(change)
        return chosen.select((*self.upkeep.term.outputs, _NUMBER))

    def _stop_if_nothing(self) -> None:
        """Where nothing changes, nothing more is to be done."""
        if self.change is None or (isinstance(self.change, Bag) and self.change.is_empty()):
            self.change = None
            self._stages = []
