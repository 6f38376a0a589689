"""Names as PostgreSQL's SQL wants them written."""

from __future__ import annotations


def quoted(name: str) -> str:
    """An identifier in SQL text. Only names that the catalog gave come here."""
    return '"' + name.replace('"', '""') + '"'


def quoted_by_name(relation: str) -> str:
    """A relation's name in SQL text, without the catalog: as in `NAMES`, split at the first dot."""
    schema, dot, table = relation.partition(".")
    return f"{quoted(schema)}.{quoted(table)}" if dot else f"{quoted('public')}.{quoted(relation)}"
