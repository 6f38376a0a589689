"""Three ways to show a batch wrongly: the right changes, under numbers that are not theirs.

Each takes the changes of a batch, one for each transaction, and gives what is shown in place of each. The
sum is the same, so the last state of a batch is right, and so is the end of a run. Used at every place
that judges: on histories made by hand, in the simulator, in exploration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from viewkeeper.algebra.expressions import FALSE
from viewkeeper.protocols.messages import Action, Event, InstallChange
from viewkeeper.protocols.sweep import Sweep
from viewkeeper.views.definition import ViewDefinition

Rearrange = Callable[[Sequence[Any]], list[Any]]


def whole_under_the_last(changes: Sequence[Any]) -> list[Any]:
    """Nothing for all but the last transaction, and everything under its number."""
    return [*map(_nothing, changes[1:]), sum(changes[1:], changes[0])]


def held_back(changes: Sequence[Any]) -> list[Any]:
    """Every other change is held back, and shown with the one after it."""
    shown = list(changes)
    for index in range(0, len(shown) - 1, 2):
        shown[index], shown[index + 1] = _nothing(shown[index]), shown[index] + shown[index + 1]
    return shown


def one_state_early(changes: Sequence[Any]) -> list[Any]:
    """Every transaction but the first is shown in the state before its own."""
    if len(changes) < 2:
        return list(changes)
    first, second, *others = changes
    return [first + second, *others, _nothing(first)]


def _nothing(change: Any) -> Any:
    return change.where(FALSE)


REARRANGED: dict[str, Rearrange] = {
    "a whole batch under its last number": whole_under_the_last,
    "changes held back and shown later": held_back,
    "a transaction shown one state early": one_state_early,
}


class Rearranging(Sweep):
    """Computes every change rightly, and shows what came while it was busy as ``rearrange`` says."""

    rearrange: Rearrange

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        super().__init__(definition, extent)
        self._batch: list[InstallChange] = []

    def step(self, event: Event) -> tuple[Action, ...]:
        others: list[Action] = []
        for action in super().step(event):
            (self._batch if isinstance(action, InstallChange) else others).append(action)
        if self.current is not None:
            return tuple(others)
        batch, self._batch = self._batch, []
        changes = type(self).rearrange([install.change for install in batch]) if batch else []
        shown = (replace(i, change=change) for i, change in zip(batch, changes, strict=True))
        return (*others, *shown)


class WholeBatchUnderItsLastNumber(Rearranging):
    rearrange = staticmethod(whole_under_the_last)


class ChangesHeldBack(Rearranging):
    rearrange = staticmethod(held_back)


class OneStateEarly(Rearranging):
    rearrange = staticmethod(one_state_early)
