"""View adaptation (VA): the extent of a rewritten view, and exactly which updates it includes.

Paper: DyDa, section 7 and Figure 8. The adapted extent is the new view at the cut ``after``; the old one
was the old view at ``before``. Between the two lie the schema changes themselves and the data changes
that were aborted because of them. With R_V, S_NV and O as in `map_va`, and O at the two cuts,

    V' = S ⊗ O_after = V⁰ ⊕ (S ⊖ R_V) ⊗ O_after ⊕ R_V ⊗ (O_after ⊖ O_before)

The last part is what the paper finds missing in Example 9. It is made of aborted changes of the relations
that stayed; those of the lost relation have no effect, those of the substitute are in S already
(lemmas 6 and 7). With one other relation it is computed on the spot, as the paper says; with more, the
rest of the join has to be asked for, which the paper does not mention.

Where Map-VA does not apply, every relation is read as of ``after`` and the view recomputed
(Mac-Recompute). Either way the result is exactly the view at ``after``, and maintenance goes on there.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.evolution.maintenance import ChangeOf, changes_at, maintained
from viewkeeper.evolution.map_va import DELTA, MapVA, NotApplicable, plan
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.evolution.reading import Process, swept, whole
from viewkeeper.timeline import Cut
from viewkeeper.views.assembly import evaluated
from viewkeeper.views.definition import RelationName, ViewDefinition


class Method(enum.Enum):
    """How an extent was brought over."""

    KEPT = "kept"
    MAP_VA = "map-va"
    RECOMPUTE = "recompute"


@dataclass(frozen=True)
class Adapted:
    """The new extent, and how it came about; ``queries`` holds the results of the six by name."""

    extent: Any
    method: Method
    reason: str = ""
    queries: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """What is to be adapted: two definitions, the mapping between them, and two cuts.

    ``change_of`` gives, for an occurrence of the new view, the data changes between the cuts.
    """

    old: ViewDefinition
    new: ViewDefinition
    mapping: EvolutionMapping
    extent: Any
    before: Cut
    after: Cut
    change_of: ChangeOf


def adapted(task: Task) -> Process[Adapted]:
    """The view's new extent at ``task.after``, by Map-VA where it applies."""
    try:
        queries = plan(task.old, task.new, task.mapping)
        if not _is_linear(task.new) and _has_changes(task):
            raise NotApplicable("the view groups or removes duplicates, and rows have changed")
    except NotApplicable as obstacle:
        extent = yield from recomputed(task.new, task.after)
        return Adapted(extent, Method.RECOMPUTE, str(obstacle))
    if queries.substitute is None:
        return (yield from _kept(task, queries))
    return (yield from _map_va(task, queries))


def _is_linear(definition: ViewDefinition) -> bool:
    return not definition.steps and all(term.is_linear for term in definition.terms)


def _has_changes(task: Task) -> bool:
    return any(task.change_of(o) is not None for t in task.new.all_terms for o in t.occurrences)


def _kept(task: Task, queries: MapVA) -> Process[Adapted]:
    """The same rows: only what was aborted is missing."""
    v0 = queries.v0(task.extent)
    missing = yield from maintained(task.new, task.change_of, task.before, task.after)
    extent = v0 if missing is None else v0 + missing
    return Adapted(extent, Method.KEPT, queries={"V⁰": v0})


def _map_va(task: Task, queries: MapVA) -> Process[Adapted]:
    v0 = queries.v0(task.extent)
    r_v = queries.r_v(task.extent)
    s_nv = yield from queries.s_nv(task.after)
    delta_r = queries.delta_r(s_nv, r_v)
    delta_v = yield from queries.delta_v(delta_r, task.after)
    extent = queries.new_extent(v0, delta_v)
    missing = yield from corrected_for_aborted(task, queries, r_v)
    results = {"V⁰": v0, "R_V": r_v, "S_NV": s_nv, "ΔR": delta_r, "ΔV": delta_v, "missing": missing}
    if missing is not None:
        extent = extent + missing
    return Adapted(extent, Method.MAP_VA, queries=results)


def corrected_for_aborted(task: Task, queries: MapVA, r_v: Any) -> Process[Any | None]:
    """R_V ⊗ what the other relations changed by: Figure 8."""
    carrier = queries.carrier
    # The stand-in for R has no changes of its own: they are skipped, lines 2 to 5.
    others = [o for o in carrier.term.occurrences if o.alias != DELTA]
    changed = changes_at(carrier, lambda o: task.change_of(o) if o in others else None)
    return (yield from swept(carrier, changed, task.before, task.after, {DELTA: r_v}))


def recomputed(definition: ViewDefinition, wanted: Cut) -> Process[Any]:
    """Mac-Recompute: every relation read as of one cut, and the view computed from them."""
    contents: dict[RelationName, Any] = {}
    for term in definition.all_terms:
        for occurrence in term.occurrences:
            if occurrence.name in definition.relations and occurrence.name not in contents:
                contents[occurrence.name] = yield whole(occurrence, wanted)
    return evaluated(definition, contents.__getitem__)
