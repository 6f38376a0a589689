"""Nested SWEEP: several interfering updates in one composite view change.

Paper: SWEEP (1997), section 6, Figure 6. Level: strong. Assumes: nothing beyond reliable delivery.

When an answer reflects a later update ΔR_j of the relation that was asked, SWEEP takes its effect out
and comes back to it in a sweep of its own. Nested SWEEP takes it out too, but at once sweeps ΔR_j over
the relations already visited (they are wanted *with* everything absorbed so far), adds the result, and
goes on with both: the rest of the way is shared. A sweep inside may meet further updates and nest
again. The view changes once for all absorbed updates.

| here | Figure 6 |
|---|---|
| ``_Frame`` | one activation of ViewChange: Left and Right are ``within``, its occurrences |
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

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from viewkeeper.protocols.messages import Action, AnswerArrived, Assumptions, Reflected
from viewkeeper.protocols.sweeping import Sweep, sweep_from, sweeps_of
from viewkeeper.protocols.view_manager import Place, ViewManager
from viewkeeper.timeline import Cut, Transaction
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class _Frame:
    """A sweep that waits for the one nested in it, with the answer it had got so far."""

    sweep: Sweep


class NestedSweep(ViewManager):
    """One composite change at a time; ``absorbed_max`` bounds how many updates join it."""

    name = "nested-sweep"
    level = Level.STRONG
    assumes = Assumptions()
    paper = "SWEEP, section 6"
    absorbed_max = 16

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        super().__init__(definition, extent)
        self.queue: deque[Transaction] = deque()
        self.composite: tuple[Transaction, ...] = ()
        self.change = self.nothing
        self._outer: list[_Frame] = []
        self._sweeps: deque[Sweep] = deque()
        # Only a composite that started from a single occurrence may absorb.
        self._may_absorb = False

    @property
    def now(self) -> Cut:
        """The applied cut with everything the composite has absorbed."""
        cut = self.applied
        for transaction in self.composite:
            cut = cut.advanced(transaction.source, transaction.number)
        return cut

    def transaction_arrived(self, transaction: Transaction) -> Iterable[Action]:
        self.queue.append(transaction)
        return () if self.composite else self._next()

    def answer_arrived(self, asked: Sweep, answer: AnswerArrived) -> Iterable[Action]:
        (rows,) = answer.answers
        sweep = asked.answered(self.assemblies[asked.term], self.recent, rows, answer.reflects)
        place = (asked.term, asked.next_alias)
        absorbed = self._absorbable(place, answer.reflects)
        if not absorbed:
            return self._sweeping(sweep)
        return self._sweeping(self._push(sweep, place, absorbed))

    def _next(self) -> Iterable[Action]:
        while self.queue:
            transaction = self.queue.popleft()
            self._sweeps = deque(sweeps_of(self, transaction, self.applied))
            self._may_absorb = len(self._sweeps) == 1
            self.composite = (transaction,)
            self.change = self.nothing
            if self._sweeps:
                yield from self._sweeping(self._sweeps.popleft())
                return
            yield self._finished()

    def _sweeping(self, sweep: Sweep) -> Iterable[Action]:
        while sweep.is_complete:
            if self._outer:
                sweep = self._pop(sweep)
                continue
            self.change = self.change + self.assemblies[sweep.term].finished(sweep.partial)
            if not self._sweeps:
                yield self._finished()
                yield from self._next()
                return
            sweep = self._sweeps.popleft()
        source = self.occurrence((sweep.term, sweep.next_alias)).source
        yield self.ask(source, (sweep.part,), sweep)

    def _absorbable(self, place: Place, reflects: Reflected) -> tuple[Transaction, ...]:
        """The queued updates of the asked relation that the answer reflects, in their order.

        One that the answer misses (an inversion) is taken along if a later one is reflected: the
        state stays a cut, and the correction has brought the answer to what was wanted anyway.
        """
        if not self._may_absorb:
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

    def _push(self, sweep: Sweep, place: Place, absorbed: tuple[Transaction, ...]) -> Sweep:
        """Start the inner sweep: the absorbed change over everything visited so far."""
        for transaction in absorbed:
            self.queue.remove(transaction)
        self.composite += absorbed
        self._outer.append(_Frame(sweep))
        change = self.prepared_change(place, absorbed)
        return sweep_from(self, place, change, self.now, within=sweep.covers)

    def _pop(self, inner: Sweep) -> Sweep:
        """Add the inner sweep's result to the one that waited for it, and go on with both."""
        outer = self._outer.pop().sweep
        assembly = self.assemblies[outer.term]
        total = assembly.arranged(outer.partial, outer.covers) + assembly.arranged(
            inner.partial, outer.covers
        )
        return Sweep(outer.term, total, outer.covers, outer.remaining, outer.wanted)

    def _finished(self) -> Action:
        composite, self.composite = self.composite, ()
        # Absorbed updates of different sources may have overtaken queued ones in order of arrival;
        # per source the order is kept, which is all that strong consistency asks for.
        return self.install(self.change, composite)
