"""SWEEP: complete consistency with one question to every other source per update.

Paper: SWEEP (1997), section 5.1, Figure 4. Level: complete. Assumes: nothing beyond reliable delivery.

Updates are handled in the order of their arrival, one at a time. For an update ΔR_i the view change is
R_1 ⊗ … ⊗ ΔR_i ⊗ … ⊗ R_n with every R_j as it was after exactly the updates that arrived before ΔR_i.
The relations are asked one after the other, first leftwards, then rightwards. An answer may reflect
updates that arrived later; their contribution is ΔR_j ⊗ TempView, and both factors are at the
warehouse already: it is taken out locally, at once, with no further message.

| here | Figure 4 |
|---|---|
| ``queue`` | UpdateMessageQueue |
| ``Sweep.partial`` | ΔV, TempView |
| ``Sweep.answered`` | the IF after RECEIVE |
| ``_sweeping``, ``_next`` | the two FOR loops, as a state machine |

Where we differ: an answer says which transactions it reflects, so the error term is exactly their sum
(the print leaves open which of several queued updates count), and channels need not be FIFO; an answer
that *misses* an earlier update is completed in the same way; any join graph, self-joins, several
relations per source, and UNION ALL (one sweep for each changed occurrence).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, cast

from viewkeeper.errors import invariant
from viewkeeper.protocols.messages import Action, AnswerArrived, Assumptions
from viewkeeper.protocols.sweeping import Sweep as OneSweep
from viewkeeper.protocols.sweeping import sweeps_of
from viewkeeper.protocols.view_manager import ViewManager
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level


class Sweep(ViewManager):
    """One update at a time, one source at a time."""

    name = "sweep"
    asks = "rows by key, n − 1 questions for each update"
    level = Level.COMPLETE
    in_order = True
    assumes = Assumptions()
    paper = "SWEEP, section 5"

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        super().__init__(definition, extent)
        self.queue: deque[Transaction] = deque()
        self.current: Transaction | None = None
        self.change = self.nothing
        # The sweeps of the current update that have not begun.
        self._sweeps: deque[OneSweep] = deque()

    def transaction_arrived(self, transaction: Transaction) -> Iterable[Action]:
        self.queue.append(transaction)
        return self._next() if self.current is None else ()

    def answer_arrived(self, asked: OneSweep, answer: AnswerArrived) -> Iterable[Action]:
        sweep = self.corrected(asked, answer)
        return self._sweeping(sweep)

    def corrected(self, sweep: OneSweep, answer: AnswerArrived) -> OneSweep:
        """The answer joined in, its error corrected; deliberately wrong variants override this."""
        (rows,) = answer.answers
        return sweep.answered(self.assemblies[sweep.term], self.recent, rows, answer.reflects)

    def _next(self) -> Iterable[Action]:
        """Take updates from the queue until one needs to ask somebody."""
        while self.queue:
            self.current = self.queue.popleft()
            # `applied` is all that arrived before it: updates are installed in order of arrival.
            self._sweeps = deque(sweeps_of(self, self.current, self.applied))
            self.change = self.nothing
            if self._sweeps:
                yield from self._sweeping(self._sweeps.popleft())
                return
            yield self._finished()

    def _sweeping(self, sweep: OneSweep) -> Iterable[Action]:
        while sweep.is_complete:
            self.change = self.change + self.assemblies[sweep.term].finished(sweep.partial)
            if not self._sweeps:
                yield self._finished()
                yield from self._next()
                return
            sweep = self._sweeps.popleft()
        source = self.occurrence((sweep.term, sweep.next_alias)).source
        yield self.ask(source, (sweep.part,), sweep)

    def _finished(self) -> Action:
        finished, self.current = self.current, None
        invariant(finished is not None, "a sweep ended that belongs to no transaction")
        return self.install(self.change, (cast(Transaction, finished),))
