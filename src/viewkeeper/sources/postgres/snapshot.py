"""Exact cuts: which transactions an answer reflects, by snapshot and xid.

What a REPEATABLE READ query sees is not a prefix of the log: a transaction becomes visible when it
leaves the table of running transactions, some time after its commit record was written and perhaps
after it was decoded. So the cut is the predicate "visible in this snapshot" on xids, and LSNs serve
as a bound alone: whatever the snapshot sees was written before the insert position read with it.

The order of the statements matters. Locks come before the snapshot: a snapshot that is older than a
TRUNCATE or a rewriting ALTER sees an empty table. LOCK TABLE itself takes no snapshot.

Locks last for one question, so that no owner waits long to alter a table. They are taken behind a savepoint;
going back to it lets them go, and the snapshot stays. Between two questions a table may be altered, rewritten or
emptied. So each question looks at its tables, under its own locks: if one is not as it was when the snapshot was
taken, the cut was overtaken, and a new one is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from viewkeeper.algebra.types import Schema
from viewkeeper.arrow import arrow_schema
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import (
    KeyedRead,
    RelationSchema,
    Snapshot,
    SourceTransaction,
    broken_query,
    cut_lost,
    cut_overtaken,
)
from viewkeeper.sources.postgres.catalog import Column, Described
from viewkeeper.sources.postgres.codec import codec_of_result
from viewkeeper.sources.postgres.connection import ArrowLink
from viewkeeper.sources.postgres.position import lsn_number, make_position
from viewkeeper.sources.postgres.quoting import quoted
from viewkeeper.sources.postgres.reading import fitted, key_arrays, key_condition, spelled_out
from viewkeeper.sources.postgres.watching import Token
from viewkeeper.sources.postgres.xid_snapshot import XidSnapshot

if TYPE_CHECKING:
    from viewkeeper.sources.postgres.source import PostgresSource
    from viewkeeper.sources.transaction_block import TransactionBlock

# Keys in one question. A question with parameters is answered as a whole, so this bounds memory.
KEYS_PER_QUESTION_MAX = 25_000
# Blocks of a table in one question, which bounds how long it is locked: a tenth of a second or two.
BLOCKS_PER_QUESTION_MAX = 1_000
ATTEMPTS_MAX = 4

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_MARK = "SAVEPOINT question"
_LET_GO = "ROLLBACK TO SAVEPOINT question"
# A snapshot is exported by the transaction itself, not behind a savepoint of it.
_EXPORT = ("RELEASE SAVEPOINT question", "SELECT pg_export_snapshot()", _MARK)

# One statement, one snapshot: so it is certain that the feed brings all that this sees. The insert position is read after the snapshot was taken: whatever
# that sees lies before it.
_STATE = """
SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text,
       pg_current_wal_flush_lsn()::text, pg_is_in_recovery(),
       pg_postmaster_start_time()::text,
       (SELECT system_identifier::text FROM pg_control_system()),
       (SELECT timeline_id::int8 FROM pg_control_checkpoint()),
       ({look})
