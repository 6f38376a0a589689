"""Expressions as Spark SQL text.

The text means in Spark, ANSI mode, exactly what the tree means here, types included: an integer is a
BIGINT, a decimal has its declared precision, a NULL has a type. `viewkeeper.sql.parser` reads every
text that is printed here back to the same tree.

Knows expressions and their spelling, and nothing of views or of who runs the text.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import re
from collections.abc import Callable

from viewkeeper.algebra.expressions import (
    Aggregate,
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
from viewkeeper.algebra.types import Kind, Type, decimal_type

ColumnName = Callable[[str], str]


class Binding(enum.IntEnum):
    """How tightly a construct holds its parts; a looser one inside a tighter one needs parentheses."""

    OR = 1
    AND = 2
    NOT = 3
    PREDICATE = 4
    SUM = 5
    PRODUCT = 6
    SIGN = 7
    ATOM = 8


_ARITHMETIC = {
    "+": Binding.SUM,
    "-": Binding.SUM,
    "*": Binding.PRODUCT,
    "/": Binding.PRODUCT,
    "%": Binding.PRODUCT,
    "div": Binding.PRODUCT,
}

# Spark gives a 32-bit INT for these, we a BIGINT; it shows when the value meets a decimal.
_NARROW_RESULT = frozenset({"day", "length", "month", "year"})


def expression_sql(expression: Expression, column_name: ColumnName) -> str:
    """The expression as Spark SQL; ``column_name`` spells a column, quoted as the reader needs it."""
    return _Printer(column_name).text(expression)


def aggregate_sql(aggregate: Aggregate, column_name: ColumnName) -> str:
    """The call of an aggregate function, without its output name."""
    if aggregate.argument is None:
        return f"{aggregate.function}(*)"
    distinct = "DISTINCT " if aggregate.distinct else ""
    return f"{aggregate.function}({distinct}{expression_sql(aggregate.argument, column_name)})"


def quoted(name: str) -> str:
    """The name as an identifier in backticks, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


class _Printer:
    def __init__(self, column_name: ColumnName) -> None:
        self._column_name = column_name

    def text(self, expression: Expression, at_least: Binding = Binding.OR) -> str:
        """The text, in parentheses where it binds looser than ``at_least``."""
        text, binding = self._bound(expression)
        return text if binding >= at_least else f"({text})"

    def _bound(self, expression: Expression) -> tuple[str, Binding]:
        match expression:
            case Column(name):
                return self._column_name(name), Binding.ATOM
            case Literal():
                return _literal(expression)
            case Negate(operand):
                return "-" + self._negated(operand), Binding.SIGN
            case Arithmetic(operator, left, right):
                binding = _ARITHMETIC[operator]
                # Left-associative: an equally tight right side keeps its parentheses.
                tighter = Binding(binding + 1)
                return f"{self.text(left, binding)} {operator} {self.text(right, tighter)}", binding
            case Comparison(operator, left, right):
                sides = self._operand(left), self._operand(right)
                return f" {operator} ".join(sides), Binding.PREDICATE
            case And(operands):
                return self._connected("AND", operands, Binding.AND)
            case Or(operands):
                return self._connected("OR", operands, Binding.OR)
            case Not(operand):
                return self._denied(operand)
            case IsNull() | InList() | Like():
                return self._predicate(expression, ""), Binding.PREDICATE
            case Case():
                return self._case(expression), Binding.ATOM
            case Cast(operand, type):
                return _cast(self.text(operand), type), Binding.ATOM
            case Call():
                return self._call(expression), Binding.ATOM

    def _operand(self, expression: Expression) -> str:
        """The side of a predicate: chained predicates are always told apart by parentheses."""
        return self.text(expression, Binding.SUM)

    def _negated(self, operand: Expression) -> str:
        # -5 is a literal and -(5) the negation of one; and -- would start a comment.
        text = self.text(operand, Binding.ATOM)
        return f"({text})" if _is_number(operand) and text[0].isdigit() else text

    def _connected(
        self, word: str, operands: tuple[Expression, ...], binding: Binding
    ) -> tuple[str, Binding]:
        tighter = Binding(binding + 1)
        return f" {word} ".join(self.text(operand, tighter) for operand in operands), binding

    def _denied(self, operand: Expression) -> tuple[str, Binding]:
        if isinstance(operand, IsNull | InList | Like):
            return self._predicate(operand, "NOT "), Binding.PREDICATE
        return f"NOT {self.text(operand, Binding.ATOM)}", Binding.NOT

    def _predicate(self, expression: IsNull | InList | Like, negation: str) -> str:
        operand = self._operand(expression.operand)
        match expression:
            case IsNull():
                return f"{operand} IS {negation}NULL"
            case InList(_, options):
                listed = ", ".join(self.text(option) for option in options)
                return f"{operand} {negation}IN ({listed})"
            case Like(_, pattern):
                return f"{operand} {negation}LIKE {string_sql(pattern)}"

    def _case(self, expression: Case) -> str:
        parts = [
            f"WHEN {self.text(condition)} THEN {self.text(result)}"
            for condition, result in expression.branches
        ]
        if expression.otherwise is not None:
            parts.append(f"ELSE {self.text(expression.otherwise)}")
        return f"CASE {' '.join(parts)} END"

    def _call(self, call: Call) -> str:
        arguments = [self.text(argument) for argument in call.arguments]
        if call.function == "substring":
            # Spark takes positions as INT only and narrows a BIGINT by itself where it is constant.
            arguments[1:] = [
                text if _is_number(argument) else f"CAST({text} AS INT)"
                for argument, text in zip(call.arguments[1:], arguments[1:], strict=True)
            ]
        text = f"{call.function}({', '.join(arguments)})"
        return f"CAST({text} AS BIGINT)" if call.function in _NARROW_RESULT else text


