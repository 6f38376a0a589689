"""Which transactions a view must take notice of, decided from its text and from the changed rows alone.

The judge's own notion of relevance: rows are filtered as whole bags, occurrence by occurrence. The engine is not asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.algebra import Bag
from viewkeeper.algebra.expressions import conjunction
from viewkeeper.algebra.types import Row
from viewkeeper.sources.interface import SourceTransaction
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition


def selects(definition: ViewDefinition, transaction: SourceTransaction) -> bool:
    """Whether a row that a transaction took out or put in may be part of a row of the view."""
    for change in transaction.changes:
        name = RelationName(transaction.source, change.relation)
        for term in definition.all_terms:
            for occurrence in term.occurrences:
                rows = (*change.deleted, *change.inserted)
                if occurrence.name == name and _any_selected(term, occurrence, rows):
                    return True
    return False


def _any_selected(term: Term, occurrence: Occurrence, rows: Sequence[Row]) -> bool:
    conditions = term.local_predicates(occurrence.alias)
    if not conditions:
        return bool(rows)
    schema = occurrence.qualified_schema
    # Rows of before a schema change, or of after it, have another shape: of these nothing is said.
    fitting = [row for row in rows if len(row) == len(schema.names)]
    return bool(len(Bag.of(schema, fitting).where(conjunction(conditions))))
