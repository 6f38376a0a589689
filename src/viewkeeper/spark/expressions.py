"""Our expressions as Spark SQL text that Spark types and evaluates exactly as the algebra does.

`viewkeeper.views.spark_sql` spells an expression; here it is first made *explicit*: every conversion that
our typing rules imply becomes a CAST in the tree, so that nothing is left to Spark's own coercions,
which round where a common decimal type has no room for all digits.
"""

from __future__ import annotations

import datetime as dt
import decimal
import operator
from collections.abc import Callable

from viewkeeper.algebra.casts import double_room
from viewkeeper.algebra.expressions import (
    FALSE,
    TRUE,
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
from viewkeeper.algebra.functions import CHOOSING_FUNCTIONS
from viewkeeper.algebra.inference import arithmetic_operand_types, common_type, type_of
from viewkeeper.algebra.like import LikePattern, Piece
from viewkeeper.algebra.types import (
    BOOLEAN,
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    STRING,
    Kind,
    Schema,
    Type,
    canonical,
    decimal_type,
)
from viewkeeper.views.spark_sql import expression_sql, quoted

_INTEGER_AS_DECIMAL = decimal_type(20, 0)
_UNKNOWN = Literal(None, BOOLEAN)
_ZERO = Literal(0.0, DOUBLE)
_FIRST_DAY, _LAST_DAY = Literal(dt.date.min, DATE), Literal(dt.date.max, DATE)
_OTHER_YEAR = Literal("not from year 1 to 9999: ", STRING)


def value_sql(expression: Expression, schema: Schema) -> str:
    """The text of an expression whose value becomes a column; raises UsageError on types."""
    type_of(expression, schema)
    return expression_sql(_canonical_zero(explicit(expression, schema), expression, schema), quoted)


def predicate_sql(predicate: Expression, schema: Schema) -> str:
    """The text of a condition; raises UsageError on types."""
    type_of(predicate, schema)
    return expression_sql(explicit(predicate, schema), quoted)


def _canonical_zero(text: Expression, expression: Expression, schema: Schema) -> Expression:
    """A computed double may be −0.0, which a bag must not tell from 0.0: adding 0.0 makes it so."""
    if isinstance(expression, Column | Literal) or type_of(expression, schema) != DOUBLE:
        return text
    return Arithmetic("+", text, _ZERO)


def explicit(expression: Expression, schema: Schema) -> Expression:
    """The same expression with every implied conversion written out. It must be well typed."""

    def sub(part: Expression) -> Expression:
        return explicit(part, schema)

    match expression:
        case Column():
            return expression
        case Literal(value, type):
            return Literal(canonical(value, type), type)
        case Negate(operand):
            return Negate(sub(operand))
        case Arithmetic():
            return _arithmetic(expression, schema)
        case Comparison():
            return _comparison(expression, schema)
        case And(operands):
            return _connected(And, operands, schema)
        case Or(operands):
            return _connected(Or, operands, schema)
        case Not(operand):
            return Not(sub(operand))
        case IsNull(operand):
            return IsNull(sub(operand))
        case InList():
            return _in_list(expression, schema)
        case Like(operand, pattern):
            return _like(sub(operand), pattern)
        case Case():
            return _case(expression, schema)
        case Cast(operand, type):
            return _cast(sub(operand), type_of(operand, schema), type)
        case Call("nullif", (left, right)):
            return sub(null_if(left, right, type_of(left, schema)))
        case Call(name, arguments):
            if name in CHOOSING_FUNCTIONS:
                result = type_of(expression, schema)
                return Call(name, tuple(_as(part, result, schema) for part in arguments))
            return Call(name, tuple(sub(part) for part in arguments))


def _like(operand: Expression, pattern: str) -> Expression:
    """LIKE as it is where Spark searches for one piece; else in a form that does not backtrack.

    Spark makes a regular expression of it, with `.*` for each `%`: over a long text that tries all
    combinations of places. An atomic group keeps the leftmost place of each piece, which is enough.
    """
    pieces = LikePattern.of(pattern).pieces
    first, middle, last = pieces[0], pieces[1:-1], pieces[-1]
    if not middle or (len(middle) == 1 and not len(first) and not len(last)):
        return Like(operand, pattern)
    searched = "".join(f"(?>.*?{_java(piece)})" for piece in middle)
    regex = f"(?s)\\A{_java(first)}{searched}.*{_java(last)}\\z"
    return Call("rlike", (operand, Literal(regex, STRING)))


def _java(piece: Piece) -> str:
    """The piece as a regular expression of Java: every character by its number, `_` as any one."""
    return "".join("." if c is None else f"\\x{{{ord(c):x}}}" for c in piece.characters)


def _as(expression: Expression, target: Type, schema: Schema) -> Expression:
    inner = explicit(expression, schema)
    return inner if type_of(expression, schema) == target else Cast(inner, target)


def _cast(operand: Expression, source: Type, target: Type) -> Expression:
    match source.kind, target.kind:
        case Kind.DOUBLE, Kind.DECIMAL:
            # Without room for the digits of larger doubles Spark fails on them, as we do.
            room = double_room(target)
            return Cast(operand, room) if room == target else Cast(Cast(operand, room), target)
        case Kind.STRING, Kind.DATE:
            return Cast(_only_our_years(operand), target)
        case _:
            return Cast(operand, target)


def _only_our_years(text: Expression) -> Expression:
    """The text of a date; one of a year that we do not have is made a text that Spark refuses too."""
    day = Cast(text, DATE)
    ours = (Comparison(">=", day, _FIRST_DAY), Comparison("<=", day, _LAST_DAY))
    return Case(((And(ours), text),), Call("concat", (_OTHER_YEAR, text)))


def _connected(
    connective: type[And] | type[Or], operands: tuple[Expression, ...], schema: Schema
) -> Expression:
    match operands:
        case ():
            return TRUE if connective is And else FALSE
        case (one,):
            return explicit(one, schema)
        case _:
            return connective(tuple(explicit(part, schema) for part in operands))


def _arithmetic(expression: Arithmetic, schema: Schema) -> Expression:
    result = type_of(expression, schema)
    left, right = expression.left, expression.right
    if result.kind is Kind.INTEGER:
        return Arithmetic(expression.operator, explicit(left, schema), explicit(right, schema))
    if result == DOUBLE:
        return Arithmetic(
            expression.operator, _as(left, DOUBLE, schema), _as(right, DOUBLE, schema)
        )
    types = arithmetic_operand_types(expression, schema)
    as_decimals = (_INTEGER_AS_DECIMAL if t.kind is Kind.INTEGER else t for t in types)
    sides = (_as(part, t, schema) for part, t in zip((left, right), as_decimals, strict=True))
    return Arithmetic(expression.operator, *sides)


def _case(expression: Case, schema: Schema) -> Expression:
    result = type_of(expression, schema)
    return Case(
        tuple(
            (explicit(condition, schema), _as(value, result, schema))
            for condition, value in expression.branches
        ),
        None if expression.otherwise is None else _as(expression.otherwise, result, schema),
    )


def _in_list(expression: InList, schema: Schema) -> Expression:
    parts = (expression.operand, *expression.options)
    if not expression.options:
        return FALSE
    common = type_of(expression.operand, schema)
    for part in parts:
        if not _is_lossless(common, type_of(part, schema)):
            equalities = (Comparison("=", expression.operand, o) for o in expression.options)
            return _connected(Or, tuple(equalities), schema)
        common = common_type(common, type_of(part, schema))
    # A long list is looked up by hashing, and there −0.0 is another value than 0.0.
    first, *rest = (
        _canonical_zero(_as(part, common, schema), part, schema)
        if common == DOUBLE
        else _as(part, common, schema)
        for part in parts
    )
    return InList(first, tuple(rest))


# -- comparisons -----------------------------------------------------------------------------------


def _comparison(expression: Comparison, schema: Schema) -> Expression:
    left, right = (type_of(side, schema) for side in (expression.left, expression.right))
    if not _is_lossless(left, right):
        return _wide_comparison(expression, schema)
    common = common_type(left, right)
    return Comparison(
        expression.operator,
        _as(expression.left, common, schema),
        _as(expression.right, common, schema),
    )


def _is_lossless(left: Type, right: Type) -> bool:
    """Whether the type in which the two are compared has room for all digits of both."""
    if left == right or DOUBLE in (left, right) or not (left.is_numeric and right.is_numeric):
        return True
    common = common_type(left, right)
    return common.scale == max(left.scale, right.scale)


_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_VERDICTS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "<=>": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _wide_comparison(expression: Comparison, schema: Schema) -> Expression:
    """Compare exactly where no decimal type holds all digits of both sides.

    The side with the finer scale s has at most 38 − s digits before the point. So the coarser side
    either fits decimal(38, s), where the two compare exactly, or its sign decides.
    """
    symbol, fine, coarse = expression.operator, expression.left, expression.right
    if type_of(fine, schema).scale < type_of(coarse, schema).scale:
        symbol, fine, coarse = _MIRRORED.get(symbol, symbol), coarse, fine
    scale = type_of(fine, schema).scale
    whole = DECIMAL_PRECISION_MAX - scale
    bound = decimal.Decimal(10) ** whole
    bound_type = decimal_type(whole + 1, 0)
    room = decimal_type(DECIMAL_PRECISION_MAX, scale)
    verdict = _VERDICTS[symbol]
    too_large = Comparison(">=", coarse, Literal(bound, bound_type))
    too_small = Comparison("<=", coarse, Literal(-bound, bound_type))
    return Case(
        (
            (
                IsNull(explicit(fine, schema)),
                IsNull(explicit(coarse, schema)) if symbol == "<=>" else _UNKNOWN,
            ),
            (explicit(too_large, schema), Literal(verdict(0, 1), BOOLEAN)),
            (explicit(too_small, schema), Literal(verdict(0, -1), BOOLEAN)),
        ),
        Comparison(symbol, _as(fine, room, schema), _as(coarse, room, schema)),
    )
