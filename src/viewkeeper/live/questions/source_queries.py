"""Carries a protocol's questions to the sources, all of one batch at one cut per source."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.expressions import conjunction
from viewkeeper.algebra.types import Kind, Schema
from viewkeeper.arrow import arrow_type
from viewkeeper.engine.cuts import broken_types
from viewkeeper.errors import SourceError, invariant
from viewkeeper.live.questions.pacing import Pace
from viewkeeper.protocols.messages import AnswerArrived, AskSource, KeyedPart, Reflected
from viewkeeper.sources.interface import KeyedRead, Snapshot
from viewkeeper.spark.arrow import COUNT, arrow_schema
from viewkeeper.spark.staged import StagedRelation, Staging
from viewkeeper.views.definition import Occurrence, RelationName, Term


@dataclass
class Tally:
    """What some questions cost."""

    queries: int = 0
    keys: int = 0
    rows: int = 0
    bytes: int = 0

    def add(self, keys: int, answer: pa.Table) -> None:
        self.queries += 1
        self.keys += keys
        self.rows += answer.num_rows
        self.bytes += answer.nbytes

    def include(self, other: Tally) -> None:
        """Count what other questions cost too."""
        self.queries += other.queries
        self.keys += other.keys
        self.rows += other.rows
        self.bytes += other.bytes


@dataclass
class Asked(Tally):
    """What was asked of one source; and of each relation, as far as it was asked for alone."""

    relations: dict[str, Tally] = field(default_factory=dict)


def asked_together(several: Iterable[Mapping[str, Asked]]) -> dict[str, Asked]:
    """What several batches asked, added up."""
    total: dict[str, Asked] = {}
    for asked in several:
        for source, tally in asked.items():
            so_far = total.setdefault(source, Asked())
            so_far.include(tally)
            for relation, part in tally.relations.items():
                so_far.relations.setdefault(relation, Tally()).include(part)
    return total


# A question but for its keys: source, relation, columns, key columns.
_Kind = tuple[str, str, tuple[str, ...], tuple[str, ...]]
# More transactions than there will ever be.
EVERYTHING = Reflected(2**62)


class AskedEnough(Exception):
    """Answers in advance are no longer needed. Never shown to people."""


@dataclass(frozen=True)
class _Remembered:
    """What was answered at some cuts: all rows that have one of these keys."""

    keys: pa.Table
    rows: pa.Table

    @classmethod
    def of(cls, keys: pa.Table, answer: pa.Table) -> _Remembered:
        return cls(keys, _having(answer, keys))

    def and_(self, keys: pa.Table, answer: pa.Table) -> _Remembered:
        """With what was answered for keys that were not known."""
        more = _Remembered.of(keys, answer)
        both = ((self.keys, more.keys), (self.rows, more.rows))
        return _Remembered(*(pa.concat_tables(pair) for pair in both))

    def unknown(self, keys: pa.Table) -> pa.Table:
        return keys.filter(pc.invert(_is_among(keys, self.keys)))


def _can_be_remembered(read: KeyedRead, schema: Schema) -> bool:
    """Whether it can be seen here which rows have a key: by one column, and equal where Arrow says so."""
    if read.keys is None or len(read.key_columns) != 1:
        return False
    type = schema.type_of(read.key_columns[0])
    return type.kind is not Kind.DOUBLE and read.keys.column(0).type == arrow_type(type)


def _having(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows with one of these keys: a source may give more than it was asked for."""
    is_asked_for = _is_among(rows, keys)
    return rows if pc.all(is_asked_for).as_py() else rows.filter(is_asked_for)


def _is_among(rows: pa.Table, keys: pa.Table) -> pa.ChunkedArray:
    (column,) = keys.column_names
    return pc.is_in(rows.column(column), value_set=keys.column(0).combine_chunks())


