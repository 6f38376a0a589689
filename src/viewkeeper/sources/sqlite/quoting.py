"""Names and constants as SQLite's SQL wants them written."""

from __future__ import annotations


def quoted(name: str) -> str:
    """An identifier; every character is allowed in it."""
    return '"' + name.replace('"', '""') + '"'


def unquoted(text: str) -> str:
    """The identifier behind a double-quoted token."""
    return text[1:-1].replace('""', '"')


def text_literal(text: str) -> str:
    """A text constant, for scripts that an owner runs; queries use parameters."""
    return "'" + text.replace("'", "''") + "'"


def blob_literal(content: bytes) -> str:
    return f"X'{content.hex()}'"
