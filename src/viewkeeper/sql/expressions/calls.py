"""Calls of functions: which there are, under which names Spark also knows them, and which are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeeper.algebra.expressions import (
    AGGREGATE_FUNCTIONS,
    Call,
    Expression,
)
from viewkeeper.algebra.functions import FUNCTIONS
from viewkeeper.algebra.types import INTEGER
from viewkeeper.errors import nearest
from viewkeeper.sql.refusals import (
    NOT_DETERMINISTIC,
    OTHER_AGGREGATES,
    TABLE_FUNCTIONS,
    refused_generator,
    refused_not_deterministic,
)
from viewkeeper.views.names import listed

if TYPE_CHECKING:
    from viewkeeper.sql.expressions.translation import Translator

_SYNONYMS = {
    "char_length": "length",
    "character_length": "length",
    "dayofmonth": "day",
    "ifnull": "coalesce",
    "lcase": "lower",
    "len": "length",
    "mean": "avg",
    "nvl": "coalesce",
    "substr": "substring",
    "ucase": "upper",
}

# Their results are 32-bit in Spark; printed with a CAST around them, which must vanish again.
_NARROW = ("day", "length", "month", "year")
_ALIKE = ("coalesce", "greatest", "least", "nullif")


def function_name(node: exp.Expr) -> str | None:
    """The canonical lower-case name of the function that is called, if the node is a call."""
    match node:
        case exp.Anonymous():
            name = node.name.lower()
            return _SYNONYMS.get(name, name)
        case exp.Trim() if not node.args.get("expression") and not node.args.get("position"):
            return "trim"
        case exp.Substring():
            return "substring"
        case exp.Extract() if node.name.lower() in ("year", "month", "day"):
            return node.name.lower()
        case _:
            return None


def is_aggregate(node: exp.Expr) -> bool:
    return function_name(node) in AGGREGATE_FUNCTIONS


def is_narrow_call(node: exp.Expr) -> bool:
    return function_name(node) in _NARROW


def call_of(translator: Translator, node: exp.Expr) -> Expression | None:
    """The call as an expression; None where the node is no call. Raises UsageError."""
    name = function_name(node)
    if name is None:
        return None
    if name in AGGREGATE_FUNCTIONS:
        return translator.aggregate(node)
    if name not in FUNCTIONS:
        raise _unknown(translator, node, name)
    arguments = arguments_of(node)
    if name in _ALIKE and arguments:
        return Call(name, tuple(translator.together(arguments)))
    if name == "substring":
        return Call(name, tuple(_substring(translator, arguments)))
    return Call(name, tuple(translator.translated(argument) for argument in arguments))


def arguments_of(node: exp.Expr) -> list[exp.Expr]:
    match node:
        case exp.Anonymous():
            return list(node.expressions)
        case exp.Extract():
            return [node.expression]
        case _:
            parts = (node.this, node.args.get("start"), node.args.get("length"))
            return [part for part in parts if part is not None]


def _substring(translator: Translator, arguments: list[exp.Expr]) -> list[Expression]:
    """Positions lose the CAST to INT that the printed text gives them."""
    text, *positions = arguments
    values = [translator.translated(text)]
    for position in positions:
        if isinstance(position, exp.Cast) and position.to.this == exp.DType.INT:
            value = translator.translated(position.this)
            if translator.type(value) == INTEGER:
                values.append(value)
                continue
        values.append(translator.translated(position))
    return values


def _unknown(translator: Translator, node: exp.Expr, name: str) -> Exception:
    text = translator.text
    if name in NOT_DETERMINISTIC:
        return refused_not_deterministic(text, node, name)
    if name in TABLE_FUNCTIONS:
        return refused_generator(text, node, name)
    if name in OTHER_AGGREGATES:
        return text.error(
            "unsupported-aggregate",
            f"the aggregate {name} is not supported",
            node,
            hint=f"there are {listed(AGGREGATE_FUNCTIONS)}; keep the rows and compute {name} "
            "when you query the view",
        )
    close = nearest(name, (*FUNCTIONS, *AGGREGATE_FUNCTIONS, *_SYNONYMS))
    return text.error(
        "unknown-function",
        f"a view can't call the function {name}",
        node,
        detail=f"the functions are {listed((*FUNCTIONS, *AGGREGATE_FUNCTIONS), most=40)}",
        hint=f"did you mean {close}?"
        if close
        else "compute it in the source or when you query the view",
    )