"""


class PostgresSnapshot(Snapshot):
    """A transaction that holds its snapshot open on one connection of the source's pool."""

    def __init__(
        self,
        source: PostgresSource,
        relations: Sequence[str],
        shared: Mapping[str, Any] | None = None,
    ) -> None:
        self._source = source
        self._open = True
        # What others join the snapshot by; None before it is asked for.
        self._exported: str | None = None
        # The cut's tables as they were when the snapshot was taken: a question must find them so.
        self._tokens: dict[int, Token] = {}
        self._link: ArrowLink = source.links.lend()
        try:
            if shared is None:
                self._begin(relations)
            else:
                self._join(relations, shared)
        except BaseException:
            self.close()
            raise

    def _begin(self, relations: Sequence[str]) -> None:
        self._source.settling.settle()
        for attempt in range(1, ATTEMPTS_MAX + 1):
            self._link.run(_BEGIN)
            self._link.run(_MARK)
            if self._lock_all(relations, fresh=attempt > 1):
                break
            self._link.run("ROLLBACK")
        else:
            raise _changing(self._source.name)
        watch = self._source.watch
        state = self._link.table(_STATE.format(look=watch.statement))
        row = [column[0].as_py() for column in state.columns]
        snapshot, insert, flushed, standby, started, system, timeline, look = row
        if standby:
            raise _not_primary(self._source.name)
        self.life = started
        self.bound = make_position(system, timeline, lsn_number(insert))
        self._snapshot_text = snapshot
        self._snapshot = XidSnapshot.parsed(snapshot)
        if lsn_number(flushed) < lsn_number(insert):
            self._source.links.hasten()
        watch.judge(look, self._described)
        self._link.run(_LET_GO)

    def _lock_all(self, relations: Sequence[str], *, fresh: bool) -> bool:
        """Lock the relations; False when another one answers to a name than we thought.

        While they are locked they can't be altered: what the catalog says now, on another
        connection, is what it says at the snapshot that is taken next.
        """
        expected = self._source.known(relations, fresh=fresh)
        try:
            self._lock(list(expected.values()))
        except SourceError as error:
            if error.code != "broken-query" or fresh:
                raise
            return False
        now = self._source.known(relations, fresh=True)
        if any(now[name].quoted != each.quoted for name, each in expected.items()):
            return False
        if any(now[name].oid != each.oid for name, each in expected.items()):
            return False
        self._describe(now)
        self._tokens = self._source.watch.tokens(each.oid for each in now.values())
        return True

    def _lock(self, relations: Sequence[Described]) -> None:
        if relations:
            tables = ", ".join(each.quoted for each in relations)
            self._link.run(f"LOCK TABLE {tables} IN ACCESS SHARE MODE")

    def _join(self, relations: Sequence[str], shared: Mapping[str, Any]) -> None:
        self._link.run(_BEGIN)
        exported = str(shared["exported"])
        # An identifier of a snapshot is hexadecimal digits and dashes; nothing else is sent.
        if not set(exported) <= set("0123456789ABCDEFabcdef-"):
            raise cut_lost(self._source.name, "the shared cut has no snapshot")
        try:
            self._link.run(f"SET TRANSACTION SNAPSHOT '{exported}'")
        except SourceError as error:
            raise cut_lost(self._source.name, error.detail) from None
        self.life = str(shared["life"])
        self.bound = dict(shared["bound"])
        self._snapshot_text, self._exported = str(shared["snapshot"]), exported
        self._snapshot = XidSnapshot.parsed(self._snapshot_text)
        self._link.run(_MARK)
        self._describe(self._source.known(relations, fresh=True))
        # As they were where the cut was opened: what was described here is compared with it by each question.
        found = {each.oid for each in self._described.values()}
        self._tokens = {int(o): Token(*t) for o, t in shared["tokens"].items() if int(o) in found}
        # Measured once, where the cut was opened: the parts of all its readers must fit together.
        self._blocks.update(shared["blocks"])

    def _describe(self, now: Mapping[str, Described]) -> None:
        self._described = dict(now)
        self._blocks: dict[str, int] = {}
        self.schemas: Mapping[str, RelationSchema] = {
            name: each.relation for name, each in now.items()
        }

    @contextmanager
    def _holding(self, relations: Sequence[Described]) -> Iterator[None]:
        """Lock relations for one question. Raises SourceError ``cut-overtaken`` where one is another by now."""
        with _translating(self):
            try:
                self._lock(relations)
                self._require_unchanged(relations)
                yield
            finally:
                if not self._link.broken:
                    self._link.run(_LET_GO)

    def _require_unchanged(self, relations: Sequence[Described]) -> None:
        now = self._source.watch.tokens(each.oid for each in relations)
        changed = [e.name for e in relations if now.get(e.oid) != self._tokens.get(e.oid)]
        if changed:
            detail = f"{', '.join(changed)} was altered, rewritten or emptied since it was opened"
            raise cut_overtaken(self._source.name, detail)

    # -- what it reflects -------------------------------------------------------------------------

    def reflects(self, transaction: SourceTransaction) -> bool:
        return self._snapshot.sees(int(transaction.identity))

    def reflects_each(self, transactions: Sequence[SourceTransaction]) -> list[bool]:
        return self._sees([int(transaction.identity) for transaction in transactions])

    def reflects_block(self, block: TransactionBlock) -> list[bool]:
        return self._sees(block.identities.tolist())

    def _sees(self, xids: Sequence[int]) -> list[bool]:
        if xids and max(xids) < self._snapshot.low:
            return [True] * len(xids)
        return [self._snapshot.sees(xid) for xid in xids]

    def share(self) -> Mapping[str, Any]:
        with _translating(self):
            self._exported = self._exported or self._export()
        return {
            "exported": self._exported,
            "tokens": {str(oid): [t.shape, t.files] for oid, t in self._tokens.items()},
            "snapshot": self._snapshot_text,
            "bound": dict(self.bound),
            "life": self.life,
            "blocks": {name: self._blocks_of(name) for name in self._described},
            "source": self._source.address,
        }

    def _export(self) -> str:
        release, export, mark = _EXPORT
        self._link.run(release)
        exported = str(self._link.table(export).column(0)[0].as_py())
        self._link.run(mark)
        return exported

    def twin(self) -> PostgresSnapshot:
        return PostgresSnapshot(self._source, list(self._described), self.share())

    # -- reading ----------------------------------------------------------------------------------

    def row_estimate(self, relation: str) -> int | None:
        return self._source.row_estimate(self._described[relation])

    def read(self, question: KeyedRead) -> Iterator[pa.RecordBatch]:
        each = self._described.get(question.relation)
        if each is None:
            raise broken_query(self._source.name, f"the cut was not opened for {question.relation}")
        columns = [self._column(each, name) for name in question.columns]
        target = arrow_schema(Schema(tuple(f for f in _fields(each, question.columns))))
        chosen = ", ".join(
            f"{c.codec.select.format(quoted(c.name))} AS {quoted(c.name)}"
            for c in columns
            if c.codec is not None
        )
        sql = f"SELECT {chosen} FROM {each.quoted}"
        for answer in self._answers(sql, each, question):
            with self._holding([each]):
                for batch in answer():
                    yield fitted(batch, target, self._source.name, question.relation)

    def _answers(
        self, sql: str, each: Described, question: KeyedRead
    ) -> Iterator[Callable[[], Iterator[pa.RecordBatch]]]:
        """The question in pieces that are asked for one by one."""
        if question.keys is None:
            for condition in self._ranges(question):
                yield partial(self._link.batches, sql + condition)
            return
        keys = [self._column(each, name) for name in question.key_columns]
        for arrays in key_arrays(question.keys, keys, KEYS_PER_QUESTION_MAX):
            yield partial(self._keyed, sql, keys, arrays)

    def _keyed(
        self, sql: str, key_columns: Sequence[Column], arrays: pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        spelled = spelled_out(arrays)
        if spelled is not None:
            return self._link.batches(f"{sql} WHERE {key_condition(key_columns, spelled)}")
        answer = self._link.table(f"{sql} WHERE {key_condition(key_columns)}", arrays)
        return iter(answer.to_batches())

    def _column(self, each: Described, name: str) -> Any:
        column = each.column(name)
        if column is None:
            reason = each.relation.refused.get(name, "there is no such column at the cut")
            raise broken_query(self._source.name, f"{each.name}.{name} can't be read: {reason}")
        return column

    def _ranges(self, question: KeyedRead) -> Iterator[str]:
        """Conditions on blocks. The last range is open, so that they cover every row whatever grew."""
        blocks = self._blocks_of(question.relation)
        low = blocks * question.part // question.parts
        high = blocks * (question.part + 1) // question.parts
        is_last = question.part == question.parts - 1
        step = BLOCKS_PER_QUESTION_MAX
        starts = range(low, max(high, low + 1), step)
        if question.parts == 1 and len(starts) == 1:
            yield ""
            return
        for start in starts:
            condition = f" WHERE ctid >= '({start},0)'::tid"
            if start + step < high or not is_last:
                condition += f" AND ctid < '({min(start + step, high)},0)'::tid"
            yield condition

    def _blocks_of(self, relation: str) -> int:
        """Of the relation, or of its largest partition; the same for all parts of this cut."""
        if relation not in self._blocks:
            each = self._described[relation]
            self._blocks[relation] = self._source.blocks([each.oid, *each.partitions])
        return self._blocks[relation]

    def query(
        self, sql: str, schema: Schema, parameters: Sequence[Any] = ()
    ) -> Iterator[pa.RecordBatch]:
        target = arrow_schema(schema)
        with self._holding(list(self._described.values())):
            shape = self._link.shape(sql)
            if len(shape) != len(schema):
                raise broken_query(
                    self._source.name, f"expected {len(schema)} columns, found {len(shape)}"
                )
            aliases = [f"c{number}" for number in range(len(schema))]
            chosen = ", ".join(
                f"{codec_of_result(_type_name(shape.field(i)), f.type).select.format(aliases[i])}"
                f" AS {quoted(f.name)}"
                for i, f in enumerate(schema)
            )
            wrapped = f"SELECT {chosen} FROM ({sql}) AS answer({', '.join(aliases)})"
            if parameters:
                names = [f"p{number}" for number in range(len(parameters))]
                values = [pa.array([value]) for value in parameters]
                bound = pa.RecordBatch.from_arrays(values, names=names)
                batches: Any = self._link.table(wrapped, bound).to_batches()
            else:
                batches = self._link.batches(wrapped)
            for batch in batches:
                yield fitted(batch, target, self._source.name, "a fragment")

    def close(self) -> None:
        if self._open:
            self._open = False
            self._source.links.take_back(self._link)


def _fields(each: Described, names: Sequence[str]) -> Iterator[Any]:
    schema = each.relation.schema
    return (schema.fields[schema.position(name)] for name in names)


def _type_name(field: pa.Field) -> str:
    metadata = field.metadata or {}
    return str(metadata.get(b"POSTGRESQL:type", b"").decode())


class _translating:
    """Inside a cut a lost link means a lost snapshot: the answer must be asked for again."""

    def __init__(self, cut: PostgresSnapshot) -> None:
        self._cut = cut

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, SourceError) and error.code == "link-lost":
            raise cut_lost(error.source, error.detail) from None


def _changing(source: str) -> SourceError:
    return SourceError(
        "source-busy",
        f"relations of PostgreSQL source {source} change names faster than a cut can be opened",
        source=source,
        retryable=True,
        hint="open a new cut",
    )


def _not_primary(source: str) -> SourceError:
    return SourceError(
        "not-primary",
        f"PostgreSQL source {source} is a standby",
        source=source,
        retryable=False,
        detail="cuts need the primary's snapshots and the primary's log",
        hint="give the primary's address in the source's URL",
    )