def _is_number(expression: Expression) -> bool:
    return (
        isinstance(expression, Literal)
        and expression.value is not None
        and expression.type.is_numeric
    )


def type_sql(type: Type) -> str:
    """The type as a CAST names it."""
    return str(type).upper()


def _cast(text: str, type: Type) -> str:
    return f"CAST({text} AS {type_sql(type)})"


def _literal(literal: Literal) -> tuple[str, Binding]:
    text = _literal_text(literal)
    return text, Binding.SIGN if text.startswith("-") else Binding.ATOM


def _literal_text(literal: Literal) -> str:
    type = literal.type
    match literal.value:
        case None:
            return _cast("NULL", type)
        case bool(value):
            return "TRUE" if value else "FALSE"
        case int(value):
            return f"{value}L"
        case float(value):
            return _double(value)
        case decimal.Decimal():
            return _decimal(literal.value, type)
        case str(value):
            return string_sql(value)
        case bytes(value):
            return f"X'{value.hex().upper()}'"
        case dt.datetime() as value:
            word = "TIMESTAMP" if type.kind is Kind.TIMESTAMP else "TIMESTAMP_NTZ"
            instant = value if value.tzinfo is None else value.astimezone(dt.UTC)
            return f"{word}'{instant.isoformat(sep=' ')}'"
        case dt.date() as value:
            return f"DATE'{value.isoformat()}'"


def _double(value: float) -> str:
    if math.isfinite(value):
        return f"{value!r}D"
    name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return f"CAST('{name}' AS DOUBLE)"


def _decimal(value: decimal.Decimal, type: Type) -> str:
    text = format(value.quantize(decimal.Decimal(1).scaleb(-type.scale), context=_WIDE), "f")
    return text if natural_decimal(text) == type else _cast(f"'{text}'", type)


def natural_decimal(text: str) -> Type | None:
    """The type Spark gives a literal like ``-1.50``; None where it reads it as an integer."""
    match = re.fullmatch(r"-?(\d*)\.(\d*)", text)
    if match is None:
        return None
    whole, fraction = match[1].lstrip("0"), match[2]
    # Digits that only place the point do not count: 0.05 is decimal(2,2).
    return decimal_type(max(len(whole) + len(fraction), 1), len(fraction))


_WIDE = decimal.Context(prec=120)

_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def string_sql(text: str) -> str:
    """A string literal; backslash escapes as Spark reads them by default."""
    return "'" + "".join(map(_escaped, text)) + "'"


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    # Control characters and line separators would survive, but not every editor.
    if ord(character) < 0x20 or character in "\x7f\x85\u2028\u2029":
        return f"\\u{ord(character):04x}"
    return character
