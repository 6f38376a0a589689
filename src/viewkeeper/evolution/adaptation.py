"""View adaptation (VA): the extent of a rewritten view, from its old one, at the very cut that it belongs to.

Paper: DyDa, section 7. A view that Map-VA can adapt is adapted by its six queries (`map_va`); any other is computed from
its sources, as a new view is (Mac-Recompute).

Where we differ: the paper reads the sources as they are, and its adapted extent then lacks a part of what was aborted by
the schema change (Examples 8 and 9), which Figure 8 adds. Ours reads every relation at the cut of the old extent: what
has arrived and is in no state is taken out of the answers. With O the relations that stay, at one cut,

    V' = S ⊗ O = V⁰ ⊕ (S ⊖ R_V) ⊗ O

and nothing is missing. Aborted data changes are maintained after it, each in a state of its own, as all others are.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.evolution.map_va import MapVA, NotApplicable, plan
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.evolution.reading import Relations
from viewkeeper.views.definition import ViewDefinition


class Method(enum.Enum):
    """How an extent is brought over."""

    KEPT = "kept"
    MAP_VA = "map-va"
    RECOMPUTE = "recompute"


@dataclass(frozen=True)
class Adapted:
    """The new extent; ``queries`` holds the results of the six by name, as far as they were needed."""

    extent: Any
    queries: Mapping[str, Any]


def adaptation_of(
    old: ViewDefinition, new: ViewDefinition, mapping: EvolutionMapping
) -> tuple[Method, str]:
    """How an extent would be brought over, were nothing else to happen meanwhile; and why it must be recomputed."""
    try:
        found = plan(old, new, mapping)
    except NotApplicable as obstacle:
        return Method.RECOMPUTE, str(obstacle)
    return (Method.KEPT if found.substitute is None else Method.MAP_VA), ""


def adapted(queries: MapVA, extent: Any, relations: Relations) -> Adapted:
    """The view's new extent; ``relations`` are at the cut that ``extent`` belongs to."""
    v0 = queries.v0(extent)
    if queries.substitute is None:
        return Adapted(v0, {"V⁰": v0})
    r_v = queries.r_v(extent)
    s_nv = queries.s_nv(relations)
    delta_r = queries.delta_r(s_nv, r_v)
    results = {"V⁰": v0, "R_V": r_v, "S_NV": s_nv, "ΔR": delta_r}
    if delta_r.is_empty():
        return Adapted(v0, results)
    delta_v = queries.delta_v(delta_r, relations)
    return Adapted(queries.new_extent(v0, delta_v), {**results, "ΔV": delta_v})
