"""The scalar functions a view may call, each with its typing rule and its meaning on plain values.

A function is here only when Spark computes the very same result; `tests/laws` compares them.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.casts import checked_integer
from viewkeeper.algebra.types import EXACT, INTEGER, STRING, Kind, Type
from viewkeeper.errors import InvariantViolated, UsageError

CommonType = Callable[[Type, Type], Type]

# Positions in a text are 32-bit integers in Spark.
SMALL_INTEGER_MIN, SMALL_INTEGER_MAX = -(2**31), 2**31 - 1


@dataclass(frozen=True)
class Function:
    """``strict``: NULL in gives NULL out, and ``apply`` never sees one."""

    name: str
    result_type: Callable[[Sequence[Type], CommonType], Type]
    apply: Callable[..., Any]
    strict: bool = True


def _fixed(name: str, result: Type, *parameters: frozenset[Kind]) -> Any:
    def rule(types: Sequence[Type], _: CommonType) -> Type:
        fits = len(types) == len(parameters) and all(
            type.kind in kinds for type, kinds in zip(types, parameters, strict=True)
        )
        if not fits:
            wanted = ", ".join("/".join(sorted(k.value for k in kinds)) for kinds in parameters)
            found = ", ".join(str(type) for type in types)
            raise UsageError(
                "wrong-arguments",
                f"{name} can't take these arguments",
                detail=f"expected {name}({wanted}), found {name}({found})",
            )
        return result

    return rule


def _all_alike(name: str, least: int, most: int | None = None) -> Any:
    def rule(types: Sequence[Type], common: CommonType) -> Type:
        if len(types) < least or (most is not None and len(types) > most):
            wanted = f"{least}" if most == least else f"at least {least}"
            raise UsageError(
                "wrong-arguments", f"{name} takes {wanted} arguments, not {len(types)}"
            )
        result = types[0]
        for type in types[1:]:
            result = common(result, type)
        return result

    return rule


def _concat_rule(types: Sequence[Type], _: CommonType) -> Type:
    for type in types:
        if type != STRING:
            raise UsageError(
                "wrong-arguments", f"concat takes text, not {type}", hint="CAST it to string"
            )
    return STRING


def _abs_rule(types: Sequence[Type], _: CommonType) -> Type:
    if len(types) != 1 or not types[0].is_numeric:
        raise UsageError("wrong-arguments", "abs takes one number")
    return types[0]


def _absolute(value: Any) -> Any:
    if isinstance(value, int):
        return checked_integer(abs(value))
    # Python's own abs would round a decimal to 28 digits.
    return EXACT.abs(value) if isinstance(value, decimal.Decimal) else abs(value)


def _substring(text: str, position: int, length: int | None = None) -> str:
    """Positions count from 1, negative ones from the end; out-of-range parts are cut off."""
    for number in (position, 0 if length is None else length):
        if not SMALL_INTEGER_MIN <= number <= SMALL_INTEGER_MAX:
            raise UsageError("integer-overflow", f"substring: {number} does not fit 32 bits")
    if position > 0:
        start = position - 1
    elif position < 0:
        start = len(text) + position
    else:
        start = 0
    end = len(text) if length is None else start + max(length, 0)
    return text[max(start, 0) : max(end, 0)]


def _substring_rule(types: Sequence[Type], common: CommonType) -> Type:
    integers = (_INTEGERS,) * max(1, min(2, len(types) - 1))
    rule: Any = _fixed("substring", STRING, _TEXT, *integers)
    result: Type = rule(types, common)
    return result


def _null_if_rule(types: Sequence[Type], common: CommonType) -> Type:
    """nullif(a, b) is a or NULL, so it has the type of a; but the two must be comparable."""
    _all_alike("nullif", 2, 2)(types, common)
    return types[0]


def _in_evaluation(*_: Any) -> Any:
    """For functions that must not evaluate all their arguments; `evaluation` knows them by name."""
    raise InvariantViolated("coalesce and nullif are evaluated from their expressions")


def _greatest(*values: Any) -> Any:
    present = [value for value in values if value is not None]
    return max(present, key=ordering_key) if present else None


def _least(*values: Any) -> Any:
    present = [value for value in values if value is not None]
    return min(present, key=ordering_key) if present else None


def same(left: Any, right: Any) -> bool:
    """Equality of two present values; one NaN equals another."""
    return bool(left == right) or (left != left and right != right)


def ordering_key(value: Any) -> Any:
    """Orders the values of one type as Spark does: NaN after every other double."""
    if isinstance(value, float):
        return (value != value, 0.0 if value != value else value)
    return value


_TEXT = frozenset({Kind.STRING})
_INTEGERS = frozenset({Kind.INTEGER})
_DAYS = frozenset({Kind.DATE, Kind.LOCAL_TIMESTAMP})

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("abs", _abs_rule, _absolute),
        Function("coalesce", _all_alike("coalesce", 1), _in_evaluation, strict=False),
        Function("concat", _concat_rule, lambda *texts: "".join(texts)),
        Function("day", _fixed("day", INTEGER, _DAYS), lambda day: day.day),
        Function("greatest", _all_alike("greatest", 2), _greatest, strict=False),
        Function("least", _all_alike("least", 2), _least, strict=False),
        Function("length", _fixed("length", INTEGER, _TEXT), len),
        Function("lower", _fixed("lower", STRING, _TEXT), str.lower),
        Function("month", _fixed("month", INTEGER, _DAYS), lambda day: day.month),
        Function("nullif", _null_if_rule, _in_evaluation, strict=False),
        Function("substring", _substring_rule, _substring),
        Function("trim", _fixed("trim", STRING, _TEXT), lambda text: text.strip(" ")),
        Function("upper", _fixed("upper", STRING, _TEXT), str.upper),
        Function("year", _fixed("year", INTEGER, _DAYS), lambda day: day.year),
    )
}


# These give one of their arguments, in the type common to all.
CHOOSING_FUNCTIONS = frozenset({"coalesce", "greatest", "least"})
