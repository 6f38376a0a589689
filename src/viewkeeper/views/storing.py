"""A definition as one line of text that gives back the very same definition.

SQL text is for people, and not every definition has one that reads back: steps say more than SELECT can,
and what a schema change made of them stands in no file. So a definition is also kept as what it is, a
tree of plain data: every node with the name of its class and those fields that differ from their default.
A later version of the program may have more fields; what it does not understand it refuses.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import enum
import json
import zlib
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args

from viewkeeper.algebra.expressions import Aggregate, Expression, Output
from viewkeeper.algebra.types import NAN, Field, Kind, Schema, Type
from viewkeeper.errors import UsageError
from viewkeeper.inflating import inflated
from viewkeeper.views.definition import (
    Grouping,
    Occurrence,
    RelationName,
    Step,
    Term,
    ViewDefinition,
)
from viewkeeper.views.level import Level

_NODES: dict[str, type[Any]] = {
    node.__name__: node
    for node in (
        *(ViewDefinition, Step, Term, Grouping, Occurrence, RelationName, Output, Aggregate),
        *(Schema, Field, Type),
        *get_args(Expression),
    )
}
_CHOICES: dict[str, type[enum.Enum]] = {"Level": Level, "Kind": Kind}
# Values of literals that JSON has no form for, and how each is read back.
_VALUES: dict[str, Any] = {
    "float": lambda text: NAN if text == "nan" else float(text),
    "decimal": decimal.Decimal,
    "bytes": bytes.fromhex,
    "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
}
_IS = "is"
# Uncompressed; the longest definitions of people have some kilobytes.
TEXT_BYTES_MAX = 16 * 2**20


def definition_as_text(definition: ViewDefinition) -> str:
    """The definition for `definition_from_text`."""
    told = json.dumps(_told(definition), separators=(",", ":"), sort_keys=True)
    return base64.b64encode(zlib.compress(told.encode(), 9)).decode()


def definition_from_text(text: str) -> ViewDefinition:
    """What `definition_as_text` was given; raises UsageError for any other text."""
    try:
        found = _made(json.loads(inflated(base64.b64decode(text, validate=True), TEXT_BYTES_MAX)))
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise _unreadable(repr(error)) from None
    if not isinstance(found, ViewDefinition):
        raise _unreadable("it is no definition")
    return found


def _told(value: Any) -> Any:
    match value:
        case enum.Enum():
            return {_IS: type(value).__name__, "value": value.value}
        case None | bool() | int() | str():
            return value
        case RelationName(source, relation):
            return {_IS: "RelationName", "source": source, "relation": relation}
        case tuple():
            return [_told(item) for item in value]
        case float():
            return {_IS: "float", "value": repr(value)}
        case decimal.Decimal():
            return {_IS: "decimal", "value": str(value)}
        case bytes():
            return {_IS: "bytes", "value": value.hex()}
        case dt.datetime():
            return {_IS: "datetime", "value": value.isoformat()}
        case dt.date():
            return {_IS: "date", "value": value.isoformat()}
        case _ if is_dataclass(value) and type(value).__name__ in _NODES:
            parts = {f.name: (getattr(value, f.name), f.default) for f in fields(value)}
            told = {n: _told(part) for n, (part, default) in parts.items() if _tells(part, default)}
            return {_IS: type(value).__name__, **told}
        case _:
            raise TypeError(f"{type(value).__name__} is no part of a definition")


def _tells(part: Any, default: Any) -> bool:
    return default is MISSING or type(part) is not type(default) or part != default


def _made(told: Any) -> Any:
    if isinstance(told, list):
        return tuple(_made(item) for item in told)
    if not isinstance(told, dict):
        return told
    name = told[_IS]
    if name in _VALUES:
        return _VALUES[name](told["value"])
    if name in _CHOICES:
        return _CHOICES[name](told["value"])
    return _NODES[name](**{field: _made(part) for field, part in told.items() if field != _IS})


def _unreadable(detail: str) -> UsageError:
    return UsageError(
        "definition-unreadable",
        "a stored definition can't be read",
        detail=detail,
        hint="it was written by another version of Viewkeeper, or changed by hand",
    )
