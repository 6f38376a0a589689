"""Expressions turned into plain Python functions of a row, with SQL's three-valued logic.

`compiled` checks the types once and returns a closure; the reference body evaluates nothing twice.
"""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from viewkeeper.algebra.casts import cast_value, checked_integer, rounded
from viewkeeper.algebra.expressions import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    null_if,
)
from viewkeeper.algebra.functions import (
    CHOOSING_FUNCTIONS,
    FUNCTIONS,
    ordering_key,
    same,
)
from viewkeeper.algebra.inference import common_type, type_of
from viewkeeper.algebra.like import LikePattern
from viewkeeper.algebra.types import EXACT, Kind, Row, Schema, Type, canonical
from viewkeeper.errors import UsageError

Evaluator = Callable[[Row], Any]


@lru_cache(maxsize=4096)
def compiled(expression: Expression, schema: Schema) -> Evaluator:
    """A function from a row of ``schema`` to the expression's value; raises UsageError on types."""
    result = type_of(expression, schema)
    evaluate = _compiled(expression, schema)
    if result.kind is not Kind.DOUBLE:
        return evaluate
    return lambda row: canonical(evaluate(row), result)


def holds(predicate: Expression, schema: Schema) -> Callable[[Row], bool]:
    """A function that says whether the predicate is true of a row; unknown (NULL) is not true."""
    evaluate = compiled(predicate, schema)
    return lambda row: evaluate(row) is True


def _compiled(expression: Expression, schema: Schema) -> Evaluator:
    def sub(part: Expression) -> Evaluator:
        return _compiled(part, schema)

    match expression:
        case Column(name):
            return operator.itemgetter(schema.position(name))
        case Literal(value, type):
            constant = canonical(value, type)
            return lambda row: constant
        case Negate(operand):
            # 0 − x, and not −x: the smallest integer has no opposite, and −0.0 must not arise.
            return _strict(_NEGATE[type_of(operand, schema).kind], sub(operand))
        case Arithmetic():
            return _arithmetic(expression, schema)
        case Comparison(symbol, left, right):
            common = common_type(type_of(left, schema), type_of(right, schema))
            return _comparison(symbol, _as(left, common, schema), _as(right, common, schema))
        case And(operands):
            return _connective([sub(operand) for operand in operands], decisive=False)
        case Or(operands):
            return _connective([sub(operand) for operand in operands], decisive=True)
        case Not(operand):
            return _strict(operator.not_, sub(operand))
        case IsNull(operand):
            inner = sub(operand)
            return lambda row: inner(row) is None
        case InList():
            return _in_list(expression, schema)
        case Like(operand, pattern):
            return _strict(LikePattern.of(pattern).matches, sub(operand))
        case Case():
            return _case(expression, schema)
        case Cast(operand, target):
            return _cast(sub(operand), type_of(operand, schema), target)
        case Call("nullif", (left, right)):
            return sub(null_if(left, right, type_of(left, schema)))
        case Call():
            return _call(expression, schema)


def _strict(function: Callable[[Any], Any], operand: Evaluator) -> Evaluator:
    def evaluate(row: Row) -> Any:
        value = operand(row)
        return None if value is None else function(value)

    return evaluate


_NEGATE: dict[Kind, Callable[[Any], Any]] = {
    Kind.INTEGER: lambda value: checked_integer(-value),
    Kind.DOUBLE: lambda value: 0.0 - value,
    # In a separate context: Python's default one would round to 28 digits.
    Kind.DECIMAL: lambda value: EXACT.subtract(decimal.Decimal(0), value),
}


def _cast(operand: Evaluator, source: Type, target: Type) -> Evaluator:
    return _strict(lambda value: cast_value(value, source, target), operand)


def _as(expression: Expression, target: Type, schema: Schema) -> Evaluator:
    """The expression's value in the type it is compared in."""
    source = type_of(expression, schema)
    evaluate = _compiled(expression, schema)
    if source == target or target.kind is not Kind.DOUBLE:
        # Integers and decimals of any scale compare exactly in Python as they are.
        return evaluate
    return _strict(float, evaluate)


def _connective(operands: list[Evaluator], *, decisive: bool) -> Evaluator:
    """AND is decided by one false operand, OR by one true one; else one unknown makes it unknown."""

    def evaluate(row: Row) -> bool | None:
        unknown = False
        for operand in operands:
            value = operand(row)
            if value is None:
                unknown = True
            elif value is decisive:
                return bool(value)
        return None if unknown else not decisive

    return evaluate


