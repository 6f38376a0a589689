import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from viewkeeper.algebra.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LOCAL_TIMESTAMP,
    NAN,
    STRING,
    TIMESTAMP,
    Schema,
    canonical_row,
    decimal_type,
)
from viewkeeper.arrow import arrow_schema, batch_of, rows_of
from viewkeeper.errors import UsageError

SCHEMA = Schema.of(
    i=INTEGER, d=DOUBLE, n=decimal_type(10, 2), s=STRING, b=BOOLEAN, y=BINARY, day=DATE,
    at=TIMESTAMP, local=LOCAL_TIMESTAMP,
)  # fmt: skip
ROW = canonical_row(
    (
        2**63 - 1, NAN, Decimal("1.5"), "héllo 🦊", True, b"\x00\xff", dt.date(1, 1, 1),
        dt.datetime(2024, 2, 29, 12, 0, 0, 1, dt.timezone(dt.timedelta(hours=3))),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    ),
    SCHEMA,
)  # fmt: skip


def test_rows_come_back_from_arrow_as_they_were():
    rows = [ROW, (None,) * len(SCHEMA)]
    back = rows_of(batch_of(rows, SCHEMA), SCHEMA)
    assert back == rows
    assert back[0][1] is NAN
    assert back[0][7].tzinfo is dt.UTC


def test_negative_zero_becomes_zero():
    schema = Schema.of(d=DOUBLE)
    (row,) = rows_of(pa.record_batch([pa.array([-0.0])], names=["d"]), schema)
    assert math.copysign(1, row[0]) == 1


def test_no_rows_and_no_columns_have_their_batches_too():
    assert rows_of(batch_of([], SCHEMA), SCHEMA) == []
    assert batch_of([], SCHEMA).schema == arrow_schema(SCHEMA)


def test_a_batch_of_other_types_is_refused():
    with pytest.raises(UsageError, match="does not fit"):
        rows_of(pa.record_batch([pa.array([1], pa.int32())], names=["i"]), Schema.of(i=INTEGER))
