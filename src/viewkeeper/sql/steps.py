"""The steps of a view while it is read: relations that only it has, each made once and named once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from viewkeeper.algebra.expressions import Column
from viewkeeper.errors import UsageError
from viewkeeper.views.definition import LOCAL, Occurrence, RelationName, Step, Term
from viewkeeper.views.names import free_name

# The row of the query around a subquery, while that is read: a relation that no step can hold.
OUTER = RelationName(LOCAL, "^")

Terms = tuple[Term, ...]


@dataclass
class Steps:
    """Collects steps in the order in which they can be computed."""

    _by_terms: dict[Terms, Step] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)

    def add(self, wanted: str, terms: Terms) -> Step:
        """The step with these terms: the one that is there, or a new one named much as ``wanted``."""
        if any(o.name == OUTER for term in terms for o in term.occurrences):
            raise UsageError(
                "unsupported-correlation",
                "this reads the rows around it in a way that is not supported",
                hint="compare with the rows around in the WHERE of a plain SELECT … FROM … WHERE",
            )
        step = self._by_terms.get(terms)
        if step is None:
            step = self._by_terms[terms] = Step(RelationName(LOCAL, self._free(wanted)), terms)
        return step

    def _free(self, wanted: str) -> str:
        # A dot would make it look like a schema's relation.
        wanted = re.sub(r"\W+", "_", wanted).strip("_") or "step"
        name = free_name(wanted, self._names)
        self._names.add(name.casefold())
        return name

    def terms_of(self, name: RelationName) -> Terms:
        """The terms of a step; none for any other relation."""
        return next((s.terms for s in self._by_terms.values() if s.name == name), ())

    def key_of(self, name: RelationName) -> tuple[str, ...]:
        """Columns of a step that no two of its rows share; none where that is not known."""
        terms = self.terms_of(name)
        grouping = terms[0].grouping if len(terms) == 1 else None
        if grouping is None or grouping.copies is not None:
            return ()
        shown = {o.expression: o.name for o in terms[0].outputs}
        keys = [shown.get(Column(key.name)) for key in grouping.keys]
        return tuple(key for key in keys if key is not None) if None not in keys else ()

    def used_by(self, terms: Terms) -> tuple[Step, ...]:
        """The steps that the terms need, directly or through others, in order."""
        needed = {o.name for term in terms for o in term.occurrences}
        kept: list[Step] = []
        for step in reversed(self._by_terms.values()):
            if step.name in needed:
                kept.append(step)
                needed |= {o.name for term in step.terms for o in term.occurrences}
        return tuple(reversed(kept))


def occurrence_of(step: Step, alias: str) -> Occurrence:
    """The step as something that a term joins."""
    return Occurrence(alias, step.name, step.schema)
