"""Map-VA: the new extent from the old one and the difference between what was lost and what replaces it.

Paper: DyDa, section 7.2, Table 5, Example 5, and the appendix. With V the old view, R what it loses
(one or several joined occurrences), S what takes its place, O the rest:

| query | here | meaning |
|---|---|---|
| V⁰ | `MapVA.v0` | the old extent, cut down to the new columns |
| R_V | `MapVA.r_v` | what the old extent holds of R |
| S_NV | `MapVA.s_nv` | S as the new view sees it (asks sources) |
| ΔR | `MapVA.delta_r` | S_NV ⊖ R_V |
| ΔV | `MapVA.delta_v` | ΔR ⊗ O (asks sources) |
| V' | `MapVA.new_extent` | V⁰ ⊕ ΔV |

It is right because V⁰ = R_V ⊗ O. Where we differ: the paper's extents are sets; ours are bags with signed
counts, so EXCEPT and UNION are ⊖ and ⊕, and one ΔR with signs takes the place of ΔR⁺ and ΔR⁻. In a bag
R_V shows each row of R once per partner, so it can be recovered only if the old view shows R's key. The
paper's inclusion assumption (join columns of R are shown) is checked, not hoped for. Where one of these
fails, `plan` says which, and the view is recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.expressions import (
    Cast,
    Column,
    Expression,
    Output,
    columns_of,
    substituted,
    transformed,
)
from viewkeeper.algebra.types import Schema
from viewkeeper.evolution.changes import widens
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.evolution.reading import Relations, joined
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import LOCAL, Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.pruning import pruned
from viewkeeper.views.spark_sql import expression_sql
from viewkeeper.views.upkeep import Upkeep

# The occurrence that stands for R_V, S_NV or ΔR in the term over which differences are carried.
DELTA = "Δ"


class NotApplicable(Exception):
    """Map-VA can't adapt this view; the text says why. It is recomputed instead."""


@dataclass(frozen=True)
class MapVA:
    """The six queries for one old and one new definition.

    ``before`` and ``after`` are the columns of the two. ``carrier`` is the new term with everything that was touched
    put into one occurrence `DELTA`, whose columns are the outputs ``shown``; without a ``substitute`` nothing was
    touched, and it is the new term itself. ``lost_shown`` are the old outputs that R gave, its keys among them.
    """

    before: Schema
    after: Schema
    carrier: Assembly
    shown: tuple[str, ...] = ()
    lost_shown: tuple[str, ...] = ()
    substitute: Assembly | None = None

    def v0(self, extent: Any) -> Any:
        return _conformed(extent, self.after.names, self.after)

    def r_v(self, extent: Any) -> Any:
        # With R's keys among its columns, every row of R is there exactly once.
        rows = extent.only(self.lost_shown).support()
        return _conformed(rows, self.shown, self.after)

    def s_nv(self, relations: Relations) -> Any:
        if self.substitute is None:
            raise NotApplicable("nothing was replaced")
        first = self.substitute.term.occurrences[0]
        rows = relations.whole(first.name, first.schema)
        return joined(self.substitute, first.alias, rows, relations)

    def delta_r(self, s_nv: Any, r_v: Any) -> Any:
        return s_nv - r_v

    def delta_v(self, delta_r: Any, relations: Relations) -> Any:
        return joined(self.carrier, DELTA, delta_r, relations)

    def new_extent(self, v0: Any, delta_v: Any) -> Any:
        return v0 + delta_v


def _conformed(rows: Any, names: tuple[str, ...], schema: Schema) -> Any:
    """These columns, in the types they have now: a widened value is the same value."""
    return rows.select(
        tuple(
            Output(n, Column(n))
            if rows.schema.type_of(n) == schema.type_of(n)
            else Output(n, Cast(Column(n), schema.type_of(n)))
            for n in names
        )
    )


# -- whether it applies, and the terms it needs -------------------------------------------------------


def plan(old: ViewDefinition, new: ViewDefinition, mapping: EvolutionMapping) -> MapVA:
    """The six queries; raises NotApplicable. ``mapping`` leads from the old to the new definition."""
    old, new = pruned(old), pruned(new)
    for field in new.schema:
        if not widens(old.schema.type_of(field.name), field.type):
            raise NotApplicable(f"values of {field.name} can't be kept in its new type")
    if Upkeep(old).stores or Upkeep(new).stores:
        raise NotApplicable(
            "the view groups, removes duplicates or keeps copies, which must be computed as well"
        )
    if mapping.trusted or not mapping.touched:
        # The same rows under other names: the old extent is the new one, but for its columns.
        return MapVA(old.schema, new.schema, Assembly(new.terms[0]))
    for definition in (old, new):
        if len(definition.terms) != 1 or definition.steps:
            raise NotApplicable("rows of the view do not say which of its terms they come from")
    return _Planner(old.terms[0], new.terms[0], mapping).planned()


