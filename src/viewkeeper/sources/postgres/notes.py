"""What may be believed of a schema change or a tie that somebody says there is. Pure.

Everybody who may connect to PostgreSQL can send logical messages, with any prefix and any content. So a
schema change comes as a row of `NOTES`, a table that only the owner of our event triggers can write and
that is in our publication: the row stands in the same transaction of the log. A message tells nothing by
itself, and whatever has another shape than ours is passed over and counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from viewkeeper.errors import ViewkeeperError
from viewkeeper.sources.interface import Remark
from viewkeeper.sources.postgres.catalog import Described, described
from viewkeeper.sources.postgres.quoting import quoted

# Our table of schema changes, in our schema, and its column that has a change.
NOTES, NOTE = "relation_history", "note"

# With this prefix an application says what its transaction is part of:
# SELECT pg_logical_emit_message(true, 'viewkeeper.transaction', '{"id": "…", "parts": 2}').
TIE_PREFIX = "viewkeeper.transaction"
TIE_BYTES_MAX, TIE_PARTS_MAX = 1_000, 1_000
MESSAGE_BYTES_MAX = 16 << 20

_TABLE = {
    "oid": int, "schema": str, "name": str, "kind": str, "persistence": str, "columns": list,
    "key": list, "children": list, "partial": list,
}  # fmt: skip
_COLUMN = {
    "num": int, "name": str, "generated": str, "oid": int, "modifier": int, "type": str,
    "category": str, "base_modifier": int, "element": str, "element_category": str,
}  # fmt: skip
_PLAIN_NAME = re.compile("[a-z_][a-z0-9_]*")
# What reading a document of another shape may raise.
_MISSHAPEN = (ViewkeeperError, KeyError, TypeError, ValueError, ArithmeticError, AttributeError)


def note_of(content: bytes | str) -> dict[str, Any] | None:
    """A schema change as our event trigger writes it; None for anything else."""
    note = _parsed(content, MESSAGE_BYTES_MAX)
    if not isinstance(note, dict) or type(note.get("tag")) is not str:
        return None
    if "unclear" in note:
        return note if type(note["unclear"]) is str else None
    is_whole = (
        type(note.get("rewritten")) is bool
        and _is_description(note.get("before"))
        and "after" in note
        and (note["after"] is None or _is_description(note["after"]))
    )
    return note if is_whole else None


def tie_of(content: bytes) -> tuple[str, int] | None:
    """The id of a global transaction, and its number of parts; None for anything else."""
    said = _parsed(content, TIE_BYTES_MAX)
    if not isinstance(said, dict):
        return None
    tie, parts = said.get("id"), said.get("parts")
    if type(tie) is not str or type(parts) is not int:
        return None
    return (tie, parts) if tie and 1 <= parts <= TIE_PARTS_MAX else None


def _parsed(content: bytes | str, bytes_max: int) -> Any:
    if len(content) > bytes_max:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _is_description(document: Any) -> bool:
    if not _has_types(document, _TABLE):
        return False
    columns = document["columns"]
    if not all(_has_types(column, _COLUMN) for column in columns):
        return False
    names = [column["name"] for column in columns]
    lists = ("children", int), ("partial", int), ("key", str)
    if any(type(each) is not kind for name, kind in lists for each in document[name]):
        return False
    if len(set(names)) < len(names) or not set(document["key"]) <= set(names):
        return False
    try:
        described("", document)
    except _MISSHAPEN:
        return False
    return True


def _has_types(document: Any, types: Mapping[str, type]) -> bool:
    return isinstance(document, dict) and all(
        type(document.get(name)) is kind for name, kind in types.items()
    )


def told(tag: str, before: Described, after: Described | None) -> str:
    """What a command did to a table, as a statement.

    Made of the descriptions: the client's own text may hold its neighbours, with their passwords.
    """
    if "TABLE" not in tag or tag.startswith("CREATE"):
        return f"{tag}, which changed {_table(before)}"
    if after is None:
        return f"{tag} {_table(before)}"
    return f"{tag} {_table(before)} {', '.join(_clauses(before, after))}".strip()


def _named(name: str) -> str:
    """For people: in quotes only where it needs them."""
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)


def _table(described: Described) -> str:
    schema, table = described.schema_name, described.table_name
    return _named(table) if schema == "public" else f"{_named(schema)}.{_named(table)}"


def _clauses(before: Described, after: Described) -> list[str]:
    old = {column.number: column for column in before.columns}
    new = {column.number: column for column in after.columns}
    both = [(old[number], new[number]) for number in old if number in new]
    found = [
        f"RENAME COLUMN {_named(was.name)} TO {_named(now.name)}"
        for was, now in both
        if was.name != now.name
    ]
    found += [
        f"ALTER COLUMN {_named(now.name)} TYPE {now.type.name.removeprefix('pg_catalog.')}"
        for was, now in both
        if (was.type_oid, was.modifier) != (now.type_oid, now.modifier)
    ]
    found += [f"DROP COLUMN {_named(c.name)}" for number, c in old.items() if number not in new]
    found += [
        f"ADD COLUMN {_named(c.name)} {c.type.name.removeprefix('pg_catalog.')}"
        for number, c in new.items()
        if number not in old
    ]
    if before.schema_name != after.schema_name:
        found.append(f"SET SCHEMA {_named(after.schema_name)}")
    if before.table_name != after.table_name:
        found.append(f"RENAME TO {_named(after.table_name)}")
    return found


class Remarks:
    """What a feed passed over, counted: reported are the first of a kind, the 10th, the 100th …"""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._untold: list[Remark] = []

    def add(self, code: str, message: str) -> None:
        count = self._counts[code] = self._counts.get(code, 0) + 1
        if set(str(count)) <= {"1", "0"} and str(count).count("1") == 1:
            self._untold.append(
                Remark(code, message if count == 1 else f"{message} ({count} by now)")
            )

    def taken(self) -> list[Remark]:
        """Those that were not told yet."""
        told_now, self._untold = self._untold, []
        return told_now
