"""What goes into a protocol and what comes out of it: events, actions, queries.

Events are what happened (past tense), actions are what must be done (imperative). All are immutable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class Reflected:
    """Exactly which transactions of its source an answer reflects.

    All up to ``upto``, but for those in ``without``, and besides them those in ``also``. With one FIFO
    channel for changes and answers it is always a plain prefix; PostgreSQL's snapshots are not.
    """

    upto: int
    also: frozenset[int] = frozenset()
    without: frozenset[int] = frozenset()

    def includes(self, number: int) -> bool:
        return (number <= self.upto and number not in self.without) or number in self.also

    def divided(self, first: int, last: int) -> Iterator[tuple[int, int, bool]]:
        """The numbers from ``first`` to ``last`` in pieces: from, to, and whether they are included."""
        exceptions = [n for n in self.also | self.without if first <= n <= last]
        turns = {self.upto + 1, *exceptions, *(n + 1 for n in exceptions)}
        start = first
        for number in sorted(n for n in turns if first < n <= last):
            if self.includes(number) != self.includes(start):
                yield start, number - 1, self.includes(start)
                start = number
        yield start, last, self.includes(start)

    @property
    def is_prefix(self) -> bool:
        """Whether it is a state that the source itself went through."""
        return not self.also and not self.without

    @property
    def highest(self) -> int:
        """No transaction with a higher number is reflected."""
        return max(self.upto, *self.also) if self.also else self.upto

    def __str__(self) -> str:
        text = f"1..{self.upto}" if self.upto else "none"
        if self.without:
            text += f" without {sorted(self.without)}"
        return text + (f" and {sorted(self.also)}" if self.also else "")


@dataclass(frozen=True)
class Part:
    """One product that a source is asked for: ``given`` ⊗ the contents of the occurrences ``asks``.

    ``given`` is a partial of term ``term`` over the occurrences ``covers``, with its own signs; None
    asks for the occurrences' contents alone. The answer has the columns of both.
    """

    term: int
    asks: tuple[str, ...]
    given: Any = None
    covers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class KeyedPart:
    """Rows of one occurrence that a source is asked for: keys out, rows back.

    ``keys`` holds the wanted values of the ``key_columns`` (full names, one column each, no NULLs);
    None asks for all rows. More rows than asked for do no harm. The answer is a partial of the
    occurrence alone.
    """

    term: int
    alias: str
    key_columns: tuple[str, ...] = ()
    keys: Any = None

    # As a `Part` it has nothing given, and covers nothing but what it asks for.
    given = None
    covers: ClassVar[frozenset[str]] = frozenset()

    @property
    def asks(self) -> tuple[str, ...]:
        return (self.alias,)


@dataclass(frozen=True)
class StoredPart:
    """Rows of one of the view's own stores that are needed, as the last installed batch left them.

    ``keys`` holds the wanted values of the ``key_columns``, one column each; here NULL equals NULL.
    None asks for all rows.
    """

    store: str
    key_columns: tuple[str, ...] = ()
    keys: Any = None


# -- events: what a protocol is told ------------------------------------------------------------


@dataclass(frozen=True)
class TransactionArrived:
    """The next transaction of its source; transactions of one source arrive in the source's order."""

    transaction: Transaction


@dataclass(frozen=True)
class TransactionsArrived:
    """Several transactions at once, of any sources, in the order of their arrival."""

    transactions: Sequence[Transaction]


@dataclass(frozen=True)
class AnswerArrived:
    """The answer to a question: one relation for each part that was asked.

    It arrives only after every transaction that it reflects.
    """

    question: int
    answers: tuple[Any, ...]
    reflects: Reflected


@dataclass(frozen=True)
class StoresRead:
    """The rows of the view's own stores that were asked for: one relation for each part."""

    question: int
    answers: tuple[Any, ...]


@dataclass(frozen=True)
class SourceSettled:
    """Whatever is asked from now on reflects all of the source's transactions up to ``upto``."""

    source: str
    upto: int


@dataclass(frozen=True)
class BatchClosed:
    """Begin now, with the first ``size`` of the transactions that wait; more may be known already."""

    size: int


@dataclass(frozen=True)
class BatchPassed:
    """Another manager of the same view does the first ``size`` of the transactions that wait."""

    size: int


SourceEvent = TransactionArrived | AnswerArrived | SourceSettled
Event = SourceEvent | TransactionsArrived | StoresRead | BatchClosed | BatchPassed


# -- actions: what a protocol wants done --------------------------------------------------------


@dataclass(frozen=True)
class AskSource:
    """Ask one source for some products, all evaluated at one moment."""

    question: int
    source: str
    parts: tuple[Part | KeyedPart, ...]


@dataclass(frozen=True)
class AskStores:
    """Look rows up in the view's own stores: every batch installed before must be in them."""

    question: int
    parts: tuple[StoredPart, ...]


@dataclass(frozen=True)
class InstallChange:
    """Change the view by ``change``; it then is the view at ``cut``."""

    change: Any
    cut: CutVector
    transactions: tuple[Transaction, ...]


@dataclass(frozen=True)
class InstallBatch:
    """Change the view step by step: ``change`` has a column `TXN` with each row's step.

    Step ``numbers[i]`` belongs to ``transactions[i]``, and after it the view is the view at
    ``cuts[i]``. (Of a block, the first of its steps; the cut is that after its last.) All of them
    become durable together; each remains a state of its own. So do the changes of the view's
    ``stores``, by name; of these only the last state matters.
    """

    change: Any
    numbers: tuple[int, ...]
    cuts: Sequence[CutVector]
    transactions: tuple[Transaction, ...]
    stores: Mapping[str, Any] = field(default_factory=dict)


# The column that numbers the transactions of a batch, in a change and in a partial.
TXN = "_txn"

Action = AskSource | AskStores | InstallChange | InstallBatch


@dataclass(frozen=True)
class Assumptions:
    """What a protocol needs beyond reliable delivery; without it, its level is not promised."""

    fifo: bool = False
    no_inversions: bool = False
    keys: bool = False
    one_source: bool = False

    def __str__(self) -> str:
        words = {
            "one FIFO channel for changes and answers": self.fifo,
            "answers that reflect every change delivered before the question": self.no_inversions,
            "the key of every relation in the view": self.keys,
            "all relations at one source": self.one_source,
        }
        return ", ".join(word for word, needed in words.items() if needed) or "nothing"


class Protocol(ABC):
    """A view manager for one view. `step` is its only entry; it does nothing by itself."""

    name: ClassVar[str]
    level: ClassVar[Level]
    # Whether changes are installed in the order in which transactions were delivered.
    in_order: ClassVar[bool] = False
    assumes: ClassVar[Assumptions]
    # In words, what it needs where the sources are.
    at_sources: ClassVar[str] = ""
    # In words, what it asks of the sources: of a view over n relations.
    asks: ClassVar[str]
    # The paper and its section.
    paper: ClassVar[str]

    @abstractmethod
    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        """``extent`` is the view before the first transaction; raises UsageError if unsuitable."""

    @abstractmethod
    def step(self, event: Event) -> tuple[Action, ...]:
        """Take one event in; the actions must be carried out in the order given."""

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether everything that arrived is installed and nothing is being waited for."""
