"""What all view managers share: the queue of knowledge, open questions, cuts.

A view manager's own file holds its algorithm and nothing else; here is the book-keeping around it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from viewkeeper.algebra.expressions import FALSE
from viewkeeper.errors import InvariantViolated, UsageError
from viewkeeper.protocols.messages import (
    Action,
    AnswerArrived,
    AskSource,
    AskStores,
    BatchClosed,
    BatchPassed,
    Event,
    InstallChange,
    KeyedPart,
    Part,
    Protocol,
    SourceSettled,
    StoredPart,
    StoresRead,
    TransactionArrived,
    TransactionsArrived,
)
from viewkeeper.protocols.recent import RecentTransactions
from viewkeeper.timeline import CutVector, CutVectors, Transaction
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import Occurrence, ViewDefinition

# An occurrence of a view with several terms: the term's index and the alias in it.
Place = tuple[int, str]


class ViewManager(Protocol):
    """Keeps one view of linear terms (UNION ALL of select-project-join)."""

    def __init__(
        self, definition: ViewDefinition, extent: Any, sources: tuple[str, ...] = ()
    ) -> None:
        """``sources``: all whose transactions will arrive, where that is more than the view reads."""
        self.require_suitable(definition)
        self.definition = definition
        self.terms = definition.all_terms
        self.assemblies = tuple(Assembly(term) for term in self.terms)
        self.nothing = extent.where(FALSE)
        self.sources = sources or definition.sources
        self.recent = RecentTransactions(self.sources)
        self._arrived = dict.fromkeys(self.sources, 0)
        self.applied = CutVector.start(self.sources)
        self._questions = 0
        self._open: dict[int, Any] = {}

    def require_suitable(self, definition: ViewDefinition) -> None:
        """Raise UsageError for a view that this algorithm can't maintain."""
        if not definition.is_linear:
            raise UsageError(
                "view-not-linear",
                f"{self.name} can't maintain {definition.name}: it groups or removes duplicates",
                hint="maintain the rows before grouping, or choose another protocol",
            )

    # -- the algorithm's own part ------------------------------------------------------------------

    @abstractmethod
    def transaction_arrived(self, transaction: Transaction) -> Iterable[Action]:
        """A transaction came in; `arrived` includes it already."""

    @abstractmethod
    def answer_arrived(self, asked: Any, answer: AnswerArrived) -> Iterable[Action]:
        """An answer came in; ``asked`` is what was noted when the question was asked."""

    def stores_read(self, asked: Any, answers: tuple[Any, ...]) -> Iterable[Action]:
        """Rows of the view's own stores came in; only protocols that keep some ask for them."""
        raise InvariantViolated(f"{self.name} keeps no stores")

    def batch_closed(self, size: int) -> Iterable[Action]:
        """Begin a batch of so many transactions; only protocols that work in batches are told."""
        raise InvariantViolated(f"{self.name} does not work in batches")

    def batch_passed(self, size: int) -> None:
        """Count so many transactions as applied; only protocols that work in batches are told."""
        raise InvariantViolated(f"{self.name} does not work in batches")

    # -- the machine around it ---------------------------------------------------------------------

    def step(self, event: Event) -> tuple[Action, ...]:
        match event:
            case TransactionArrived(transaction):
                self._note((transaction,))
                return tuple(self.transaction_arrived(transaction))
            case TransactionsArrived(transactions):
                return tuple(self.transactions_arrived(transactions))
            case AnswerArrived(question):
                actions = tuple(self.answer_arrived(self._open.pop(question), event))
                self.recent.answered(question)
                self.recent.forget(self.applied)
                return actions
            case StoresRead(question, answers):
                return tuple(self.stores_read(self._open.pop(question), answers))
            case SourceSettled(source, upto):
                self.recent.settle(source, upto)
                self.recent.forget(self.applied)
                return ()
            case BatchClosed(size):
                return tuple(self.batch_closed(size))
            case BatchPassed(size):
                self.batch_passed(size)
                return ()

    def transactions_arrived(self, transactions: Sequence[Transaction]) -> Iterable[Action]:
        """Several came in; whoever can do better than one after the other does."""
        for transaction in transactions:
            yield from self.step(TransactionArrived(transaction))

    def _note(self, transactions: Sequence[Transaction]) -> None:
        """They are known from now on."""
        arrived = self._arrived
        for transaction in transactions:
            source, number, _, size = transaction
            if number != arrived[source] + 1:
                raise InvariantViolated(
                    f"transaction {transaction} arrived out of order",
                    detail=f"expected number {arrived[source] + 1}",
                )
            arrived[source] = number + size - 1
        self.recent.add(transactions)

    @property
    def arrived(self) -> CutVector:
        """The last transaction of each source that has arrived."""
        return CutVector.of(self._arrived)

    @property
    def is_idle(self) -> bool:
        return self.applied == self.arrived and not self._open

    def ask(self, source: str, parts: tuple[Part | KeyedPart, ...], note: Any) -> AskSource:
        """A new question; ``note`` comes back with its answer."""
        question = self._noted(note)
        self.recent.asked(question, source)
        return AskSource(question, source, parts)

    def ask_stores(self, parts: tuple[StoredPart, ...], note: Any) -> AskStores:
        """A new question to the view's own stores; ``note`` comes back with its answer."""
        return AskStores(self._noted(note), parts)

    def _noted(self, note: Any) -> int:
        self._questions += 1
        self._open[self._questions] = note
        return self._questions

    def install(self, change: Any, transactions: tuple[Transaction, ...]) -> InstallChange:
        """Install a view change; the view then includes these transactions too."""
        self.advanced(transactions)
        return InstallChange(change, self.applied, transactions)

    def advanced(self, transactions: tuple[Transaction, ...]) -> CutVectors:
        """Count the transactions as applied; the cut after each of them."""
        before, numbers = self.applied, dict(self.applied)
        for transaction in transactions:
            if transaction.number != numbers[transaction.source] + 1:
                raise InvariantViolated(
                    f"{transaction} can't be installed now",
                    detail=f"the view stands at {CutVector.of(numbers)}",
                )
            numbers[transaction.source] = transaction.last_number
        self.applied = CutVector.of(numbers)
        self.recent.forget(self.applied)
        return CutVectors(before, transactions)

    # -- what a transaction means to the view ------------------------------------------------------

    def occurrence(self, place: Place) -> Occurrence:
        term, alias = place
        return self.terms[term].occurrence(alias)

    def places_changed(self, transaction: Transaction) -> tuple[Place, ...]:
        """The occurrences that the transaction changes, in the order of the view's text."""
        changed = set(transaction.relations)
        return tuple(
            (index, occurrence.alias)
            for index, term in enumerate(self.terms)
            for occurrence in term.occurrences
            if occurrence.name in changed
        )

    def prepared_change(self, place: Place, transactions: Iterable[Transaction]) -> Any:
        """The sum of the transactions' changes at one occurrence, as a partial."""
        term, alias = place
        name = self.occurrence(place).name
        changes = [c for t in transactions if (c := t.change(name)) is not None]
        total = changes[0]
        for change in changes[1:]:
            total = total + change
        return self.assemblies[term].prepared(alias, total)
