"""One deliberately wrong variant of each protocol. Each must be caught by the checker."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from viewkeeper.algebra.expressions import FALSE
from viewkeeper.protocols.batched_sweep import BatchedSweep
from viewkeeper.protocols.c_strobe import CStrobe
from viewkeeper.protocols.eca import ECA
from viewkeeper.protocols.messages import Assumptions, Reflected
from viewkeeper.protocols.nested_sweep import NestedSweep
from viewkeeper.protocols.parallel_sweep import ParallelSweep
from viewkeeper.protocols.recent import RecentTransactions
from viewkeeper.protocols.recompute import Recompute
from viewkeeper.protocols.strobe import Strobe
from viewkeeper.protocols.sweep import Sweep
from viewkeeper.protocols.sweeping import Sweep as OneSweep
from viewkeeper.protocols.sweeping import sweep_from
from viewkeeper.protocols.view_manager import Place, ViewManager
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import Occurrence
from viewkeeper.views.level import Level


class ForgetfulTransactions(RecentTransactions):
    """Drops an applied transaction at once: a later answer that misses it is not completed."""

    def correction(self, occurrence: Occurrence, wanted: int, reflects: Reflected) -> Any | None:
        prefix = Reflected(max(reflects.highest, wanted))
        return super().correction(occurrence, wanted, prefix)


class SweepThatTrustsPrefixes(Sweep):
    """Takes an answer to reflect everything up to the highest number in it (one-way compensation)."""

    def __init__(self, definition: Any, extent: Any) -> None:
        super().__init__(definition, extent)
        self.recent = ForgetfulTransactions(definition.sources)


class SweepThatGuessesFromArrival(Sweep):
    """Takes everything that arrived before the answer to be reflected, as on a FIFO channel."""

    def corrected(self, sweep: OneSweep, answer: Any) -> OneSweep:
        source = self.occurrence((sweep.term, sweep.next_alias)).source
        return super().corrected(sweep, replace(answer, reflects=Reflected(self.arrived[source])))


class NestedSweepWithOldRelations(NestedSweep):
    """Sweeps an absorbed change over the visited relations as they were, not as they are now."""

    def _push(self, sweep: OneSweep, place: Place, absorbed: tuple[Transaction, ...]) -> OneSweep:
        super()._push(sweep, place, absorbed)
        change = self.prepared_change(place, absorbed)
        return sweep_from(self, place, change, self.applied, within=sweep.covers)


class ParallelSweepThatSquaresCounts(ParallelSweep):
    """Starts its branches from the change itself, so its counts come in once per branch."""

    def transaction_arrived(self, transaction: Transaction) -> Any:
        for action in super().transaction_arrived(transaction):
            for flight in self._flights.values():
                for (number, _), branch in list(flight.branches.items()):
                    if len(branch.covers) == 1:
                        start = flight.starts[number].partial
                        flight.branches[number, _] = replace(branch, partial=start)
            yield action


class BatchedSweepThatTrustsPrefixes(BatchedSweep):
    """Takes an answer to reflect everything that has been applied."""

    def _corrected(self, place: Place, rows: Any, reflects: Reflected) -> Any:
        applied = self.applied[self.occurrence(place).source]
        return super()._corrected(place, rows, Reflected(max(reflects.highest, applied)))


class BatchedSweepWithoutNumbers(BatchedSweep):
    """Lets every transaction of a batch see the relations as the batch leaves them."""

    def _timeline(self, route: Any, alias: str) -> Any:
        answer = replace(route.answers[alias], later=None)
        seen = replace(route, answers=route.answers | {alias: answer})
        return super()._timeline(seen, alias)


class BatchedSweepWithCancelledKeys(BatchedSweep):
    """Takes the keys to ask for from the sum of a batch, where an insertion and a deletion cancel."""

    def _route(self, start: Place) -> Any:
        route = super()._route(start)
        route.rows[start[1]] = self._prepared(start, self._changes(start, self.batch))
        return route


class RecomputeOfDifferentMoments(Recompute):
    """Joins answers as they came, though changes arrived between them."""

    def prepared_change(self, place: Place, transactions: Any) -> Any:
        return super().prepared_change(place, transactions).where(FALSE)


class RecomputeWithoutCorrection(Recompute):
    """Takes an answer to reflect exactly what has arrived before it."""

    def _corrected(self, place: Place, rows: Any, reflects: Reflected) -> Any:
        return rows


class ECAWithoutCompensation(ECA):
    """Asks V⟨U⟩ alone, and leaves open queries as they are."""

    def _difference(self, parts: Any, transaction: Transaction, sign: int) -> Any:
        return super()._difference(parts, transaction, sign) if sign > 0 else iter(())


class StrobeWithoutPendingDeletions(Strobe):
    """Does not apply deletions that arrived while a query was open to its answer."""

    def _visit(self, query: Any) -> Any:
        query.pending.clear()
        return super()._visit(query)


class StrobeWithDuplicates(Strobe):
    """Keeps rows that two answers contain twice."""

    def _visit(self, query: Any) -> Any:
        before = self.actions
        yield from super()._visit(query)
        if not query.remaining:
            self.actions = before + self.assembly.finished(query.partial)


class CStrobeWithoutCompensatingQueries(CStrobe):
    """Does not ask for what concurrently deleted rows would have contributed."""

    def _concurrent(self, occurrence: Occurrence) -> Any:
        _, inserted_keys = super()._concurrent(occurrence)
        return None, inserted_keys


class CStrobeThatKeepsLaterInsertions(CStrobe):
    """Leaves rows in the answer that later updates inserted."""

    def _concurrent(self, occurrence: Occurrence) -> Any:
        missing, _ = super()._concurrent(occurrence)
        return missing, None


class SweepInAnotherOrder(Sweep):
    """Takes the waiting transactions by the names of their sources: complete, but not as delivered."""

    def transaction_arrived(self, transaction: Transaction) -> Any:
        self.queue.append(transaction)
        self.queue = deque(sorted(self.queue, key=lambda waiting: waiting.source))
        return self._next() if self.current is None else ()


class Silent(ViewManager):
    """Does nothing: hears every transaction and installs none."""

    name = "silent"
    level = Level.COMPLETE
    assumes = Assumptions()
    paper = "none"

    def transaction_arrived(self, transaction: Transaction) -> Any:
        return ()

    def answer_arrived(self, asked: Any, answer: Any) -> Any:
        return ()

    @property
    def is_idle(self) -> bool:
        return True


class EmptyHanded(Silent):
    """Does nothing, and says that it did: an empty change for every transaction."""

    name = "empty-handed"

    def transaction_arrived(self, transaction: Transaction) -> Any:
        return (self.install(self.nothing, (transaction,)),)


class KeyedSilent(Silent):
    """As Strobe promises: strong, in worlds with keys."""

    level = Level.STRONG
    assumes = Assumptions(keys=True)


class KeyedEmptyHanded(EmptyHanded):
    level = Level.STRONG
    assumes = Assumptions(keys=True)
