"""Each source as one virtual relation: a view over relations, rewritten as a view over sources.

Paper: MEDWRAP (2002), section 3. With IS_x the join of the relations of source x, under the predicates
that read only them and projected to the columns that others need, V = IS_1 ⊗ … ⊗ IS_N. The mediator
maintains that view and never learns that a source has several relations; the wrappers know both.

| here | the paper |
|---|---|
| `VirtualRelation` | IS_x, for one term of the view |
| `Mediation.by_source` | V = π(IS_1 ⊗ IS_2 ⊗ …) |
| ``columns`` | attr in π_attr: what the rest of the view needs of the source |

A column ``x1.a`` of the view is the column ``x1.a`` of its source's virtual relation, and therefore
``s1.x1.a`` in the view over sources. Knows names only, nothing of who asks whom.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.expressions import Column, Expression, Output, columns_of, substituted
from viewkeeper.algebra.types import Field, Schema
from viewkeeper.errors import UsageError
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition


@dataclass(frozen=True)
class VirtualRelation:
    """One source's part of one term: the occurrences it holds, and the columns others need of it."""

    term: int
    source: str
    aliases: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def name(self) -> RelationName:
        return RelationName(self.source, f"part of term {self.term}")


class Mediation:
    """The two forms of one view, and the way between them."""

    def __init__(self, definition: ViewDefinition) -> None:
        if not definition.is_linear:
            raise UsageError(
                "view-not-linear",
                f"{definition.name} can't be kept by wrappers: it groups or removes duplicates",
                hint="maintain the rows before grouping, or choose another protocol",
            )
        self.definition = definition
        self.assemblies = tuple(Assembly(term) for term in definition.terms)
        self._virtual = {
            (index, source): _virtual(index, term, source)
            for index, term in enumerate(definition.terms)
            for source in dict.fromkeys(o.source for o in term.occurrences)
        }
        # For each term, every needed column's name in the view over sources.
        self._names = [
            {c: f"{v.source}.{c}" for v in self.virtual_relations(term=index) for c in v.columns}
            for index in range(len(definition.terms))
        ]
        self.by_source = ViewDefinition(
            definition.name,
            tuple(self._term(index, term) for index, term in enumerate(definition.terms)),
            definition.level,
        )
        self.source_assemblies = tuple(Assembly(term) for term in self.by_source.terms)

    def virtual_relations(
        self, *, term: int | None = None, source: str | None = None
    ) -> tuple[VirtualRelation, ...]:
        """All virtual relations, of one term or of one source."""
        return tuple(
            v
            for v in self._virtual.values()
            if term in (None, v.term) and source in (None, v.source)
        )

    def virtual(self, term: int, source: str) -> VirtualRelation:
        return self._virtual[term, source]

    # -- rows from one form to the other -----------------------------------------------------------

    def imported(self, term: int, rows: Any, sources: Iterable[str]) -> tuple[Any, frozenset[str]]:
        """A partial of the view over sources as one of the view over relations."""
        original = {name: column for column, name in self._names[term].items()}
        covers = frozenset(a for source in sources for a in self.virtual(term, source).aliases)
        return rows.renamed(original[name] for name in rows.schema.names), covers

    def exported(self, term: int, given: Any, source: str, rows: Any) -> Any:
        """The join of ``given``, a partial over sources, with one source's relations, as it is there."""
        original = {name: column for column, name in self._names[term].items()}
        kept = [(name, original[name]) for name in given.schema.names]
        kept += [(self._names[term][c], c) for c in self.virtual(term, source).columns]
        return rows.select(tuple(Output(name, Column(column)) for name, column in kept))

    def contents(self, virtual: VirtualRelation, rows: Any) -> Any:
        """The join of a source's occurrences as rows of its virtual relation."""
        return rows.only(virtual.columns)

    def _term(self, index: int, term: Term) -> Term:
        renaming: dict[str, Expression] = {
            column: Column(name) for column, name in self._names[index].items()
        }
        occurrences = tuple(
            Occurrence(v.source, v.name, _schema(term, v.columns))
            for v in self.virtual_relations(term=index)
        )
        predicates = tuple(
            substituted(p, renaming) for p in term.predicates if len(_sources(term, p)) > 1
        )
        outputs = tuple(Output(o.name, substituted(o.expression, renaming)) for o in term.outputs)
        return Term(occurrences, predicates, outputs)


def _virtual(index: int, term: Term, source: str) -> VirtualRelation:
    aliases = tuple(o.alias for o in term.occurrences if o.source == source)
    needed = {c for output in term.outputs for c in columns_of(output.expression)}
    for predicate in term.predicates:
        if len(_sources(term, predicate)) > 1:
            needed |= columns_of(predicate)
    mine = [n for alias in aliases for n in term.occurrence(alias).qualified_schema.names]
    # A relation must have a column, even one that only says how often something is there.
    columns = tuple(name for name in mine if name in needed) or tuple(mine[:1])
    return VirtualRelation(index, source, aliases, columns)


def _sources(term: Term, expression: Expression) -> set[str]:
    return {term.occurrence(alias).source for alias in term.aliases_in(expression)}


def _schema(term: Term, columns: tuple[str, ...]) -> Schema:
    return Schema(tuple(Field(c, term.joined_schema.type_of(c)) for c in columns))
