"""PostgreSQL's messages under attack: rows, columns and a plain decoder must say the same."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from typing import Any

from fuzzing import corpus, plain_pgoutput
from viewkeeper.arrow import batch_of, rows_of
from viewkeeper.sources.postgres import pgoutput
from viewkeeper.sources.postgres.catalog import Described, described
from viewkeeper.sources.postgres.columns import ColumnDecoder, NotPlain, decoded
from viewkeeper.sources.postgres.pgoutput import MissingOldValue, TupleDecoder, UnreadableValue
from viewkeeper.sources.wire import Malformed

BEGIN = b"B" + struct.pack(">QQI", 1, 800_000_000_000_000, 7)
COMMIT = b"C" + struct.pack(">BQQQ", 0, 1, 2, 5)
_ROWS = b"IUD"


@dataclass(frozen=True)
class Relation:
    described: Described
    typed: TupleDecoder
    raw: TupleDecoder
    columns: ColumnDecoder
    # An insertion that follows the message: who reads on finds something there.
    neighbour: bytes


@functools.cache
def relations() -> tuple[Relation, ...]:
    inserts = {}
    for message in corpus.messages("postgres"):
        if message[:1] == b"I":
            inserts.setdefault(int.from_bytes(message[1:5], "big"), message)
    found = [
        described(document["name"], document)
        for document in corpus.facts("postgres")["documents"]
        if document["oid"] in inserts
    ]
    return tuple(_relation(each, inserts[each.oid]) for each in sorted(found, key=lambda d: d.oid))


def _relation(each: Described, neighbour: bytes) -> Relation:
    codecs = [column.codec for column in each.streamed]
    return Relation(
        each,
        TupleDecoder([None if codec is None else codec.parse for codec in codecs]),
        TupleDecoder([bytes] * len(codecs)),
        ColumnDecoder(codecs, each.relation.schema),
        neighbour,
    )


def seeds() -> list[bytes]:
    """Each message, behind the number of its relation."""
    numbers = {relation.described.oid: n for n, relation in enumerate(relations())}
    found = []
    for message in corpus.messages("postgres"):
        oid = int.from_bytes(message[1:5], "big")
        found.append(bytes([numbers.get(oid, 0)]) + message)
    return found


def attack(data: bytes) -> None:
    """Raises AssertionError, or whatever else a decoder raised that it may not."""
    if len(data) < 2:
        return
    relation, payload = relations()[data[0] % len(relations())], data[1:]
    if payload[0] in _ROWS:
        payload = payload[:1] + struct.pack(">I", relation.described.oid) + payload[5:]
        _attack_rows(relation, payload)
    else:
        _attack_other(payload)


def _attack_rows(relation: Relation, payload: bytes) -> None:
    texts = _read(relation.raw, payload)
    try:
        theirs: Any = plain_pgoutput.rows(payload, len(relation.described.streamed))
    except plain_pgoutput.Wrong:
        theirs = None
    assert (texts is None) == (theirs is None), (payload, texts, theirs)
    if texts is not None:
        assert [None if row is None else list(row) for row in texts] == list(theirs), payload
    singly = _read(relation.typed, payload)
    schema = relation.described.relation.schema
    if singly is not None:
        # What was read can be stored.
        batch = batch_of([row for row in singly if row is not None], schema)
        kept = list(rows_of(batch, schema))
        assert repr(kept) == repr([row for row in singly if row is not None]), payload
    together = _as_columns(relation, payload)
    if together is not None:
        assert singly is not None, payload
        old, new = singly
        wanted = [] if old == new else [row for row in singly if row is not None]
        assert repr(together) == repr(wanted), payload


def _read(decoder: TupleDecoder, payload: bytes) -> tuple[Any, Any] | None:
    """(old, new); None where it is refused by name."""
    try:
        pgoutput.relation_of(payload)
        if payload[0] == pgoutput.INSERT:
            return None, decoder.insert(payload)
        if payload[0] == pgoutput.DELETE:
            return decoder.delete(payload), None
        return decoder.update(payload)
    except (Malformed, UnreadableValue, MissingOldValue):
        return None


def _as_columns(relation: Relation, payload: bytes) -> list[Any] | None:
    """The rows of the message, read together with its neighbour; None where it is not plain."""
    name = relation.described.name
    messages = [BEGIN, payload, relation.neighbour, COMMIT]
    try:
        found = decoded(messages, {relation.described.oid: (name, relation.columns)})
    except NotPlain:
        return None
    changed = found.changes[name]
    rows = [
        row
        for batch in changed.rows.combine_chunks().to_batches()
        for row in rows_of(batch, changed.schema)
    ]
    _, neighbour = _read(relation.typed, relation.neighbour) or (None, None)
    assert repr(rows[-1]) == repr(neighbour), payload
    return rows[:-1]


def _attack_other(payload: bytes) -> None:
    readers = {
        b"R": (pgoutput.decode_relation, plain_pgoutput.relation),
        b"T": (pgoutput.decode_truncate, plain_pgoutput.truncate),
        b"M": (pgoutput.decode_message, plain_pgoutput.message),
        b"B": (pgoutput.decode_begin, None),
        b"C": (pgoutput.end_of_commit, None),
        b"Y": (pgoutput.pass_over, None),
        b"O": (pgoutput.pass_over, None),
    }
    ours, plainly = readers.get(payload[:1], (None, None))
    if ours is None:
        return
    try:
        found: Any = ours(payload)
    except Malformed:
        return
    if payload[:1] == b"B":
        pgoutput.moment(found[0])
    if plainly is not None:
        assert _told(found) == _told(plainly(payload)), payload


def _told(found: Any) -> Any:
    """The same form for what both decoders found."""
    match found:
        case pgoutput.StreamRelation():
            columns = [(c.name.encode(), c.type_oid, c.modifier) for c in found.columns]
            head = found.oid, found.namespace.encode(), found.name.encode()
            return (*head, found.identity.encode("latin1"), columns)
        case (int(), bytes(), bytes(), bytes(), list()):
            return (found[0], found[1] or b"pg_catalog", *found[2:])
        case pgoutput.Truncate():
            return list(found.oids)
        case pgoutput.LogicalMessage():
            return (int(found.transactional), found.lsn, found.prefix.encode(), found.content)
    return found
