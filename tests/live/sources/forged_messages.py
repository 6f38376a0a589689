"""Messages that a role with CONNECT alone may send to PostgreSQL's log, as somebody would choose them who means harm."""

from __future__ import annotations

import copy
import json

TIE_PREFIX = "viewkeeper.transaction"


def forged_notes(known: dict) -> dict[str, object]:
    """Schema changes that did not happen, in the very shape of our event trigger's."""

    def note(tag="ALTER TABLE", rewritten=False, **after):
        changed = {**copy.deepcopy(known), **after}
        return {
            "tag": tag, "statement": tag, "before": known, "after": changed, "rewritten": rewritten,
        }  # fmt: skip

    swapped = copy.deepcopy(known["columns"])
    first, second = swapped[1], swapped[2]
    first["name"], second["name"] = second["name"], first["name"]
    other = {**known, "oid": 999_999}
    return {
        "a rename of columns": note(columns=swapped),
        "a rename of the table": note(name="stolen"),
        "a drop": {**note("DROP TABLE"), "after": None},
        "a rewrite": note(rewritten=True),
        "a lost column": note(columns=known["columns"][:1]),
        "a lost identity": note(partial=[known["oid"]]),
        "an unknown table": {**note(), "before": other, "after": other},
        "another with the name": {**note("DROP TABLE"), "before": other, "after": None},
        "an unknown column in the key": note(key=["nothing"]),
        "columns without names": note(columns=[{}]),
        "columns that are none": note(columns="id"),
        "a table that is a list": {**note(), "before": []},
        "a number for the table": {**note(), "after": 7},
        "no table at all": {"tag": "ALTER TABLE", "rewritten": True},
        "wrong types": note(oid="70", children={}),
        "an unclear one": {"tag": "ALTER TABLE", "unclear": "everything"},
        "an unclear number": {"tag": 1, "unclear": 2},
    }


SHAPES: dict[str, bytes] = {
    "nothing": b"",
    "an empty list": b"[]",
    "null": b"null",
    "a number": b"17",
    "an infinite number": b"1e999",
    "a number of 10,000 digits": b"9" * 10_000,
    "a text": b'"drop"',
    "true": b"true",
    "an empty object": b"{}",
    "half an object": b'{"tag": "ALTER',
    "no UTF-8": b"\xff\xfe\x00\x80",
    "zeros": bytes(64),
    "100,000 brackets": b"[" * 100_000,
    "50,000 objects": b'{"before":' * 50_000,
    "30 megabytes": b"[" + b"1," * 15_000_000 + b"1]",
    "a lone surrogate": b'{"tag": "\\ud800", "unclear": "\\ud800"}',
}
TIES: dict[str, object] = {
    "a tie": {"id": "order-17", "parts": 2},
    "the same tie": {"id": "order-17", "parts": 1_000_000},
    "no parts": {"id": "order-18", "parts": 0},
    "fewer than none": {"id": "order-18", "parts": -3},
    "parts as text": {"id": "order-18", "parts": "2"},
    "true parts": {"id": "order-18", "parts": True},
    "no id": {"parts": 2},
    "a null for an id": {"id": None, "parts": 2},
    "an id of a megabyte": {"id": "x" * (1 << 20), "parts": 2},
}


def attempts(known: dict, ours: str) -> list[tuple[str, str, bytes, bool]]:
    """What it is, its prefix, its content, and whether it is part of a transaction.

    ``known``: what our event trigger says of a table; ``ours``: the prefix of an older set-up's messages.
    """
    notes = {name: json.dumps(note).encode() for name, note in forged_notes(known).items()}
    ties = {name: json.dumps(tie).encode() for name, tie in TIES.items()}
    return [
        *((name, ours, content, True) for name, content in (SHAPES | notes).items()),
        *((name, TIE_PREFIX, content, True) for name, content in (SHAPES | ties).items()),
        ("at no place", ours, notes["a drop"], False),
        ("a tie of nothing", TIE_PREFIX, ties["a tie"], False),
        ("no prefix", "", notes["a drop"], True),
        ("our beginning", "viewkeeper", notes["a drop"], True),
        ("nearly ours", f"{ours}_", notes["a drop"], True),
        ("spelt otherwise", ours.upper(), notes["a drop"], True),
    ]


def send(session, prefix: str, content: bytes, transactional: bool = True) -> None:
    session.execute(
        "SELECT pg_logical_emit_message(%s, %s, %b::bytea)", [transactional, prefix, content]
    )
