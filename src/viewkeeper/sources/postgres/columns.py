"""Many messages of pgoutput at once: their rows as Arrow columns, without a Python object for each value.

All messages lie in one buffer. For every row of a relation there is a place in it that moves from value to
value, and numpy moves all of them together. Whatever is not plain (a value that was left where it was,
an old row with its key only, a text that is none, a message that does not end where its values do) makes
`NotPlain`: then the messages are read one by one, which can do everything and knows how to complain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.types import Schema
from viewkeeper.arrow import arrow_schema
from viewkeeper.sources.postgres.codec import Codec, Parse, integer, text
from viewkeeper.sources.postgres.pgoutput import (
    BEGIN,
    BEGIN_BYTES,
    COMMIT,
    COMMIT_BYTES,
    DELETE,
    EPOCH_MICROSECONDS,
    INSERT,
    MICROSECONDS_MAX,
    MICROSECONDS_MIN,
    NEW,
    NULL,
    OLD_FULL,
    ROW_BYTES_MIN,
    TEXT,
    UPDATE,
)
from viewkeeper.sources.transaction_block import ChangedRows, Numbers

# The kinds of messages that can be read like this.
PLAIN = bytes((BEGIN, INSERT, UPDATE, DELETE, COMMIT))
# Rows that are worked on together: indices take many times the room of what they point to.
ROWS_AT_ONCE = 20_000

Bytes = npt.NDArray[np.uint8]


class NotPlain(Exception):
    """Something is there that has to be read one by one."""


class ColumnDecoder:
    """Rows of one relation; ``codecs`` has one entry per column of the stream, None to skip it."""

    def __init__(self, codecs: Sequence[Codec | None], schema: Schema) -> None:
        self.schema = schema
        self._codecs = tuple(codecs)
        self._fields = list(arrow_schema(schema))

    def rows(
        self, data: Bytes, starts: Numbers, ends: Numbers, kinds: Bytes, places: Numbers
    ) -> ChangedRows:
        """``starts`` and ``ends``: of the row messages, of these kinds, in transactions at these places."""
        parts = [
            self._rows(data, starts[n:end], ends[n:end], kinds[n:end], places[n:end])
            for n in range(0, len(starts), ROWS_AT_ONCE)
            for end in (n + ROWS_AT_ONCE,)
        ]
        if len(parts) == 1:
            return parts[0]
        return ChangedRows(
            self.schema,
            pa.concat_tables([part.rows for part in parts]),
            np.concatenate([part.places for part in parts]),
            np.concatenate([part.counts for part in parts]),
        )

    def _rows(
        self, data: Bytes, starts: Numbers, limits: Numbers, kinds: Bytes, places: Numbers
    ) -> ChangedRows:
        # Kind, oid, then the letter of the row that follows, and its number of columns.
        expected = np.where(kinds == INSERT, NEW, OLD_FULL)
        _require(data[starts + 5] == expected)
        columns, ends = self._tuples(data, starts + 6, limits)
        counts = np.where(kinds == INSERT, 1, -1)
        is_update = kinds == UPDATE
        _require((ends == limits) | is_update)
        updated = np.flatnonzero(is_update)
        if not len(updated):
            return self._changed(columns, places, counts)
        middle, limits = ends[updated], limits[updated]
        _require(middle + 3 <= limits)
        _require(data[middle] == NEW)
        newer, ends = self._tuples(data, middle + 1, limits)
        _require(ends == limits)
        # An update that changes nothing a view can see is no change.
        same = np.ones(len(updated), bool)
        for old, new in zip(columns, newer, strict=True):
            same &= _equal(old.take(pa.array(updated)), new)
        is_kept = np.ones(len(starts) + len(updated), bool)
        is_kept[updated[same]] = is_kept[len(starts) :][same] = False
        places = np.concatenate([places, places[updated]])
        counts = np.concatenate([counts, np.ones(len(updated), np.int64)])
        # Each new row behind the one that it took the place of.
        order = np.argsort(np.concatenate([np.arange(len(starts)), updated]), kind="stable")
        order = order[is_kept[order]]
        both = [
            pa.concat_arrays(pair).take(pa.array(order))
            for pair in zip(columns, newer, strict=True)
        ]
        return self._changed(both, places[order], counts[order])

    def _changed(self, columns: Sequence[Any], places: Numbers, counts: Numbers) -> ChangedRows:
        rows = pa.Table.from_arrays(columns, schema=pa.schema(self._fields))
        return ChangedRows(self.schema, rows, places, counts)

    def _tuples(self, data: Bytes, at: Numbers, limits: Numbers) -> tuple[list[pa.Array], Numbers]:
        """The values of the rows that begin there, by column, and where each row ends.

        A value is taken after it was seen to end before its message does: so no false length asks for
        memory. What is looked at before that lies at most five bytes behind a message, where data is.
        """
        _require(_number(data, at, 2) == len(self._codecs))
        at = at + 2
        columns = []
        fields = iter(self._fields)
        for codec in self._codecs:
            is_text = data[at] == TEXT
            _require(is_text | (data[at] == NULL))
            sizes = np.where(is_text, _number(data, at + 1, 4), 0)
            at = at + np.where(is_text, 5, 1)
            ends = at + sizes
            _require(ends <= limits)
            if codec is not None:
                texts = _texts(data, at, sizes, is_text)
                columns.append(_values(texts, codec.parse, next(fields).type))
            at = ends
        return columns, at


@dataclass(frozen=True, eq=False)
class Transactions:
    """What the messages of whole transactions say, by transaction, and the rows by relation."""

    xids: Numbers  # the lower 32 bits
    committed: Numbers  # microseconds since 1970
    ends: Numbers  # of their commit records
    changes: Mapping[str, ChangedRows]


def decoded(
    messages: Sequence[bytes],
    decoders: Mapping[int, tuple[str, ColumnDecoder]],
    special: int | None = None,
) -> Transactions:
    """Whole transactions, of messages of `PLAIN` kinds; ``decoders`` and names of relations by oid.

    ``special``: a relation whose rows have to be read one by one.
    """
    sizes = np.fromiter(map(len, messages), np.int64, len(messages))
    ends = np.cumsum(sizes)
    starts = ends - sizes
    # The end may be looked at as if a value's size stood there.
    data = np.frombuffer(b"".join([*messages, bytes(8)]), np.uint8)
    kinds = data[starts]
    begins, commits = starts[kinds == BEGIN], starts[kinds == COMMIT]
    # A transaction's place is the number of commits before it: each has its begin.
    places = np.cumsum(kinds == COMMIT) - (kinds == COMMIT)
    _require(np.cumsum(kinds == BEGIN) == places + 1)
    is_row = (kinds != BEGIN) & (kinds != COMMIT)
    wanted = np.where(kinds == BEGIN, BEGIN_BYTES, COMMIT_BYTES)
    _require(np.where(is_row, sizes >= ROW_BYTES_MIN, sizes == wanted))
    oids = _number(data, starts + 1, 4)
    if special is not None:
        _require(~(is_row & (oids == special)))
    changes: dict[str, ChangedRows] = {}
    for oid, (name, decoder) in decoders.items():
        mine = np.flatnonzero(is_row & (oids == oid))
        if len(mine):
            rows = decoder.rows(data, starts[mine], ends[mine], kinds[mine], places[mine])
            if len(rows):
                changes[name] = rows
    moments = _number(data, begins + 9, 8)
    _require((moments >= MICROSECONDS_MIN) & (moments <= MICROSECONDS_MAX))
    return Transactions(
        xids=_number(data, begins + 17, 4),
        committed=moments + EPOCH_MICROSECONDS,
        ends=_number(data, commits + 10, 8),
        changes=changes,
    )


def _require(holds: npt.NDArray[np.bool_]) -> None:
    if not holds.all():
        raise NotPlain


def _number(data: Bytes, at: Numbers, size: int) -> Numbers:
    """The big-endian numbers of this width in bytes that begin there."""
    found = np.zeros(len(at), np.int64)
    for offset in range(size):
        found = (found << 8) | data[at + offset]
    return found


def _texts(data: Bytes, at: Numbers, sizes: Numbers, is_text: npt.NDArray[np.bool_]) -> pa.Array:
    """The bytes that begin there; NULL where there is no text."""
    ends = np.cumsum(sizes)
    total = int(ends[-1])
    if total >= 2**31:
        raise NotPlain
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    found = data[np.repeat(at - offsets[:-1], sizes) + np.arange(total)]
    present = None
    if not is_text.all():
        present = pa.py_buffer(np.packbits(is_text, bitorder="little"))
    buffers = [present, pa.py_buffer(offsets), pa.py_buffer(found)]
    return pa.Array.from_buffers(pa.binary(), len(at), buffers)


def _values(texts: pa.Array, parse: Parse, type: pa.DataType) -> pa.Array:
    """What `codec` makes of each text."""
    try:
        at_once = _AT_ONCE.get(parse)
        if at_once is not None:
            return at_once(texts)
        if pa.types.is_decimal(type):
            return _decimals(texts, type)
        values = [None if text is None else parse(text) for text in texts.to_pylist()]
        return pa.array(values, type)
    except (ValueError, ArithmeticError) as error:  # Arrow's own are values' errors, too
        raise NotPlain from error


def _strings(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.string())


def _integers(texts: pa.Array) -> pa.Array:
    # Arrow would read hexadecimal digits, too.
    letters = np.frombuffer(texts.buffers()[2], np.uint8)
    _require(_IS_OF_INTEGER[letters])
    return _strings(texts).cast(pa.int64())


def _decimals(texts: pa.Array, type: pa.Decimal128Type) -> pa.Array:
    # Arrow would read exponents and fill up digits, too: a point, then as many digits as the type has.
    _, offsets, letters = texts.buffers()
    found = np.frombuffer(letters, np.uint8)
    _require(_IS_OF_DECIMAL[found])
    if type.scale:
        edges = np.frombuffer(offsets, np.int32, len(texts) + 1)
        sizes = np.diff(edges)
        is_text = sizes > 0
        _require(sizes[is_text] > type.scale)
        _require(found[edges[1:][is_text] - type.scale - 1] == _POINT)
    else:
        _require(found != _POINT)
    return _strings(texts).cast(type)


_POINT = ord(".")
_IS_OF_DECIMAL = np.isin(np.arange(256), np.frombuffer(b"-.0123456789", np.uint8))
_IS_OF_INTEGER = np.isin(np.arange(256), np.frombuffer(b"-0123456789", np.uint8))

# For the commonest types there is something that takes a whole column.
_AT_ONCE: dict[Parse, Callable[[pa.Array], pa.Array]] = {integer: _integers, text: _strings}


def _equal(left: pa.Array, right: pa.Array) -> npt.NDArray[np.bool_]:
    """Where two columns have the same value in canonical form."""
    same = pc.fill_null(pc.equal(left, right), False)
    same = pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
    if pa.types.is_floating(left.type):
        nans = pc.and_(pc.is_nan(left), pc.is_nan(right))
        same = pc.or_(same, pc.fill_null(nans, False))
    found: npt.NDArray[np.bool_] = same.to_numpy(zero_copy_only=False)
    return found
