"""Views that show the key of every relation: what the Strobe family rests on.

With all keys in the view, every row of it comes about in exactly one way, so duplicates can be
suppressed and the rows that an update's deletion affects can be found at the warehouse.
"""

from __future__ import annotations

from typing import Any

from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.errors import UsageError
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import Occurrence, Term, ViewDefinition


def require_keys(protocol: str, definition: ViewDefinition) -> None:
    """Raise UsageError unless the view is one term that shows the key of every occurrence."""
    if len(definition.terms) != 1:
        raise UsageError(
            "protocol-not-applicable",
            f"{protocol} can't maintain {definition.name}: it is a UNION ALL",
            detail="rows of different terms can't be told apart by their keys",
            hint="use sweep, which needs no keys",
        )
    (term,) = definition.terms
    for occurrence in term.occurrences:
        missing = [c for c in occurrence.key if _shown_as(term, occurrence.qualified(c)) is None]
        if missing or not occurrence.key:
            raise UsageError(
                "protocol-not-applicable",
                f"{protocol} can't maintain {definition.name} without the keys of all relations",
                detail=(
                    f"{occurrence.name} has no key"
                    if not occurrence.key
                    else f"the view does not show {', '.join(missing)} of {occurrence.name}"
                ),
                hint="add the key columns to the view, or use sweep, which needs none",
            )


def _shown_as(term: Term, column: str) -> str | None:
    return next((o.name for o in term.outputs if o.expression == Column(column)), None)


def deleted_rows(transaction: Transaction, occurrence: Occurrence) -> Any | None:
    """The rows that the transaction took out of the occurrence's relation, each once."""
    change = transaction.change(occurrence.name)
    return None if change is None else (-change).positive()


def inserted_rows(transaction: Transaction, occurrence: Occurrence) -> Any | None:
    """The rows that the transaction put into the occurrence's relation."""
    change = transaction.change(occurrence.name)
    return None if change is None else change.positive()


def keys_of(rows: Any, occurrence: Occurrence) -> Any:
    """The keys of some rows of a relation, each once, under names that collide with nothing."""
    outputs = tuple(Output(f"key {c}", Column(c)) for c in occurrence.key)
    return rows.select(outputs).support()


def matching(rows: Any, columns: tuple[str, ...], keys: Any) -> Any:
    """The rows whose ``columns`` are among ``keys``: a semi-join."""
    names = rows.schema.names
    pairs = tuple(zip(columns, keys.schema.names, strict=True))
    return rows.join(keys, pairs).select(tuple(Output(name, Column(name)) for name in names))


def without_keys(rows: Any, columns: tuple[str, ...], keys: Any) -> Any:
    """key-delete: the rows whose ``columns`` are not among ``keys``."""
    return rows - matching(rows, columns, keys)


def key_columns(occurrence: Occurrence) -> tuple[str, ...]:
    """The key's columns inside a partial."""
    return tuple(occurrence.qualified(column) for column in occurrence.key)


def shown_key_columns(term: Term, occurrence: Occurrence) -> tuple[str, ...]:
    """The key's columns in the view, under the view's names for them."""
    shown = (_shown_as(term, occurrence.qualified(column)) for column in occurrence.key)
    return tuple(name for name in shown if name is not None)
