"""One sweep: how the change of one occurrence grows, source by source, into a change of the view.

Shared by the protocols of the SWEEP family. A sweep starts with the change of one occurrence and joins
the others in, one question each; every answer is corrected at once to the state that is wanted.

A transaction may change several occurrences at once (several relations of its source, or a self-join).
Its view change is then a sum with one sweep per changed occurrence; in the sweep of the k-th one, the
earlier ones are wanted as they are after the transaction, the later ones as before it:

    Δ(A ⊗ B) = ΔA ⊗ B_before  ⊕  A_after ⊗ ΔB
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.protocols.messages import Part, Reflected
from viewkeeper.protocols.recent import RecentTransactions
from viewkeeper.protocols.view_manager import Place, ViewManager
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.assembly import Assembly


@dataclass(frozen=True)
class Sweep:
    """A sweep in progress: what is joined so far, and what remains, each with the state it wants."""

    term: int
    partial: Any
    covers: frozenset[str]
    remaining: tuple[str, ...]
    wanted: tuple[tuple[str, int], ...]

    @property
    def is_complete(self) -> bool:
        return not self.remaining

    @property
    def next_alias(self) -> str:
        return self.remaining[0]

    @property
    def part(self) -> Part:
        """The next question."""
        return Part(self.term, (self.next_alias,), self.partial, self.covers)

    def wanted_number(self, alias: str) -> int:
        """Up to which transaction of its source the occurrence is wanted."""
        return dict(self.wanted)[alias]

    def joined(self, partial: Any) -> Sweep:
        """The sweep with its next occurrence joined in."""
        alias, *rest = self.remaining
        return replace(self, partial=partial, covers=self.covers | {alias}, remaining=tuple(rest))

    def answered(
        self, assembly: Assembly, recent: RecentTransactions, answer: Any, reflects: Reflected
    ) -> Sweep:
        """The answer taken in, corrected to the wanted state (on-line error correction)."""
        alias = self.next_alias
        occurrence = assembly.term.occurrence(alias)
        correction = recent.correction(occurrence, self.wanted_number(alias), reflects)
        if correction is not None:
            # The same join, with the correction in the occurrence's place: no message is needed,
            # because both the partial and the interfering changes are here already.
            answer = answer + assembly.extended(self.partial, self.covers, alias, correction)
        return self.joined(answer)


def sweeps_of(
    manager: ViewManager, transaction: Transaction, before: CutVector
) -> tuple[Sweep, ...]:
    """The sweeps whose results add up to the view change of one transaction.

    ``before`` is the cut that the view change starts from: all that arrived earlier.
    """
    places = manager.places_changed(transaction)
    return tuple(
        sweep_from(manager, place, manager.prepared_change(place, (transaction,)), before)
        if len(places) == 1
        else _telescoped(manager, place, places, transaction, before)
        for place in places
    )


def sweep_from(
    manager: ViewManager,
    place: Place,
    change: Any,
    wanted: CutVector,
    within: frozenset[str] | None = None,
) -> Sweep:
    """A sweep from a change at one occurrence, all others wanted at one cut."""
    term, alias = place
    assembly = manager.assemblies[term]
    _, *remaining = assembly.join_order(alias, within)
    numbers = tuple((a, wanted[assembly.term.occurrence(a).source]) for a in remaining)
    return Sweep(term, change, frozenset({alias}), tuple(remaining), numbers)


def _telescoped(
    manager: ViewManager,
    place: Place,
    places: tuple[Place, ...],
    transaction: Transaction,
    before: CutVector,
) -> Sweep:
    sweep = sweep_from(manager, place, manager.prepared_change(place, (transaction,)), before)
    after = {alias for term, alias in places[: places.index(place)] if term == place[0]}
    return replace(
        sweep,
        wanted=tuple(
            (alias, transaction.number if alias in after else number)
            for alias, number in sweep.wanted
        ),
    )


def branches_of(assembly: Assembly, start: Sweep) -> tuple[Sweep, ...]:
    """The sweep taken apart into branches that share no predicate, each from distinct changed rows."""
    (alias,) = start.covers
    graph = assembly.term.join_graph
    unvisited = list(start.remaining)
    branches: list[Sweep] = []
    while unvisited:
        branch, waiting = {unvisited[0]}, [unvisited[0]]
        while waiting:
            new = graph[waiting.pop()] - branch - {alias}
            branch |= new
            waiting += sorted(new)
        _, *order = assembly.join_order(alias, branch | {alias})
        branches.append(replace(start, partial=start.partial.support(), remaining=tuple(order)))
        unvisited = [other for other in unvisited if other not in branch]
    return tuple(branches)
