"""What managers share that hand a job's transactions to a protocol one by one: arrivals, in pieces."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.expressions import Column, Literal, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.engine.integrator import Arrival
from viewkeeper.errors import invariant
from viewkeeper.live.jobs import Job
from viewkeeper.live.managers.live import LiveManager, Tables
from viewkeeper.live.questions.batch_end import BatchEnd
from viewkeeper.live.questions.change_tables import ChangeTables, with_number
from viewkeeper.live.questions.message_counts import MessageCounts
from viewkeeper.live.questions.source_queries import Questions
from viewkeeper.live.reading.contents import whole_schemas
from viewkeeper.protocols.messages import TXN
from viewkeeper.spark.staged import StagedRelation, Staging
from viewkeeper.timeline import Transaction
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.pruning import pruned

# Transactions that a protocol gets before the first of its questions is answered. With all of
# a large batch at once, protocols that compensate for each pair of them would never come to an end.
TOGETHER_MAX = 32


@dataclass(frozen=True)
class ManagerInputs:
    """What a manager is made from. ``extent`` reads the view as it is committed.

    It is read when the first job comes: until then another group may still be bringing the view there.
    """

    definition: ViewDefinition
    changes: ChangeTables
    extent: Callable[[], pa.Table]
    kinds: Mapping[str, str]


@dataclass(frozen=True)
class Piece:
    """Some transactions, one after the other, and the sources as they are after the last of them."""

    transactions: tuple[Transaction, ...]
    end: BatchEnd
    # The number of each transaction in the order of arrival.
    numbers: Mapping[tuple[str, int], int]

    @property
    def staging(self) -> Staging:
        return self.end.questions.staging


class BufferedManager(LiveManager):
    """Keeps what has arrived until a job takes it up."""

    def __init__(self, inputs: ManagerInputs) -> None:
        self.view = inputs.definition.name
        self.definition = pruned(inputs.definition)
        self.inputs = inputs
        self.counts = MessageCounts()
        self.schemas = whole_schemas([self.definition])
        self._assemblies = tuple(Assembly(term) for term in self.definition.all_terms)
        self._waiting: deque[Arrival] = deque()
        self._reached = dict.fromkeys(self.definition.sources, 0)

    def arrived(self, arrivals: Iterable[Arrival]) -> None:
        self._waiting.extend(arrivals)

    def settled(self, numbers: Mapping[str, int]) -> None:
        """Nothing to do: what a job has brought in, all later cuts reflect anyway."""

    def maintain(self, job: Job) -> Tables:
        with job.asking() as questions:
            changes = list(self.changes(job, questions))
        if self.view not in job.concerned:
            return {}
        total: Any = questions.staging.of_bag(Bag(with_number(self.definition.schema)))
        for change, number in changes:
            total = total + _numbered(change, number)
        return {self.view: questions.staging.taken(total.consolidated()).table}

    @abstractmethod
    def changes(self, job: Job, questions: Questions) -> Iterator[tuple[Any, int]]:
        """The changes of the view that a job makes, each with the number it is to show under."""

    # -- for its kinds -------------------------------------------------------------------------------

    def pieces(self, job: Job, questions: Questions) -> Iterator[Piece]:
        """The job's transactions, some at a time."""
        self.take(job.batch)
        beyond = self.ahead(questions)
        mine = [a for a in job.batch if a.transaction.source in self._reached]
        for start in range(0, len(mine), TOGETHER_MAX):
            end = start + TOGETHER_MAX
            # Every transaction of a job is visible in its cuts.
            yield self._piece(mine[start:end], [*mine[end:], *beyond], questions)

    def take(self, batch: Iterable[Arrival]) -> None:
        """These are no longer waiting."""
        for arrival in batch:
            first = self._waiting.popleft()
            invariant(first.number == arrival.number, "a job is not what arrived first")

    def ahead(self, questions: Questions) -> tuple[Arrival, ...]:
        """What waits for later jobs and is reflected by the cuts already."""
        return tuple(
            arrival
            for arrival in self._waiting
            if arrival.transaction.source in self._reached
            and questions.reflected[arrival.transaction.source].includes(arrival.transaction.number)
        )

    def extent(self, staging: Staging) -> StagedRelation:
        """The view as the warehouse has it."""
        return staging.relation(self.inputs.extent(), self.definition.schema)

    def _piece(self, mine: list[Arrival], ahead: Sequence[Arrival], questions: Questions) -> Piece:
        staging = questions.staging
        by_relation = {
            name: self._by_number(name, [a for a in mine if _touches(a, name)], staging)
            for name in self.schemas
        }
        self._reached |= {a.transaction.source: a.transaction.number for a in mine}
        self.counts.transactions += len(mine)
        transactions = tuple(
            Transaction(
                arrival.transaction.source,
                arrival.transaction.number,
                tuple(
                    (name, rows[arrival.number])
                    for name, rows in by_relation.items()
                    if arrival.number in rows
                ),
            )
            for arrival in mine
        )
        end = BatchEnd(
            questions,
            self._assemblies,
            dict(self._reached),
            self._taken_out(ahead, staging),
            self.inputs.kinds,
            self.counts,
        )
        numbers = {(a.transaction.source, a.transaction.number): a.number for a in mine}
        return Piece(transactions, end, numbers)

    def _taken_out(
        self, ahead: Sequence[Arrival], staging: Staging
    ) -> Callable[[RelationName], StagedRelation | None]:
        """By relation, what the cuts have that is not applied yet, with its signs turned."""
        found: dict[RelationName, StagedRelation] = {}
        for name, schema in self.schemas.items():
            numbers = [arrival.number for arrival in ahead if _touches(arrival, name)]
            if numbers:
                table = self.inputs.changes.changes(name, numbers, schema.names)
                rows = staging.relation(table.drop_columns([TXN]), schema)
                found[name] = staging.taken(-rows)
        return found.get

    def _by_number(
        self, name: RelationName, arrivals: list[Arrival], staging: Staging
    ) -> dict[int, StagedRelation]:
        """The changed rows of one relation, by transaction."""
        if not arrivals:
            return {}
        schema = self.schemas[name]
        numbers = [arrival.number for arrival in arrivals]
        table = self.inputs.changes.changes(name, numbers, schema.names)
        of_rows = table.column(TXN).to_numpy()
        starts = np.searchsorted(of_rows, numbers, "left")
        ends = np.searchsorted(of_rows, numbers, "right")
        plain = table.drop_columns([TXN])
        return {
            number: staging.relation(plain.slice(start, end - start), schema)
            for number, start, end in zip(numbers, starts, ends, strict=True)
        }


def _touches(arrival: Arrival, name: RelationName) -> bool:
    return arrival.transaction.change(name) is not None


def _numbered(change: Any, number: int) -> Any:
    columns = tuple(Output(name, Column(name)) for name in change.schema.names)
    return change.select((*columns, Output(TXN, Literal(number, INTEGER))))
