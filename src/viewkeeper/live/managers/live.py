"""View managers over live changes: the protocols are the simulated ones, the rows come as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from viewkeeper.algebra.bag import Bag
from viewkeeper.engine.integrator import Arrival, transactions_in
from viewkeeper.errors import invariant
from viewkeeper.live.jobs import Job
from viewkeeper.live.questions.change_tables import ChangeTables, with_number
from viewkeeper.live.questions.message_counts import MessageCounts
from viewkeeper.live.questions.source_queries import Questions
from viewkeeper.live.questions.stores import Stores
from viewkeeper.protocols.batched_sweep import Numbered
from viewkeeper.protocols.incremental import IncrementalView
from viewkeeper.protocols.messages import (
    AnswerArrived,
    AskSource,
    AskStores,
    BatchClosed,
    BatchPassed,
    InstallBatch,
    SourceSettled,
    StoresRead,
    TransactionsArrived,
)
from viewkeeper.spark.arrow import arrow_schema
from viewkeeper.spark.staged import Staging
from viewkeeper.views.definition import LOCAL, RelationName, ViewDefinition
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import Upkeep
from viewkeeper.warehouse.columns import store_name

# What a job changes, by table: the view, and its stores. Columns, ``_txn``, ``_count``.
Tables = dict[str, pa.Table]


class LiveManager(ABC):
    """Keeps one view, job by job. Used by one thread at a time."""

    level: Level
    counts: MessageCounts
    # Whether a job needs nothing of the jobs before it: then two managers may do them by turns.
    takes_turns = False
    # Whether it can be told of a stretch of transactions at once.
    takes_stretches = False

    @abstractmethod
    def arrived(self, arrivals: Iterable[Arrival]) -> None:
        """These transactions have arrived; jobs will come for them, or for the first of them."""

    @abstractmethod
    def maintain(self, job: Job) -> Tables:
        """The changes that the job's transactions make; all its questions are asked on the way."""

    def foresee(self, batch: Sequence[Arrival], questions: Questions) -> None:
        """For a new manager: ask what a job for the batch would ask, as far as it can be told by now."""
        invariant(False, f"{type(self).__name__} does not ask in advance")

    def pass_over(self, job: Job) -> None:
        """Another manager of the view does the job."""
        invariant(False, f"{type(self).__name__} does not take turns")

    @abstractmethod
    def settled(self, numbers: Mapping[str, int]) -> None:
        """From now on all cuts reflect the sources' transactions up to these numbers."""


def pruned_upkeep(definition: ViewDefinition) -> Upkeep:
    """What is kept for a view, whose text may name more columns than it needs."""
    return Upkeep(pruned(definition))


class IncrementalManager(LiveManager):
    """From changes alone, in batches: `IncrementalView`, and its stores."""

    level = IncrementalView.level
    takes_stretches = True

    def __init__(
        self,
        definition: ViewDefinition,
        staging: Staging,
        sources: tuple[str, ...],
        changes: ChangeTables,
        stores: Callable[[], Stores],
    ) -> None:
        """``stores`` are read when the first job comes: until then they may still be changing."""
        self.view = definition.name
        self.counts = MessageCounts()
        self._protocol = _LiveView(definition, staging, sources, changes)
        self._read_stores = stores
        # What is kept beside a view is as the last job left it.
        self.takes_turns = not self._protocol.upkeep.stores

    @cached_property
    def _stores(self) -> Stores:
        return self._read_stores()

    def arrived(self, arrivals: Iterable[Arrival]) -> None:
        self._protocol.step(TransactionsArrived([arrival.transaction for arrival in arrivals]))

    def foresee(self, batch: Sequence[Arrival], questions: Questions) -> None:
        protocol = self._protocol
        protocol.begin_at(batch)
        self.arrived(batch)
        todo = deque(protocol.step(BatchClosed(transactions_in(batch))))
        while todo and isinstance(question := todo.popleft(), AskSource):
            answer = questions.answer(question, protocol.terms)
            # What is left is to join, and that can't be done in advance.
            if not protocol.is_last_round:
                todo.extend(protocol.step(answer))

    def pass_over(self, job: Job) -> None:
        self._protocol.step(BatchPassed(job.transactions))

    def settled(self, numbers: Mapping[str, int]) -> None:
        for source, number in numbers.items():
            self._protocol.step(SourceSettled(source, number))

    def maintain(self, job: Job) -> Tables:
        self.counts.transactions += job.transactions
        if self.view not in job.concerned:
            # Nothing of it changes the view, nor what is kept beside it: neither asked for nor joined.
            with job.asking():
                self.pass_over(job)
            return {}
        protocol, staging = self._protocol, job.questions.staging
        installed: InstallBatch | None = None
        with job.asking() as questions:
            protocol.staging = staging
            todo = deque(protocol.step(BatchClosed(job.transactions)))
            while todo:
                match todo.popleft():
                    case AskSource() as question:
                        answer = questions.answer(question, protocol.terms)
                        self._count(question, answer)
                        todo.extend(protocol.step(answer))
                    case AskStores(question, parts):
                        found = tuple(staging.of_bag(self._stores.rows(part)) for part in parts)
                        todo.extend(protocol.step(StoresRead(question, found)))
                    case InstallBatch() as installed:
                        pass
                    case _:
                        invariant(False, f"{protocol.name} wants what can't be done live")
        if installed is None:
            return {}
        stored: dict[str, Bag] = {n: change.to_bag() for n, change in installed.stores.items()}
        self._stores.change(stored)
        tables = {self.view: staging.computed(installed.change)}
        for name, change in installed.stores.items():
            tables[store_name(self.view, name)] = _positional(staging.computed(change))
        return tables

    def _count(self, question: AskSource, answer: AnswerArrived) -> None:
        self.counts.questions += 1
        self.counts.answers += 1
        self.counts.reads += len(question.parts)
        self.counts.rows += sum(rows.lines for rows in answer.answers)


class _LiveView(IncrementalView):
    """The protocol over tables of changes; batches are closed by the group."""

    eager = False

    def __init__(
        self,
        definition: ViewDefinition,
        staging: Staging,
        sources: tuple[str, ...],
        changes: ChangeTables,
    ) -> None:
        self.staging = staging
        self._tables = changes
        narrow = pruned(definition)
        self.columns = {
            o.name: o.schema
            for term in narrow.all_terms
            for o in term.occurrences
            if o.source != LOCAL
        }
        nothing = staging.relation(arrow_schema(narrow.schema).empty_table(), narrow.schema)
        super().__init__(narrow, nothing, sources)

    def begin_at(self, batch: Sequence[Arrival]) -> None:
        """What came before the batch is taken for applied."""
        for arrival in reversed(batch):
            self._number = arrival.number - 1
            self._arrived[arrival.transaction.source] = arrival.transaction.number - 1

    def embodied(self, bag: Bag) -> Any:
        return self.staging.of_bag(bag)

    def collected(self, name: RelationName, transactions: Iterable[Numbered]) -> Any:
        """All changes of one relation in some transactions, as one staged table."""
        narrow = self.columns[name]
        numbers = [n for first, t in transactions for n in range(first, first + t.size)]
        table = self._tables.changes(name, numbers, narrow.names)
        return self.staging.relation(table, with_number(narrow))


def _positional(table: pa.Table) -> pa.Table:
    """A store's columns have names of our own, which not every table format takes."""
    own = table.num_columns - 2
    return table.rename_columns([*(f"c{i}" for i in range(own)), *table.column_names[own:]])
