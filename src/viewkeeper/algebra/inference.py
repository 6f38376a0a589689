"""The type of an expression, by Spark's ANSI rules where we accept it, and a clear refusal elsewhere.

Stricter than Spark in one respect: nothing is converted between text and other types without a CAST,
because the databases that answer parts of a view disagree about such conversions.
"""

from __future__ import annotations

from viewkeeper.algebra.casts import require_castable
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
)
from viewkeeper.algebra.functions import FUNCTIONS
from viewkeeper.algebra.types import (
    BOOLEAN,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER,
    STRING,
    Kind,
    Schema,
    Type,
    decimal_type,
)
from viewkeeper.errors import UsageError

# A 64-bit integer as a decimal, and the scale Spark never gives up when precision runs out.
INTEGER_AS_DECIMAL = decimal_type(20, 0)
MINIMUM_KEPT_SCALE = 6


def type_of(expression: Expression, schema: Schema) -> Type:
    """The type that ``expression`` has over ``schema``; raises UsageError where it has none."""
    match expression:
        case Column(name):
            return schema.type_of(name)
        case Literal(_, type):
            return type
        case Cast(operand, type):
            require_castable(type_of(operand, schema), type)
            return type
        case Negate(operand):
            return _numeric(type_of(operand, schema), "-")
        case Arithmetic(operator):
            return arithmetic_type(operator, *arithmetic_operand_types(expression, schema))
        case Comparison(_, left, right):
            common_type(type_of(left, schema), type_of(right, schema))
            return BOOLEAN
        case And(operands) | Or(operands):
            for operand in operands:
                _boolean(type_of(operand, schema))
            return BOOLEAN
        case Not(operand):
            return _boolean(type_of(operand, schema))
        case IsNull(operand):
            type_of(operand, schema)
            return BOOLEAN
        case InList(operand, options):
            _common([operand, *options], schema)
            return BOOLEAN
        case Like(operand, _):
            if type_of(operand, schema) != STRING:
                raise _mismatch("LIKE needs text", type_of(operand, schema), STRING)
            return BOOLEAN
        case Case(branches, otherwise):
            for condition, _ in branches:
                _boolean(type_of(condition, schema))
            results = [result for _, result in branches]
            return _common(results if otherwise is None else [*results, otherwise], schema)
        case Call(name, arguments):
            if name not in FUNCTIONS:
                raise UsageError("unknown-function", f"there is no function {name}")
            types = [type_of(argument, schema) for argument in arguments]
            return FUNCTIONS[name].result_type(types, common_type)


def common_type(left: Type, right: Type) -> Type:
    """The type in which two values are compared or brought together."""
    if left == right:
        return left
    kinds = {left.kind, right.kind}
    if left.is_numeric and right.is_numeric:
        if Kind.DOUBLE in kinds:
            return DOUBLE
        a, b = _as_decimal(left), _as_decimal(right)
        whole = max(a.precision - a.scale, b.precision - b.scale)
        scale = min(max(a.scale, b.scale), DECIMAL_PRECISION_MAX - whole)
        return decimal_type(whole + scale, scale)
    raise _mismatch("values of different types can't be compared or combined", left, right)


def arithmetic_operand_types(expression: Arithmetic, schema: Schema) -> tuple[Type, Type]:
    """The types of the two operands as arithmetic takes them.

    An integer constant beside a decimal has just the digits it is written with, as in Spark; else
    ``price / 2`` would get twenty digits of scale for the largest integer there is.
    """
    left, right = (type_of(side, schema) for side in (expression.left, expression.right))
    if left.kind is Kind.DECIMAL:
        right = _constant_as_decimal(expression.right) or right
    elif right.kind is Kind.DECIMAL:
        left = _constant_as_decimal(expression.left) or left
    return left, right


def _constant_as_decimal(expression: Expression) -> Type | None:
    match expression:
        case Literal(int(value), type) if type == INTEGER:
            return decimal_type(len(str(abs(value))), 0)
        case _:
            return None


def arithmetic_type(operator: str, left: Type, right: Type) -> Type:
    """The type of ``left operator right``."""
    for side in (left, right):
        _numeric(side, operator)
    if operator == "div":
        if left != INTEGER or right != INTEGER:
            # Spark refuses doubles, and its quotient of large decimals wraps around in silence.
            raise _mismatch("div needs integers on both sides", left, right)
        return INTEGER
    if Kind.DOUBLE in (left.kind, right.kind):
        return DOUBLE
    if left.kind is Kind.INTEGER and right.kind is Kind.INTEGER:
        return DOUBLE if operator == "/" else INTEGER
    return _decimal_result(operator, _as_decimal(left), _as_decimal(right))


def _decimal_result(operator: str, a: Type, b: Type) -> Type:
    whole_a, whole_b = a.precision - a.scale, b.precision - b.scale
    match operator:
        case "+" | "-":
            scale = max(a.scale, b.scale)
            return _bounded(max(whole_a, whole_b) + scale + 1, scale)
        case "*":
            return _bounded(a.precision + b.precision + 1, a.scale + b.scale)
        case "/":
            scale = max(MINIMUM_KEPT_SCALE, a.scale + b.precision + 1)
            return _bounded(whole_a + b.scale + scale, scale)
        case _:
            scale = max(a.scale, b.scale)
            return _bounded(min(whole_a, whole_b) + scale, scale)


def _bounded(precision: int, scale: int) -> Type:
    """Spark's way to stay within 38 digits: digits before the point win, down to six behind it."""
    if precision <= DECIMAL_PRECISION_MAX:
        return decimal_type(precision, scale)
    whole = precision - scale
    kept = max(DECIMAL_PRECISION_MAX - whole, min(scale, MINIMUM_KEPT_SCALE))
    return decimal_type(DECIMAL_PRECISION_MAX, kept)


def _as_decimal(type: Type) -> Type:
    return INTEGER_AS_DECIMAL if type.kind is Kind.INTEGER else type


def _common(expressions: list[Expression], schema: Schema) -> Type:
    result = type_of(expressions[0], schema)
    for expression in expressions[1:]:
        result = common_type(result, type_of(expression, schema))
    return result


def _numeric(type: Type, operator: str) -> Type:
    if not type.is_numeric:
        raise UsageError(
            "type-mismatch",
            f"{operator} needs numbers, and this is a {type}",
            hint="CAST it to a number",
        )
    return type


def _boolean(type: Type) -> Type:
    if type != BOOLEAN:
        raise UsageError(
            "type-mismatch",
            f"a condition must be a boolean, and this is a {type}",
            hint="compare it with something",
        )
    return type


def _mismatch(what: str, left: Type, right: Type) -> UsageError:
    return UsageError(
        "type-mismatch",
        what,
        detail=f"one side is {left}, the other {right}",
        hint="CAST one side to the type of the other",
    )
