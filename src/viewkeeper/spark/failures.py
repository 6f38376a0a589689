"""What Spark raises, turned into errors for people: the same codes as the reference body has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from viewkeeper.errors import InvariantViolated, UsageError

# Spark's error conditions that a value can cause, and what the reference body calls them.
_CODES = {
    "DIVIDE_BY_ZERO": "division-by-zero",
    "REMAINDER_BY_ZERO": "division-by-zero",
    "ARITHMETIC_OVERFLOW": "integer-overflow",
    "BINARY_ARITHMETIC_OVERFLOW": "integer-overflow",
    "CAST_OVERFLOW": "integer-overflow",
    "CAST_INVALID_INPUT": "bad-cast",
    "NUMERIC_VALUE_OUT_OF_RANGE": "decimal-overflow",
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": "decimal-overflow",
    "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION": "decimal-overflow",
}

_HINTS = {
    "division-by-zero": "write nullif(divisor, 0) to get NULL instead",
    "integer-overflow": "CAST to a wider type, such as decimal(38,0)",
    "decimal-overflow": "CAST to a decimal with more digits before the point",
}

# What `SparkRelation` makes Spark raise when a promise of its callers is broken.
BROKEN_PROMISE = "USER_RAISED_EXCEPTION"


@contextmanager
def translated() -> Iterator[None]:
    """Around every action: a failing query raises UsageError or InvariantViolated, nothing else."""
    try:
        yield
    except PySparkException as failure:
        raise _error_for(failure) from failure


def _error_for(failure: PySparkException) -> UsageError | InvariantViolated:
    condition = failure.getCondition() or ""
    if condition == BROKEN_PROMISE:
        parameters = failure.getMessageParameters() or {}
        return InvariantViolated(parameters.get("errorMessage", str(failure)))
    first_line = str(failure).strip().splitlines()[0]
    code = _CODES.get(condition.split(".")[0])
    if code is None:
        return UsageError("spark-query-failed", "Spark could not run the query", detail=first_line)
    return UsageError(
        code,
        "a value breaks an expression of the query",
        detail=first_line,
        hint=_HINTS.get(code, ""),
    )
