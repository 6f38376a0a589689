"""Prepared statements: parameters travel beside the text, and values come back in binary form.

PyMySQL writes parameters into the text and reads values as text, where a FLOAT loses digits. The few
packets of the prepared-statement protocol are spoken here over its connection instead.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.constants import COMMAND
from pymysql.protocol import FieldDescriptorPacket

from viewkeeper.algebra.types import Row, Schema
from viewkeeper.errors import invariant
from viewkeeper.sources.mariadb.binlog import Reader
from viewkeeper.sources.mariadb.codec import result_reader
from viewkeeper.sources.mariadb.connection import Link
from viewkeeper.sources.wire import Malformed

_UNSIGNED = 32
_PREPARED = struct.Struct("<BIHHBH")
_LONGLONG, _DOUBLE, _VAR_STRING, _BLOB, _NULL = 8, 5, 253, 252, 6


@dataclass(frozen=True)
class ResultColumn:
    """How the server describes one column of a result."""

    name: str
    type: int
    unsigned: bool
    collation: int
    decimals: int


def execute(
    link: Link,
    sql: str,
    parameters: Sequence[Any],
    schema: Schema,
    charsets: dict[int, str],
    batch_rows: int,
) -> Iterator[list[Row]]:
    """The rows of ``sql`` (with ``?`` for parameters), as ``schema`` types them, in lists.

    The connection is taken until the iterator is exhausted or closed.
    """
    statement = _prepare(link, sql, len(parameters))
    finished = False
    try:
        link._execute_command(COMMAND.COM_STMT_EXECUTE, _execution(statement, parameters))
        columns = _result_columns(link)
        invariant(len(columns) == len(schema), "a query gives other columns than its schema has")
        readers = tuple(
            result_reader(c.type, c.unsigned, charsets.get(c.collation, ""), c.decimals, f.type)
            for c, f in zip(columns, schema, strict=True)
        )
        yield from _batches(link, readers, batch_rows)
        finished = True
    finally:
        if not finished:
            # Rows that were not taken are still on their way: the session is of no more use.
            link._force_close()
        else:
            _close(link, statement)


def _prepare(link: Link, sql: str, parameters: int) -> int:
    link._execute_command(COMMAND.COM_STMT_PREPARE, sql)
    packet = link._read_packet()
    head = packet.get_all_data()
    if len(head) < _PREPARED.size:
        raise Malformed(f"an answer of {len(head)} bytes does not name a statement")
    _, statement, columns, expected, _, _ = _PREPARED.unpack_from(head)
    for count in (expected, columns):
        for _ in range(count + 1 if count else 0):  # each list ends with an EOF packet
            link._read_packet()
    invariant(expected == parameters, f"{parameters} parameters for a query that takes {expected}")
    return int(statement)


def _close(link: Link, statement: int) -> None:
    link._execute_command(COMMAND.COM_STMT_CLOSE, struct.pack("<I", statement))


def _execution(statement: int, parameters: Sequence[Any]) -> bytes:
    head = struct.pack("<IBI", statement, 0, 1)
    if not parameters:
        return head
    nulls = sum(1 << index for index, value in enumerate(parameters) if value is None)
    types, values = b"", []
    for value in parameters:
        type_, data = _encoded(value)
        types += struct.pack("<H", type_)
        values.append(data)
    bitmap = nulls.to_bytes((len(parameters) + 7) // 8, "little")
    return head + bitmap + b"\x01" + types + b"".join(values)


def _encoded(value: Any) -> tuple[int, bytes]:
    """(type, bytes) of a parameter. Dates and decimals go as text, which the server reads exactly."""
    match value:
        case None:
            return _NULL, b""
        case bool() | int() if -(2**63) <= value < 2**63:
            return _LONGLONG, struct.pack("<q", value)
        case float():
            return _DOUBLE, struct.pack("<d", value)
        case bytes():
            return _BLOB, _length_coded(value)
    return _VAR_STRING, _length_coded(str(value).encode())


def _length_coded(data: bytes) -> bytes:
    size = len(data)
    if size < 251:
        return bytes([size]) + data
    if size < 1 << 16:
        return b"\xfc" + struct.pack("<H", size) + data
    if size < 1 << 24:
        return b"\xfd" + struct.pack("<I", size)[:3] + data
    return b"\xfe" + struct.pack("<Q", size) + data


def _result_columns(link: Link) -> list[ResultColumn]:
    count = link._read_packet().read_length_encoded_integer()
    columns = []
    for _ in range(count):
        field = link._read_packet(FieldDescriptorPacket)
        unsigned = bool(field.flags & _UNSIGNED)
        columns.append(
            ResultColumn(field.name, field.type_code, unsigned, field.charsetnr, field.scale)
        )
    link._read_packet()  # EOF
    return columns


def _batches(link: Link, readers: tuple[Reader, ...], batch_rows: int) -> Iterator[list[Row]]:
    # Two bits are kept free in front of the bits that mark NULLs.
    masks = [(reader, 1 << index + 2) for index, reader in enumerate(readers)]
    start = 1 + (len(readers) + 9) // 8
    batch: list[Row] = []
    packet = link._rfile.packet
    while True:
        data = packet()
        if data[:1] == b"\xfe" and len(data) < 9:
            break
        batch.append(_row(data, start, masks))
        if len(batch) == batch_rows:
            yield batch
            batch = []
    if batch:
        yield batch


def _row(data: bytes, start: int, masks: Sequence[tuple[Reader, int]]) -> Row:
    """One packet's row, which ends where the packet does."""
    if data[:1] != b"\0" or len(data) < start:
        raise Malformed(f"a packet of {len(data)} bytes is no row")
    nulls, at = int.from_bytes(data[1:start], "little"), start
    values: list[Any] = []
    try:
        for reader, mask in masks:
            if nulls & mask:
                values.append(None)
            else:
                value, at = reader(data, at)
                values.append(value)
    except (IndexError, ValueError, ArithmeticError, struct.error) as error:
        raise Malformed(f"a row of {len(data)} bytes can't be read: {error}") from error
    if at != len(data):
        raise Malformed(f"a row ends at byte {at} of {len(data)}")
    return tuple(values)
