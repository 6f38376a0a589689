"""MEDWRAP's mediator: keeps the view over sources, each of which its wrapper makes one relation.

Paper: MEDWRAP (2002), section 3.2, and Figure 5 "at mediator". Level: the lower of the wrappers' and of
the algorithm inside (Lemma 1). Assumes: nothing beyond reliable delivery.

The wrappers report changes of virtual relations and answer queries about them, both in one order. That
is all that SWEEP needs, so SWEEP is what runs inside, unchanged: it asks the other sources one by one
and takes out of each answer what reports that arrived meanwhile put in (source conflicts). Nested SWEEP
may stand in its place; then several reports can become visible at once.

| here | Figure 5 |
|---|---|
| ``inside`` | GProcessor; its queue is GQueue, its partial TempView |
| `ChangeReported` | ΔIS in GQueue |
| AskSource | GMQ |
| AnswerArrived | GMQR |

Where we differ: the print takes out the conflict before it knows which of several reports an answer
reflects; answers say it. Fig. 6 leaves the join with TempView out of an answer it prints; the result
(empty) is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from viewkeeper.protocols.mediation import Mediation
from viewkeeper.protocols.messages import (
    Action,
    AnswerArrived,
    AskSource,
    InstallChange,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.protocols.sweep import Sweep
from viewkeeper.protocols.view_manager import ViewManager
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class ChangeReported:
    """A wrapper reported a change of its virtual relations; its source then stood at ``upto``."""

    change: Transaction
    upto: int


Event = ChangeReported | AnswerArrived | SourceSettled


class MedwrapMediator:
    """`step` is its only entry; actions are carried out in the order given."""

    def __init__(
        self, mediation: Mediation, extent: Any, inside: type[ViewManager] = Sweep
    ) -> None:
        self.inside = inside(mediation.by_source, extent)
        # For each source, at which of its transactions it stood after each report.
        self._upto: dict[str, list[int]] = {source: [0] for source in mediation.definition.sources}

    @property
    def level(self) -> Level:
        return self.inside.level

    @property
    def is_idle(self) -> bool:
        return self.inside.is_idle

    def step(self, event: Event) -> tuple[Action, ...]:
        match event:
            case ChangeReported(change, upto):
                self._upto[change.source].append(upto)
                actions = self.inside.step(TransactionArrived(change))
            case _:
                actions = self.inside.step(event)
        return tuple(self._translated(actions))

    def _translated(self, actions: tuple[Action, ...]) -> Iterator[Action]:
        """Cuts in the sources' own numbers instead of numbers of reports."""
        for action in actions:
            match action:
                case InstallChange(change, cut, transactions):
                    numbers = CutVector.of({source: self._upto[source][n] for source, n in cut})
                    yield InstallChange(change, numbers, transactions)
                case AskSource():
                    yield action


def combined_level(*levels: Level) -> Level:
    """Lemma 1: complete everywhere gives complete; strong anywhere gives strong."""
    return min(levels)
