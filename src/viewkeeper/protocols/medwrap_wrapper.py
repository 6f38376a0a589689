"""MEDWRAP's wrapper: makes a source with several relations look like one relation, storing none.

Paper: MEDWRAP (2002), section 3.1, and Figure 5 "at wrapper". Level: complete, strong when it takes
several transactions together. Assumes: with ``Detection.QUEUE_ORDER``, as printed, one FIFO channel
from the source for changes and answers; with ``Detection.REFLECTED_SETS`` nothing but reliable delivery.

The wrapper turns each transaction of its source into a change of the source's virtual relation, and
answers the mediator's queries from that same relation. Both need the source's other relations in the
state after exactly the transactions that were handled before; the source answers from a later one. What
came in between is taken out by compensating queries: with X the contents seen and Δ what is too much,

    (X ⊖ Δ_X) ⊗ (Y ⊖ Δ_Y) = X⊗Y  ⊖  Δ_X⊗Y  ⊖  X⊗Δ_Y  ⊕  Δ_X⊗Δ_Y

one query for each transaction in between, which also takes out what the earlier ones took out too much.
A compensating query is again answered from a later state, and compensated in the same way; each level
asks for at least one relation less, so this ends. One queue for transactions and queries keeps the two
kinds of results in one order: a later one includes all that was reported before it (Theorem 2).

| here | the paper |
|---|---|
| ``_queue`` | LQueue |
| `MedwrapWrapper._next`, ``_task`` | LProcessor |
| `MedwrapWrapper._begin_change` | Wrap-up: ΔR → LMQ |
| `MedwrapWrapper._begin_query` | GMQ sent to S-qu |
| `MedwrapWrapper._answered` | Wrap-ans: COLLECT, and a CQ for each conflict |
| `ReportChange`, `AnswerQuery` | APPEND(output) TO GQueue |

Where we differ:
- A conflict is a transaction behind the *current entry* of LQueue that the answer reflects. Read as "after
  the query was sent", the print overlooks those that were queued already.
- Products of changes alone are computed here, not sent to the source.
- A transaction may change several relations; answers may reflect any set of transactions and may miss
  some: those are put in by the same formula.
- With ``snapshots`` the source can answer twice at one cut: compensating queries run at the cut of the
  answer they compensate. Then one round is enough, however busy the source is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.errors import invariant
from viewkeeper.protocols.compensation import arranged, changes_of, with_changes
from viewkeeper.protocols.mediation import Mediation
from viewkeeper.protocols.medwrap_messages import (
    Action,
    AnswerQuery,
    AskAtCut,
    CloseCut,
    Detection,
    Event,
    Purpose,
    QueryArrived,
    ReportChange,
)
from viewkeeper.protocols.messages import (
    AnswerArrived,
    AskSource,
    Part,
    Reflected,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.timeline import Transaction
from viewkeeper.views.level import Level

# A product that is wanted, and the result that it is a part of.
Slotted = tuple[int, Part]


@dataclass
class _Task:
    """The entry of the queue that is being handled, and its results so far (COLLECT)."""

    work: tuple[Transaction, ...] | AskSource
    collected: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Asked:
    """An open question: its products, and the state of the source that they are wanted at."""

    parts: tuple[Slotted, ...]
    wanted: Reflected
    cut_of: int
    purpose: Purpose


class MedwrapWrapper:
    """One source's wrapper. `step` is its only entry; actions are carried out in the order given."""

    def __init__(
        self,
        mediation: Mediation,
        source: str,
        *,
        detection: Detection = Detection.REFLECTED_SETS,
        snapshots: bool = False,
        batch_max: int = 1,
    ) -> None:
        self.mediation = mediation
        self.source = source
        self.detection = detection
        self.snapshots = snapshots
        self.batch_max = batch_max
        self.conflicts = 0
        self._queue: deque[Transaction | AskSource] = deque()
        self._task: _Task | None = None
        self._open: dict[int, _Asked] = {}
        self._questions = 0
        self._reported = 0
        # The source's transactions: the last that arrived, the last that is handled, and those
        # by which an answer may still have to be corrected.
        self._arrived = 0
        self._handled = 0
        self._settled = 0
        self._known: dict[int, Transaction] = {}

    @property
    def level(self) -> Level:
        """What it keeps its virtual relation at (Lemma 1 combines it with the mediator's)."""
        return Level.COMPLETE if self.batch_max == 1 else Level.STRONG

    @property
    def is_idle(self) -> bool:
        return self._task is None and not self._queue

    @property
    def task(self) -> tuple[Transaction, ...] | AskSource | None:
        """What is being handled now."""
        return None if self._task is None else self._task.work

    def purpose(self, question: int) -> Purpose:
        """What an open question is for."""
        return self._open[question].purpose

    def step(self, event: Event) -> tuple[Action, ...]:
        match event:
            case TransactionArrived(transaction):
                invariant(
                    transaction.number == self._arrived + 1,
                    f"transaction {transaction} arrived out of order",
                )
                self._arrived = transaction.number
                self._known[transaction.number] = transaction
                self._queue.append(transaction)
                return tuple(self._next())
            case QueryArrived(query):
                self._queue.append(query)
                return tuple(self._next())
            case AnswerArrived():
                return tuple(self._answered(event))
            case SourceSettled(_, upto):
                self._settled = max(self._settled, upto)
                return ()

    # -- LProcessor ------------------------------------------------------------------------------------

    def _next(self) -> Iterator[Action]:
        """Take entries from the head of the queue until one needs to ask the source."""
        while self._task is None and self._queue:
            match self._queue[0]:
                case AskSource() as query:
                    self._queue.popleft()
                    self._task = _Task(query)
                    yield from self._begin_query(query)
                case Transaction():
                    work = self._batch()
                    self._task = _Task(work)
                    yield from self._begin_change(work)
            yield from self._finished()

    def _batch(self) -> tuple[Transaction, ...]:
        """The transactions at the head of the queue, at most ``batch_max``."""
        taken: list[Transaction] = []
        while self._queue and len(taken) < self.batch_max:
            head = self._queue[0]
            if not isinstance(head, Transaction):
                break
            taken.append(head)
            self._queue.popleft()
        return tuple(taken)

    def _begin_change(self, work: tuple[Transaction, ...]) -> Iterator[Action]:
        """LMQ: the products with the changes in some places and the others as before them."""
        change = changes_of(work)
        wanted: list[Slotted] = []
        for virtual in self.mediation.virtual_relations(source=self.source):
            whole = Part(virtual.term, virtual.aliases)
            assembly = self.mediation.assemblies[virtual.term]
            wanted += [(virtual.term, part) for part in with_changes(assembly, whole, change)]
        yield from self._collect(wanted, Reflected(self._handled), Purpose.LOCAL)

    def _begin_query(self, query: AskSource) -> Iterator[Action]:
        wanted: list[Slotted] = []
        for slot, part in enumerate(query.parts):
            virtual = self.mediation.virtual(part.term, self.source)
            given, covers = self.mediation.imported(part.term, part.given, sorted(part.covers))
            wanted.append((slot, Part(part.term, virtual.aliases, given, covers)))
        yield from self._collect(wanted, Reflected(self._handled), Purpose.GLOBAL)

    # -- collecting and compensating -------------------------------------------------------------------

    def _collect(
        self,
        wanted: Iterable[Slotted],
        at: Reflected,
        purpose: Purpose,
        cut_of: int | None = None,
    ) -> Iterator[Action]:
        """Have these products added to the task's results, as they are at the state ``at``."""
        asked: list[Slotted] = []
        for slot, part in wanted:
            if part.asks:
                asked.append((slot, part))
            else:
                self._add(slot, part, part.given)
        if not asked:
            return
        self._questions += 1
        question, parts = self._questions, tuple(part for _, part in asked)
        if cut_of is None:
            self._open[question] = _Asked(tuple(asked), at, question, purpose)
            yield AskSource(question, self.source, parts)
        else:
            self._open[question] = _Asked(tuple(asked), at, cut_of, purpose)
            yield AskAtCut(question, self.source, parts, cut_of)

    def _answered(self, answer: AnswerArrived) -> Iterator[Action]:
        asked = self._open.pop(answer.question)
        for (slot, part), rows in zip(asked.parts, answer.answers, strict=True):
            self._add(slot, part, rows)
        if self.detection is Detection.REFLECTED_SETS:
            reflects = answer.reflects
        else:
            # FIFO: the answer was given after everything that has arrived, and before the rest.
            reflects = Reflected(self._arrived)
        yield from self._compensated(asked, reflects)
        if self.snapshots and not any(a.cut_of == asked.cut_of for a in self._open.values()):
            yield CloseCut(self.source, asked.cut_of)
        yield from self._finished()
        yield from self._next()

    def _compensated(self, asked: _Asked, reflects: Reflected) -> Iterator[Action]:
        """A compensating query for each transaction that the answer reflects and should not.

        And for each that it should reflect and does not. The queries themselves are wanted at the
        state of the answer they correct.
        """
        corrected = list(asked.parts)
        at_the_cut: list[Slotted] = []
        for number, sign in self._conflicting(asked.wanted, reflects):
            change = changes_of((self._known[number],), sign)
            compensating = [
                (slot, product)
                for slot, part in corrected
                for product in with_changes(self.mediation.assemblies[part.term], part, change)
            ]
            if not compensating:
                continue
            self.conflicts += 1
            corrected += compensating
            if self.snapshots:
                at_the_cut += compensating
            else:
                yield from self._collect(compensating, reflects, Purpose.COMPENSATING)
        yield from self._collect(at_the_cut, reflects, Purpose.COMPENSATING, asked.cut_of)

    def _conflicting(self, wanted: Reflected, reflects: Reflected) -> list[tuple[int, int]]:
        """The transactions by which the two states differ; −1 for those to be taken out."""
        return [
            (number, -1 if reflects.includes(number) else 1)
            for number in sorted(self._known)
            if reflects.includes(number) != wanted.includes(number)
        ]

    def _add(self, slot: int, part: Part, rows: Any) -> None:
        invariant(self._task is not None, f"the wrapper of {self.source} has no task to answer")
        collected = self._task.collected  # type: ignore[union-attr]
        # Products of one result are joined in different orders: the term's order makes them equal.
        more = arranged(self.mediation.assemblies[part.term], rows)
        collected[slot] = collected[slot] + more if slot in collected else more

    # -- results ---------------------------------------------------------------------------------------

    def _finished(self) -> Iterator[Action]:
        """Hand the task's results on when no question is open any more."""
        if self._task is None or self._open:
            return
        task, self._task = self._task, None
        match task.work:
            case AskSource() as query:
                yield self._answer(query, task.collected)
            case transactions:
                yield self._report(transactions, task.collected)
        # Every answer from now on reflects what is settled, and wants all that is handled.
        bound = min(self._settled, self._handled)
        self._known = {n: t for n, t in self._known.items() if n > bound}

    def _report(self, work: tuple[Transaction, ...], collected: dict[int, Any]) -> ReportChange:
        self._handled = work[-1].number
        self._reported += 1
        changes = []
        for virtual in self.mediation.virtual_relations(source=self.source):
            if virtual.term in collected:
                rows = self.mediation.contents(virtual, collected[virtual.term])
                changes.append((virtual.name, rows))
        return ReportChange(Transaction(self.source, self._reported, tuple(changes)), self._handled)

    def _answer(self, query: AskSource, collected: dict[int, Any]) -> Action:
        answers = tuple(
            self.mediation.exported(part.term, part.given, self.source, collected[slot])
            for slot, part in enumerate(query.parts)
        )
        # Exactly the changes reported so far: this is what makes the source look like one relation.
        return AnswerQuery(AnswerArrived(query.question, answers, Reflected(self._reported)))
