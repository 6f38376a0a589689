"""Which changed rows can change a view: relevance by its selection conditions. Pure.

Paper: MVC (1997), section 3.2: views over a changed relation may still be ruled out by their conditions.

A row of a relation reaches a view only by way of the relation's occurrences, in the view's own terms and in those of its
steps. A term keeps the joined rows that satisfy all of its predicates. So a row that fails a predicate which reads one
occurrence alone is in no joined row there; and a row that fails so at every occurrence changes nothing, whatever is
joined, grouped or counted behind. A condition of an outer join or of EXISTS is a predicate of a step's term like any other.

Where that can't be said, there is no test for the relation, and every row of it counts: an occurrence without a condition
that reads it alone, and views that keep copies (`keeping`), for a copy has the rows that fail, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from viewkeeper.algebra.evaluation import holds
from viewkeeper.algebra.expressions import conjunction
from viewkeeper.algebra.types import Row
from viewkeeper.views.definition import LOCAL, RelationName, ViewDefinition

RowTest = Callable[[Row], bool]


def row_tests(definition: ViewDefinition) -> Mapping[RelationName, RowTest]:
    """For relations of which some rows are ruled out: whether a row, whole, may change the view."""
    if "keep" in dict(definition.settings):
        return {}
    found: dict[RelationName, list[RowTest]] = {}
    unrestricted: set[RelationName] = set()
    for term in definition.all_terms:
        for occurrence in term.occurrences:
            conditions = term.local_predicates(occurrence.alias)
            if occurrence.source == LOCAL or not conditions:
                unrestricted.add(occurrence.name)
            else:
                test = holds(conjunction(conditions), occurrence.qualified_schema)
                found.setdefault(occurrence.name, []).append(test)
    return {name: _any_of(tests) for name, tests in found.items() if name not in unrestricted}


def _any_of(tests: Iterable[RowTest]) -> RowTest:
    listed = tuple(tests)

    def may_change(row: Row) -> bool:
        try:
            return any(test(row) for test in listed)
        except (
            Exception
        ):  # a condition that has no value for this row: the view itself is to say so
            return True

    return may_change