class _Planner:
    def __init__(self, old: Term, new: Term, mapping: EvolutionMapping) -> None:
        self.old, self.new, self.mapping = old, new, mapping
        self.lost = frozenset(o.alias for o in old.occurrences) & mapping.touched
        self.replacing = frozenset(o.alias for o in new.occurrences) & mapping.touched

    def planned(self) -> MapVA:
        self._require_both()
        self._require_keys()
        shown = tuple(o.name for o in self.new.outputs if self._is_shown(o))
        self._require_same_rest(shown)
        return MapVA(
            self.old.schema,
            self.new.schema,
            Assembly(self._carrier(shown)),
            shown,
            self._lost_shown(),
            Assembly(self._substitute(shown)),
        )

    def _require_both(self) -> None:
        if not self.lost or not self.replacing:
            raise NotApplicable("a relation was taken out of the join, or put into it")
        reached = {min(self.replacing)}
        while (
            new := {n for a in reached for n in self.new.join_graph[a] & self.replacing} - reached
        ):
            reached |= new
        if reached != self.replacing:
            raise NotApplicable("what was replaced is not joined to each other")

    def _require_keys(self) -> None:
        shown = {o.expression for o in self.old.outputs}
        for alias in sorted(self.lost):
            occurrence = self.old.occurrence(alias)
            if not occurrence.key or not all(
                Column(occurrence.qualified(c)) in shown for c in occurrence.key
            ):
                raise NotApplicable(f"the view does not show the key of {occurrence.name}")

    def _is_shown(self, output: Output) -> bool:
        """Whether the output comes from what was replaced; its old self must then come from R."""
        aliases = self.new.aliases_in(output.expression)
        before = self._old_output(output.name)
        if not aliases & self.replacing:
            if self._renamed(before) != output.expression:
                raise NotApplicable(f"the column {output.name} is computed differently")
            return False
        if not aliases <= self.replacing or not self.old.aliases_in(before) <= self.lost:
            raise NotApplicable(
                f"the column {output.name} mixes what was replaced with what was not"
            )
        return True

    def _old_output(self, name: str) -> Expression:
        return next(o.expression for o in self.old.outputs if o.name == name)

    def _lost_shown(self) -> tuple[str, ...]:
        return tuple(
            o.name
            for o in self.old.outputs
            if columns_of(o.expression) and self.old.aliases_in(o.expression) <= self.lost
        )

    def _renamed(self, expression: Expression) -> Expression:
        """An old expression over untouched occurrences, by the new names."""
        columns: dict[str, Expression] = {}
        for occurrence in self.old.occurrences:
            if occurrence.alias not in self.lost:
                for column in occurrence.schema.names:
                    now = self.mapping.renamed_column(occurrence.alias, column)
                    columns[occurrence.qualified(column)] = Column(f"{occurrence.alias}.{now}")
        return substituted(expression, columns)

    # -- conditions --------------------------------------------------------------------------------

    def _require_same_rest(self, shown: tuple[str, ...]) -> None:
        """V⁰ = R_V ⊗ O must hold with the new view's conditions: those beyond R are all the same."""
        before = {
            self._renamed(self._in_shown(p, self.old, self.lost, shown))
            for p in self.old.predicates
            if not self._is_inside(p, self.old, self.lost)
        }
        after = {
            self._in_shown(p, self.new, self.replacing, shown)
            for p in self.new.predicates
            if not self._is_inside(p, self.new, self.replacing)
        }
        if before != after:
            raise NotApplicable("a condition between what was replaced and the rest has changed")

    @staticmethod
    def _is_inside(predicate: Expression, term: Term, aliases: frozenset[str]) -> bool:
        read = term.aliases_in(predicate)
        return bool(read) and read <= aliases

    @staticmethod
    def _in_shown(
        predicate: Expression, term: Term, aliases: frozenset[str], shown: tuple[str, ...]
    ) -> Expression:
        """The condition over the columns that are shown of R or S (the inclusion assumption)."""
        names: Mapping[Expression, str] = {
            o.expression: o.name for o in reversed(term.outputs) if o.name in shown
        }

        def change(node: Expression) -> Expression | None:
            name = names.get(node)
            return None if name is None else Column(f"{DELTA}.{name}")

        result = transformed(predicate, change)
        hidden = [
            c for c in sorted(columns_of(result)) if not c.startswith(f"{DELTA}.")
            and term.aliases_in(Column(c)) <= aliases
        ]  # fmt: skip
        if hidden:
            raise NotApplicable(
                f"the view joins on {', '.join(hidden)} and does not show it: "
                f"{expression_sql(predicate, str)}"
            )
        return result

    # -- the terms ---------------------------------------------------------------------------------

    def _carrier(self, shown: tuple[str, ...]) -> Term:
        fields = tuple(f for f in self.new.schema if f.name in shown)
        delta = Occurrence(DELTA, RelationName(LOCAL, DELTA), Schema(fields))
        rest = tuple(o for o in self.new.occurrences if o.alias not in self.replacing)
        predicates = tuple(
            self._in_shown(p, self.new, self.replacing, shown)
            for p in self.new.predicates
            if not self._is_inside(p, self.new, self.replacing)
        )
        outputs = tuple(
            Output(o.name, Column(f"{DELTA}.{o.name}")) if o.name in shown else o
            for o in self.new.outputs
        )
        return Term((delta, *rest), predicates, outputs)

    def _substitute(self, shown: tuple[str, ...]) -> Term:
        return Term(
            tuple(o for o in self.new.occurrences if o.alias in self.replacing),
            tuple(p for p in self.new.predicates if self._is_inside(p, self.new, self.replacing)),
            tuple(o for o in self.new.outputs if o.name in shown),
        )
