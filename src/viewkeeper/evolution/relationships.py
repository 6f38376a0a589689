"""Concurrent update sets: which updates each schema change has to see to, because it aborted them.

Paper: DyDa, section 6, definitions 12 and 13. An update whose handling breaks goes into the set of the
schema change that broke it; when that one is aborted itself, its set goes along.
"""

from __future__ import annotations

from collections.abc import Callable

from viewkeeper.errors import invariant
from viewkeeper.evolution.changes import SchemaChanged, Update


class ConcurrentUpdates:
    """Updates in the order of their arrival, and the sets of the schema changes among them."""

    def __init__(self) -> None:
        self._received: list[Update] = []
        self._sets: dict[SchemaChanged, list[Update]] = {}

    def received(self, update: Update) -> None:
        self._received.append(update)
        if isinstance(update, SchemaChanged):
            self._sets[update] = []

    def aborted(self, update: Update, by: SchemaChanged) -> None:
        """``update`` could not be handled because of ``by``, which must see to it."""
        invariant(by in self._sets, f"{by} was not received, and can't have aborted {update}")
        self._sets[by].append(update)

    def of(self, change: SchemaChanged) -> tuple[Update, ...]:
        """The change's own set."""
        return tuple(self._sets[change])

    def forget(self, updates: tuple[Update, ...]) -> None:
        """These are in a state now, or never will be: nobody must see to them any more."""
        self._received = [update for update in self._received if update not in updates]
        for update in updates:
            if isinstance(update, SchemaChanged):
                del self._sets[update]
        for waiting in self._sets.values():
            waiting[:] = [update for update in waiting if update not in updates]

    def sequence(self, named: Callable[[Update], str] = str) -> str:
        """The concurrent relationship sequence: ``DU1, SC1, SC2(DU1)``."""
        return ", ".join(self._text(update, named) for update in self._received)

    def _text(self, update: Update, named: Callable[[Update], str]) -> str:
        if not isinstance(update, SchemaChanged) or not self._sets[update]:
            return named(update)
        inside = ", ".join(self._text(each, named) for each in self._sets[update])
        return f"{named(update)}({inside})"
