"""Decoding rows of a relation, and naming the row that can't be decoded."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from viewkeeper.algebra.types import Field, Row
from viewkeeper.errors import SourceError, rebuild_command
from viewkeeper.sources.sqlite.codec import Misfit, decode_column

SHOWN_CHARACTERS_MAX = 60


class PoisonRow(SourceError):
    """A row that can't be decoded; ``index`` says which of the rows at hand."""

    index = 0


def decode_columns(
    columns: Sequence[Sequence[Any]],
    fields: Sequence[Field],
    *,
    required: frozenset[str],
    identities: Sequence[Any],
    source: str,
    relation: str,
) -> list[Sequence[Any]]:
    """Columns of stored values in canonical form; raises SourceError ``poison-row``.

    ``required`` are the key's columns: SQLite lets NULL into most primary keys, where it is no key.
    """
    decoded = []
    for values, field in zip(columns, fields, strict=True):
        try:
            if field.name in required and None in values:
                raise Misfit(values.index(None), None)
            decoded.append(decode_column(values, field.type))
        except Misfit as misfit:
            identity = identities[misfit.index] if identities else None
            error = poison_row(source, relation, identity, field, misfit.value)
            error.index = misfit.index
            raise error from None
    return decoded


def rows_from(columns: Sequence[Sequence[Any]], count: int) -> list[Row]:
    return list(zip(*columns, strict=True)) if columns else [()] * count


def poison_row(
    source: str, relation: str, identity: object, field: Field, value: object
) -> PoisonRow:
    row = "a row" if identity is None else f"the row with rowid {identity}"
    return PoisonRow(
        "poison-row",
        f"{row} of {relation} in source {source} has a value in column {field.name} "
        f"that is no {field.type}",
        source=source,
        retryable=False,
        detail=f"found {_storage_class(value)} {_shown(value)}",
        hint=f"mend the value (SELECT rowid, typeof({field.name}) shows others), "
        f"then {rebuild_command(source)}",
    )


def undecodable_text(source: str, relation: str, error: sqlite3.Error) -> PoisonRow:
    """Text that is not valid in the database's encoding; SQLite itself does not look."""
    return PoisonRow(
        "poison-row",
        f"a row of {relation} in source {source} holds text that is no valid UTF-8",
        source=source,
        retryable=False,
        detail=str(error),
        hint="find it with SELECT rowid, hex(column), and mend it",
    )


def _storage_class(value: object) -> str:
    names: dict[type, str] = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}
    return names.get(type(value), "NULL, which is no key")


def _shown(value: object) -> str:
    text = "" if value is None else repr(value)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "…"
