"""Names as MariaDB's SQL wants them written, in every mode."""

from __future__ import annotations


def quoted(identifier: str) -> str:
    """An identifier in SQL text."""
    return "`" + identifier.replace("`", "``") + "`"