_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _comparison(symbol: str, left: Evaluator, right: Evaluator) -> Evaluator:
    if symbol == "<=>":
        return lambda row: _null_safe_equal(left(row), right(row))
    if symbol in ("=", "<>"):
        wanted = symbol == "="

        def equality(row: Row) -> bool | None:
            a, b = left(row), right(row)
            return None if a is None or b is None else same(a, b) is wanted

        return equality
    compare = _ORDERED[symbol]

    def ordered(row: Row) -> bool | None:
        a, b = left(row), right(row)
        if a is None or b is None:
            return None
        return compare(ordering_key(a), ordering_key(b))

    return ordered


def _null_safe_equal(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    return same(left, right)


def _in_list(expression: InList, schema: Schema) -> Evaluator:
    equalities = [
        _compiled(Comparison("=", expression.operand, option), schema)
        for option in expression.options
    ]
    return _connective(equalities, decisive=True)


def _case(expression: Case, schema: Schema) -> Evaluator:
    result = type_of(expression, schema)

    def arm(part: Expression) -> Evaluator:
        return _cast(_compiled(part, schema), type_of(part, schema), result)

    branches = [(_compiled(when, schema), arm(then)) for when, then in expression.branches]
    otherwise = arm(expression.otherwise) if expression.otherwise is not None else lambda row: None

    def evaluate(row: Row) -> Any:
        for condition, value in branches:
            if condition(row) is True:
                return value(row)
        return otherwise(row)

    return evaluate


def _call(expression: Call, schema: Schema) -> Evaluator:
    function = FUNCTIONS[expression.function]
    types = [type_of(argument, schema) for argument in expression.arguments]
    result = function.result_type(types, common_type)
    arguments = [_compiled(argument, schema) for argument in expression.arguments]
    if expression.function in CHOOSING_FUNCTIONS and any(type != result for type in types):
        # They bring their arguments to one type before they choose.
        arguments = [
            _cast(argument, type, result) for type, argument in zip(types, arguments, strict=True)
        ]
    apply = function.apply
    if expression.function == "coalesce":
        # Stops at the first value that is there: the next one may be what must not be evaluated.
        return lambda row: next((v for a in arguments if (v := a(row)) is not None), None)

    def evaluate(row: Row) -> Any:
        values = [argument(row) for argument in arguments]
        if function.strict and any(value is None for value in values):
            return None
        return apply(*values)

    return evaluate


def _arithmetic(expression: Arithmetic, schema: Schema) -> Evaluator:
    result = type_of(expression, schema)
    compute = _COMPUTE[result.kind][expression.operator]
    left, right = (_compiled(side, schema) for side in (expression.left, expression.right))
    bring = float if result.kind is Kind.DOUBLE else lambda value: value

    def evaluate(row: Row) -> Any:
        a, b = left(row), right(row)
        if a is None or b is None:
            return None
        if b == 0 and expression.operator in ("/", "%", "div"):
            raise UsageError(
                "division-by-zero",
                f"{a} {expression.operator} {b}: division by zero",
                hint="write nullif(divisor, 0) to get NULL instead",
            )
        value = compute(bring(a), bring(b))
        match result.kind:
            case Kind.INTEGER:
                return checked_integer(value)
            case Kind.DECIMAL:
                return rounded(decimal.Decimal(value), result)
            case _:
                return value

    return evaluate


def _integer_division(left: Any, right: Any) -> int:
    """Towards zero, as SQL does; Python's own division rounds down."""
    quotient = EXACT.divide_int(decimal.Decimal(left), decimal.Decimal(right))
    return int(quotient)


def _double_remainder(left: float, right: float) -> float:
    return math.nan if math.isinf(left) else math.fmod(left, right)


def _integer_remainder(left: int, right: int) -> int:
    return left - right * _integer_division(left, right)


def _exact(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: operation(decimal.Decimal(a), decimal.Decimal(b))


_COMPUTE: dict[Kind, dict[str, Callable[[Any, Any], Any]]] = {
    Kind.INTEGER: {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "%": _integer_remainder,
        "div": _integer_division,
    },
    Kind.DOUBLE: {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": operator.truediv,
        "%": _double_remainder,
    },
    Kind.DECIMAL: {
        "+": _exact(EXACT.add),
        "-": _exact(EXACT.subtract),
        "*": _exact(EXACT.multiply),
        "/": _exact(EXACT.divide),
        "%": _exact(EXACT.remainder),
    },
}
