"""Views that show the key of every relation: what the Strobe family rests on.

With all keys in the view, every row of it comes about in exactly one way, so duplicates can be
suppressed and the rows that an update's deletion affects can be found at the warehouse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from viewkeeper.algebra.expressions import Column
from viewkeeper.errors import UsageError
from viewkeeper.protocols.messages import Action, Assumptions, Part
from viewkeeper.protocols.view_manager import ViewManager
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
    """The keys of some rows of a relation, each once."""
    return rows.only(occurrence.key).support()


def without_keys(rows: Any, columns: tuple[str, ...], keys: Any) -> Any:
    """key-delete: the rows whose ``columns`` are not among ``keys``."""
    return rows - rows.matching(columns, keys)


def key_columns(occurrence: Occurrence) -> tuple[str, ...]:
    """The key's columns inside a partial."""
    return tuple(occurrence.qualified(column) for column in occurrence.key)


def shown_key_columns(term: Term, occurrence: Occurrence) -> tuple[str, ...]:
    """The key's columns in the view, under the view's names for them."""
    shown = (_shown_as(term, occurrence.qualified(column)) for column in occurrence.key)
    return tuple(name for name in shown if name is not None)


class KeyedViewManager(ViewManager):
    """A view of one term with all keys: deletions need no question, insertions go from source to source."""

    assumes = Assumptions(no_inversions=True, keys=True)
    paper = "SWEEP, section 3"

    def __init__(self, definition: ViewDefinition, extent: Any) -> None:
        require_keys(self.name, definition)
        super().__init__(definition, extent)
        (self.term,) = definition.terms
        (self.assembly,) = self.assemblies
        self.extent = extent

    def deletions(self, transaction: Transaction) -> Iterator[tuple[Occurrence, Any]]:
        """The occurrences that lost rows, each with the keys of those."""
        for occurrence in self.term.occurrences:
            deleted = deleted_rows(transaction, occurrence)
            if deleted is not None:
                yield occurrence, keys_of(deleted, occurrence)

    def insertions(self, transaction: Transaction) -> Iterator[tuple[Occurrence, Any]]:
        """The occurrences that got rows, each with these."""
        for occurrence in self.term.occurrences:
            inserted = inserted_rows(transaction, occurrence)
            if inserted is not None and not inserted.is_empty():
                yield occurrence, inserted

    def view_without(self, view: Any, occurrence: Occurrence, keys: Any) -> Any:
        """The view without the rows that come from these rows of an occurrence."""
        return without_keys(view, shown_key_columns(self.term, occurrence), keys)

    def ask_about(self, alias: str, partial: Any, covers: frozenset[str], note: Any) -> Action:
        """Ask for the product of a partial with one further occurrence."""
        part = Part(0, (alias,), partial, covers)
        return self.ask(self.term.occurrence(alias).source, (part,), note)
