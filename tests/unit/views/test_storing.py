"""A definition survives being stored, whatever it is made of."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import zlib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from unit.sql import tpch
from unit.sql.corpus import CORPUS, catalog
from viewkeeper.algebra import types
from viewkeeper.algebra.expressions import Literal, Output
from viewkeeper.errors import UsageError
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.storing import definition_as_text, definition_from_text

ACCEPTED = sorted((CORPUS / "accepted").glob("*.sql"))
SMALL = parse_view("small", ACCEPTED[0].read_text(), catalog())


def text_of(told: object) -> str:
    return base64.b64encode(zlib.compress(json.dumps(told).encode())).decode()


@pytest.mark.parametrize("path", [*ACCEPTED, *tpch.QUERIES], ids=lambda path: path.stem)
def test_a_stored_definition_is_read_back_as_it_was(path: Path) -> None:
    known = tpch.CATALOG if path in tpch.QUERIES else catalog()
    definition = parse_view(path.stem, path.read_bytes().decode(), known)
    stored = definition_as_text(definition)
    again = definition_from_text(stored)
    assert again == definition
    assert again.schema == definition.schema
    assert definition_as_text(again) == stored


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (None, types.STRING),
        (True, types.BOOLEAN),
        (-(2**63), types.INTEGER),
        (types.NAN, types.DOUBLE),
        (math.inf, types.DOUBLE),
        (0.1, types.DOUBLE),
        (Decimal("-1.50"), types.decimal_type(10, 2)),
        ("it's\n„x“ \x00", types.STRING),
        (b"\x00\xff", types.BINARY),
        (dt.date(1, 1, 1), types.DATE),
        (dt.datetime(2026, 1, 1, 1, 2, 3, 4, dt.UTC), types.TIMESTAMP),
        (dt.datetime(2026, 1, 1), types.LOCAL_TIMESTAMP),
    ],
    ids=repr,
)
def test_every_kind_of_literal_is_read_back(value: types.Value, type: types.Type) -> None:
    term = replace(SMALL.terms[0], outputs=(Output("c", Literal(value, type)),), grouping=None)
    definition = ViewDefinition("v", (term,))
    again = definition_from_text(definition_as_text(definition))
    assert again == definition
    (output,) = again.terms[0].outputs
    assert isinstance(output.expression, Literal)
    assert output.expression.value.__class__ is value.__class__


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no base64!",
        base64.b64encode(b"not compressed").decode(),
        text_of([]),
        text_of({"is": "RelationName", "source": "a", "relation": "b"}),
        text_of({"is": "Popen", "args": "ls"}),
        text_of({"is": "ViewDefinition", "name": "v", "terms": [], "from a later version": 1}),
    ],
)
def test_what_is_no_definition_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        definition_from_text(text)
    assert caught.value.code == "definition-unreadable"
