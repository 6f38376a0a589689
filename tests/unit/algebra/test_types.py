"""One canonical form per value, and schemas that refuse what they can't hold."""

from __future__ import annotations

import copy
import datetime as dt
import math
import pickle
from decimal import Decimal

import pytest

from viewkeeper.algebra.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTEGER_MAX,
    LOCAL_TIMESTAMP,
    NAN,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    canonical,
    canonical_row,
    decimal_type,
)
from viewkeeper.errors import UsageError

EAST = dt.timezone(dt.timedelta(hours=2))


def test_every_nan_becomes_the_one_nan():
    assert canonical(float("nan"), DOUBLE) is NAN
    assert canonical(math.inf - math.inf, DOUBLE) is NAN


def test_negative_zero_becomes_zero():
    assert math.copysign(1, canonical(-0.0, DOUBLE)) == 1
    assert str(canonical(Decimal("-0.00"), decimal_type(4, 2))) == "0.00"


def test_a_decimal_takes_the_scale_of_its_column():
    assert str(canonical(Decimal("1.5"), decimal_type(6, 3))) == "1.500"
    assert canonical(Decimal("1E+2"), decimal_type(6, 0)) == Decimal(100)


def test_instants_are_held_in_utc_and_local_times_have_no_zone():
    at_two = dt.datetime(2024, 1, 1, 2, tzinfo=EAST)
    assert canonical(at_two, TIMESTAMP).isoformat() == "2024-01-01T00:00:00+00:00"
    assert canonical(dt.datetime(2024, 1, 1, 2), LOCAL_TIMESTAMP).tzinfo is None


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (INTEGER_MAX + 1, INTEGER),
        (True, INTEGER),
        (1, BOOLEAN),
        (1, DOUBLE),
        (1.0, INTEGER),
        (b"a", STRING),
        (Decimal("1.005"), decimal_type(6, 2)),
        (Decimal("10000"), decimal_type(6, 2)),
        (Decimal("1E+999999"), decimal_type(38, 0)),
        (Decimal("NaN"), decimal_type(6, 2)),
        (dt.datetime(2024, 1, 1), DATE),
        (dt.datetime(2024, 1, 1), TIMESTAMP),
        (dt.datetime(2024, 1, 1, tzinfo=EAST), LOCAL_TIMESTAMP),
        (dt.datetime(1, 1, 1, tzinfo=EAST), TIMESTAMP),
    ],
)
def test_a_value_of_another_type_is_refused(value, type):
    with pytest.raises(UsageError) as caught:
        canonical(value, type)
    assert caught.value.code == "wrong-value"


def test_null_is_a_value_of_every_type():
    assert canonical(None, INTEGER) is None


def test_a_row_must_have_as_many_values_as_there_are_columns():
    with pytest.raises(UsageError, match="2 values does not fit 1"):
        canonical_row((1, 2), Schema.of(a=INTEGER))


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (39, 0), (5, 6), (5, -1)])
def test_a_decimal_has_1_to_38_digits_and_no_more_behind_the_point(precision, scale):
    with pytest.raises(UsageError):
        decimal_type(precision, scale)


def test_two_columns_of_one_name_are_refused_by_name():
    with pytest.raises(UsageError, match="two columns named a"):
        Schema((Field("a", INTEGER), Field("b", INTEGER), Field("a", STRING)))


def test_an_unknown_column_is_refused_with_the_columns_there_are():
    with pytest.raises(UsageError) as caught:
        Schema.of(a=INTEGER, b=STRING).position("c")
    assert caught.value.detail == "the columns are a, b"


def test_names_that_differ_in_case_are_different_columns():
    assert Schema.of(a=INTEGER, A=STRING).type_of("A") == STRING


def test_a_schema_survives_copying_and_pickling():
    schema = Schema.of(a=INTEGER, b=decimal_type(5, 2))
    for other in (copy.deepcopy(schema), pickle.loads(pickle.dumps(schema))):
        assert other == schema
        assert other.position("b") == 1


def test_types_print_as_spark_spells_them():
    assert [str(t) for t in (INTEGER, LOCAL_TIMESTAMP, decimal_type(5, 2))] == [
        "bigint",
        "timestamp_ntz",
        "decimal(5,2)",
    ]
