"""What a view is, what it asks of which source, and what it can promise: the document of ``viewkeeper explain``.

The dashboard shows the same for each view (`dashboard.descriptions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viewkeeper.errors import UsageError, ViewkeeperError
from viewkeeper.live.reading.row_estimates import row_estimates
from viewkeeper.project.keeper import Keeper
from viewkeeper.protocols.batched_sweep import BatchedSweep
from viewkeeper.protocols.choice import Choice, choice_for
from viewkeeper.protocols.registry import LIVE
from viewkeeper.sql.remarks import remarks
from viewkeeper.views.advice import choices
from viewkeeper.views.definition import LOCAL, RelationName, ViewDefinition
from viewkeeper.views.describe import described
from viewkeeper.views.planning import Route, reads, routes
from viewkeeper.views.printing import view_sql
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import Upkeep

Document = dict[str, Any]


def explain_document(keeper: Keeper, view: str | None = None) -> Document:
    """One view, or all of them and what is wrong with the others; raises the error of the one asked for."""
    bad = bad_views(keeper, view)
    views = {name: keeper.views[name] for name in views_meant(keeper, view)}
    sources = {name: keeper.source(name) for name in keeper.config.sources}
    sizes = row_estimates(
        sources, [r for each in views.values() for r in each.definition.relations]
    )
    kinds = {name: source.kind for name, source in sources.items()}
    return {
        "views": [explained(v.definition, kinds, v.text, sizes) for v in views.values()],
        "bad": {name: error.as_dict() for name, error in bad.items()},
    }


def bad_views(keeper: Keeper, view: str | None) -> dict[str, ViewkeeperError]:
    """Views that have no right text; raises the error of the one that is asked for."""
    bad = {n: e for n, e in keeper.bad_views.items() if n not in keeper.views}
    if view is None:
        return bad
    if view in bad:
        raise bad[view]
    return {}


def views_meant(keeper: Keeper, view: str | None) -> tuple[str, ...]:
    """All of the project's views, or the one that is asked for; raises UsageError where there is no such."""
    return tuple(keeper.views) if view is None else (keeper.known_view(view),)


def explained(
    definition: ViewDefinition,
    kinds: dict[str, str],
    text: str | None = None,
    sizes: Mapping[RelationName, int] | None = None,
) -> dict[str, Any]:
    """All that is shown, for programs: `views.describe`, what follows from it, remarks on the text.

    ``sizes``: about how many rows relations have, where that is known.
    """
    choice, refused = _choice(definition)
    incremental = choice is not None and not choice.is_recomputed
    by_sweep = choice is not None and choice.is_incremental
    upkeep = Upkeep(pruned(definition))
    kept = frozenset(upkeep.kept) if by_sweep else frozenset()
    stores = upkeep.stores if by_sweep else ()
    return described(definition) | {
        "sql": view_sql(definition),
        "remarks": [] if text is None else list(remarks(definition.name, text)),
        "kinds": {source: kinds[source] for source in definition.sources},
        "incremental": incremental,
        "not_incremental_because": list(choice.why) if choice and not incremental else [],
        "refused": None if refused is None else refused.as_dict(),
        "reaches": _reached(definition, choice),
        "protocols": _protocols(definition),
        "keeps": [{"store": store.name, "holds": store.holds} for store in stores],
        "reads": [
            {
                "relation": str(read.name),
                "columns": list(read.columns),
                "left_out": list(read.left_out),
            }
            for read in reads(definition)
        ],
        "changes": [_change(way, kept) for way in routes(definition)] if incremental else [],
        "choices": [c.as_dict() for c in choices(definition, sizes or {})] if by_sweep else [],
    }


def _choice(definition: ViewDefinition) -> tuple[Choice | None, UsageError | None]:
    """Which protocol keeps the view, or why none does."""
    try:
        return choice_for(definition), None
    except UsageError as error:
        return None, error


def _change(route: Route, kept: frozenset[RelationName]) -> dict[str, Any]:
    asked = [hop.name.source != LOCAL and hop.name not in kept for hop in route.hops]
    return {
        "term": route.term,
        "alias": route.alias,
        "relation": _named(route.name),
        # What the warehouse keeps itself, it need not ask for.
        "questions": sum(asked),
        "asks": [
            {
                "source": hop.name.source if is_asked else "the warehouse",
                "relation": _named(hop.name),
                "alias": hop.alias,
                "by": list(hop.key_columns),
                "keys_from": list(hop.from_columns),
                "whole_relation": hop.is_whole,
            }
            for hop, is_asked in zip(route.hops, asked, strict=True)
        ],
    }


def _named(name: RelationName) -> str:
    return f"step {name.relation}" if name.source == LOCAL else str(name)


def _reached(definition: ViewDefinition, choice: Choice | None) -> dict[str, Any]:
    """The level that a run reaches with this view, by which protocol and why; none if it can't."""
    protocol = None if choice is None else choice.protocol
    if choice is not None and choice.is_incremental:
        protocol = BatchedSweep.name
    return {
        "declared": str(definition.level),
        "declared_protocol": definition.protocol,
        "level": None if choice is None else str(choice.level),
        "protocol": protocol,
        "meets_declared": choice is not None and choice.level >= definition.level,
        "why": [] if choice is None else list(choice.why),
    }


def _protocols(definition: ViewDefinition) -> list[dict[str, Any]]:
    """Every protocol: whether it could keep the view, what it would promise and ask."""
    return [
        {
            "protocol": each.name,
            "level": str(each.level),
            "asks": each.asks,
            "refused_because": None if refused is None else refused.detail or refused.message,
        }
        for each in LIVE.values()
        for refused in (each.refusal(definition),)
    ]
