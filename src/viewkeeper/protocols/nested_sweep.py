"""Nested SWEEP: several interfering updates in one composite view change.

Paper: SWEEP (1997), section 6, Figure 6. Level: strong. Assumes: nothing beyond reliable delivery.

When an answer reflects a later update ΔR_j of the relation that was asked, SWEEP takes its effect out
and comes back to it in a sweep of its own. Nested SWEEP takes it out too, but at once sweeps ΔR_j over
the relations already visited (they are wanted *with* everything absorbed so far), adds the result, and
goes on with both: the rest of the way is shared. A sweep inside may meet further updates and nest
again. The view changes once for all absorbed updates. All else is SWEEP's, from which this is derived.

| here | Figure 6 |
|---|---|
| ``_outer`` | the activations of ViewChange that wait, each with Left and Right as its ``covers`` |
| ``_absorbable`` | ∃ ΔR_j ∈ UpdateMessageQueue |
| ``_push`` | the recursive call |
| ``_pop`` | ΔV = ΔV + ViewChange(…) |

Why it is right: a frame over the visited occurrences S holds J_S(now) ⊖ J_S(base), where J_S is their
join, *base* the cut the frame wants, *now* the applied cut with all that was absorbed. Asking for R_j at
*base* gives the part of the new J_{S∪j} in which R_j is old; the inner frame gives the part in which it
changed, with S wanted at *now*. The sum is again of that form.

Where we differ: an update is absorbed only if it changes nothing but the relation asked, in one
occurrence (always so in the paper, which has one relation per source); others wait for a sweep of their
own. Updates of one source are absorbed in its order and none is jumped over, so every state is a cut.
Alternating interference could absorb for ever: after ``absorbed_max`` updates the composite change is
finished as SWEEP would, as the paper's conclusion proposes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from viewkeeper.protocols.messages import Action, AnswerArrived, Reflected
from viewkeeper.protocols.sweep import Sweep
from viewkeeper.protocols.sweeping import Sweep as OneSweep
from viewkeeper.protocols.sweeping import sweep_from
from viewkeeper.protocols.view_manager import Place
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level


class NestedSweep(Sweep):
    """One composite change at a time; ``absorbed_max`` bounds how many updates it consists of."""

    name = "nested-sweep"
    asks = "rows by key, n − 1 questions for each composite of updates"
    level = Level.STRONG
    in_order = False
    paper = "SWEEP, section 6"
    absorbed_max = 16

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        super().__init__(definition, extent)
        self.absorbed: tuple[Transaction, ...] = ()
        # Sweeps that wait for the one nested in them, with the answers they had got so far.
        self._outer: list[OneSweep] = []

    @property
    def composite(self) -> tuple[Transaction, ...]:
        """The updates that the view change is to include."""
        return () if self.current is None else (self.current, *self.absorbed)

    @property
    def now(self) -> CutVector:
        """The applied cut with everything the composite has absorbed."""
        cut = self.applied
        for transaction in self.composite:
            cut = cut.advanced(transaction.source, transaction.number)
        return cut

    def answer_arrived(self, asked: OneSweep, answer: AnswerArrived) -> Iterable[Action]:
        sweep = self.corrected(asked, answer)
        place = (asked.term, asked.next_alias)
        absorbed = self._absorbable(place, answer.reflects)
        return self._sweeping(self._push(sweep, place, absorbed) if absorbed else sweep)

    def _sweeping(self, sweep: OneSweep) -> Iterable[Action]:
        while sweep.is_complete and self._outer:
            sweep = self._pop(sweep)
        return super()._sweeping(sweep)

    def _absorbable(self, place: Place, reflects: Reflected) -> tuple[Transaction, ...]:
        """The queued updates of the asked relation that the answer reflects, in their order.

        One that the answer misses (an inversion) is taken along if a later one is reflected: the
        state stays a cut, and the correction has brought the answer to what was wanted anyway.
        """
        first, *_ = self.composite
        # Only a composite that started from a single occurrence may absorb.
        if len(self.places_changed(first)) != 1:
            return ()
        source = self.occurrence(place).source
        room = self.absorbed_max - len(self.composite)
        candidates: list[Transaction] = []
        taken = 0
        for transaction in [t for t in self.queue if t.source == source][: max(room, 0)]:
            if self.places_changed(transaction) != (place,):
                break
            candidates.append(transaction)
            if reflects.includes(transaction.number):
                taken = len(candidates)
        return tuple(candidates[:taken])

    def _push(self, sweep: OneSweep, place: Place, absorbed: tuple[Transaction, ...]) -> OneSweep:
        """Start the inner sweep: the absorbed change over everything visited so far."""
        for transaction in absorbed:
            self.queue.remove(transaction)
        self.absorbed += absorbed
        self._outer.append(sweep)
        change = self.prepared_change(place, absorbed)
        return sweep_from(self, place, change, self.now, within=sweep.covers)

    def _pop(self, inner: OneSweep) -> OneSweep:
        """Add the inner sweep's result to the one that waited for it, and go on with both."""
        outer = self._outer.pop()
        assembly = self.assemblies[outer.term]
        total = assembly.arranged(outer.partial, outer.covers) + assembly.arranged(
            inner.partial, outer.covers
        )
        return replace(outer, partial=total)

    def _finished(self) -> Action:
        composite, self.current, self.absorbed = self.composite, None, ()
        # Absorbed updates of different sources may have overtaken queued ones in order of arrival;
        # per source the order is kept, which is all that strong consistency asks for.
        return self.install(self.change, composite)