@dataclass
class Questions:
    """The questions of one batch: its cuts, what each reflects, and what it cost. Thread-safe.

    Asked in advance (`prefetching`), when it is not known yet what the cuts reflect, answers are remembered for
    those that are asked for the batch itself; and so they are where other batches will be asked for at the same cuts.
    """

    cuts: Mapping[str, Snapshot]
    reflected: Mapping[str, Reflected]
    staging: Staging
    paces: Mapping[str, Pace]
    is_in_advance: bool = False
    remembers: bool = False
    asked: dict[str, Asked] = field(default_factory=dict)
    _is_over: bool = False
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _remembered: dict[_Kind, _Remembered] = field(default_factory=dict)
    _errors: dict[str, SourceError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for source in self.cuts:
            self.asked.setdefault(source, Asked())
            self._locks.setdefault(source, threading.Lock())

    @classmethod
    def in_advance(
        cls, cuts: Mapping[str, Snapshot], staging: Staging, paces: Mapping[str, Pace]
    ) -> Questions:
        """As if all cuts reflected exactly what the batch is."""
        everything = dict.fromkeys(cuts, EVERYTHING)
        return cls(cuts, everything, staging, paces, is_in_advance=True, remembers=True)

    def in_earnest(
        self, reflected: Mapping[str, Reflected], staging: Staging, *, remembers: bool = False
    ) -> Questions:
        """At the same cuts, with what has been answered so far."""
        return replace(
            self, reflected=reflected, staging=staging, is_in_advance=False, remembers=remembers
        )

    def of_another_batch(self) -> Questions:
        """At the same cuts, with what has been answered so far; its cost is not counted again."""
        return replace(self, asked={})

    def stop_asking(self) -> None:
        """In advance: from now on it is asked for the batch itself."""
        self._is_over = True

    def answer(self, question: AskSource, terms: Sequence[Term]) -> AnswerArrived:
        """The rows that a question over these terms asks for, as they are at the source's cut."""
        answers = []
        for part in question.parts:
            invariant(isinstance(part, KeyedPart), "live questions ask for rows by key")
            if isinstance(part, KeyedPart):
                answers.append(self.rows(question.source, part, terms[part.term]))
        reflects = self.reflected[question.source]
        return AnswerArrived(question.question, tuple(answers), reflects)

    def rows(self, source: str, part: KeyedPart, term: Term) -> StagedRelation:
        """A partial of one occurrence: its rows with the keys that are asked for, at the cut."""
        occurrence = term.occurrence(part.alias)
        read = _keyed_read(occurrence, part)
        # A cut is used by one thread at a time.
        with self._locks[source]:
            table = self._found(source, read, occurrence.schema)
        relation = self.staging.relation(table, occurrence.qualified_schema)
        local = conjunction(term.local_predicates(part.alias))
        filtered = relation.where(local)
        invariant(
            isinstance(filtered, StagedRelation), "answers stay in Arrow until they are joined"
        )
        return filtered  # type: ignore[return-value]

    def _found(self, source: str, read: KeyedRead, schema: Schema) -> pa.Table:
        """What is remembered, and what has to be read besides."""
        if self.is_in_advance and self._is_over:
            raise AskedEnough
        if source in self._errors:
            # The cut may be broken since; that is not what was wrong.
            raise self._errors[source]
        kind = (source, read.relation, read.columns, read.key_columns)
        known = self._remembered.get(kind)
        is_new = known is None and not self.remembers
        if is_new or not _can_be_remembered(read, schema):
            return self._read(source, read, schema)
        wanted = cast(pa.Table, read.keys)
        keys = wanted if known is None else known.unknown(wanted)
        answer = self._read(source, replace(read, keys=keys), schema)
        found = _Remembered.of(keys, answer) if known is None else known.and_(keys, answer)
        if self.remembers:
            self._remembered[kind] = found
        return found.rows if known is None else _having(found.rows, wanted)

    def _read(self, source: str, read: KeyedRead, schema: Schema) -> pa.Table:
        if read.keys is not None and read.keys.num_rows == 0:
            return counted([], schema, source)
        keys = 0 if read.keys is None else read.keys.num_rows
        try:
            table = self._asked(source, keys, schema, lambda cut: cut.read(read))
        except SourceError as error:
            self._errors[source] = error
            raise
        self.asked[source].relations.setdefault(read.relation, Tally()).add(keys, table)
        return table

    def whole(self, name: RelationName, schema: Schema) -> StagedRelation:
        """A whole relation, with the columns of ``schema``, at its source's cut."""
        with self._locks[name.source]:
            table = self._read(name.source, KeyedRead(name.relation, schema.names), schema)
        return self.staging.relation(table, schema)

    def query(self, source: str, sql: str, schema: Schema, keys: int) -> pa.Table:
        """What the source's own engine answers; ``keys`` is how many of them are in the text."""
        with self._locks[source]:
            return self._asked(source, keys, schema, lambda cut: cut.query(sql, schema))

    @contextlib.contextmanager
    def held(self, sources: Iterable[str]) -> Iterator[Mapping[str, Snapshot]]:
        """The cuts of some sources, for one thread alone."""
        with contextlib.ExitStack() as stack:
            for source in sorted(sources):
                stack.enter_context(self._locks[source])
            yield self.cuts

    def _asked(
        self,
        source: str,
        keys: int,
        schema: Schema,
        answer: Callable[[Snapshot], Iterator[pa.RecordBatch]],
    ) -> pa.Table:
        pace = self.paces[source]
        pace.before_question()
        table = counted(list(answer(self.cuts[source])), schema, source)
        pace.asked(table.num_rows)
        self.asked[source].add(keys, table)
        return table


def _keyed_read(occurrence: Occurrence, part: KeyedPart) -> KeyedRead:
    columns = occurrence.schema.names
    if part.keys is None:
        return KeyedRead(occurrence.name.relation, columns)
    prefix = len(occurrence.alias) + 1
    key_columns = tuple(name[prefix:] for name in part.key_columns)
    keys: pa.Table = part.keys.table.drop_columns([COUNT]).rename_columns(list(key_columns))
    return KeyedRead(occurrence.name.relation, columns, key_columns, keys)


def counted(batches: list[pa.RecordBatch], schema: Schema, source: str) -> pa.Table:
    """Rows as they were read, each with a count of 1.

    An answer of other types is a broken query: the source's schema is not the one that was asked for.
    """
    types = arrow_schema(schema)
    bare = pa.schema(list(types)[:-1])
    for batch in batches:
        if not batch.schema.equals(bare):
            raise broken_types(source, _told(bare), _told(batch.schema))
    table = pa.Table.from_batches(batches, bare) if batches else bare.empty_table()
    ones = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
    return table.append_column(types.field(len(types) - 1), ones)


def _told(types: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in types)
