"""Constants of the syntax tree: which nodes are literals, and what they are worth.

`viewkeeper.sql.expressions.literals` knows the spelling, this file where in the tree and the text it stands.
"""

from __future__ import annotations

import re

from sqlglot import exp

from viewkeeper.algebra.expressions import Expression, Literal
from viewkeeper.algebra.types import BOOLEAN, STRING, Type
from viewkeeper.sql.expressions import literals
from viewkeeper.sql.sqltext import SqlText

_SUFFIXED = re.compile(r"((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(BD|[LSYDF])\b", re.IGNORECASE)


def is_null(node: exp.Expr) -> bool:
    return isinstance(node, exp.Null)


def is_string(node: exp.Expr) -> bool:
    return isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string)


def constant(text: SqlText, node: exp.Expr) -> Literal:
    """A literal node's value and type; raises UsageError, with the place."""
    with text.locating(node):
        match node:
            case exp.Boolean():
                return Literal(bool(node.this), BOOLEAN)
            case exp.HexString():
                return literals.binary(text.raw(node) or f"X'{node.this}'")
            case exp.Literal() if not node.is_string:
                return literals.number(str(node.this))
            case _:
                raw = text.raw(node)
                return Literal(str(node.this) if raw is None else literals.string(raw), STRING)


def number_written(text: SqlText, node: exp.Expr) -> tuple[str | None, str]:
    """Digits and suffix, if the node is a numeric literal; ``5L`` reaches us as a cast."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return str(node.this), ""
    if type(node) is exp.Cast and isinstance(node.this, exp.Literal):
        written = _SUFFIXED.match(text.text, node.this.meta.get("start", 0))
        if written is not None and not node.this.is_string:
            return written[1], written[2]
    return None, ""


def text_of(expression: Expression) -> str:
    """The value of a string literal."""
    return str(expression.value) if isinstance(expression, Literal) else ""


def type_written(node: exp.Expr) -> Type:
    """The type that a CAST names; raises UsageError where a view has no such type."""
    name = node.this.value if isinstance(node.this, exp.DType) else str(node.this)
    return literals.type_named(str(name), [str(part.this.this) for part in node.expressions])
