"""Which relations a view should keep copies of, by what was measured: the document of ``viewkeeper advise``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.live.reading.row_estimates import row_estimates
from viewkeeper.project.keeper import Keeper
from viewkeeper.protocols.choice import choice_for
from viewkeeper.reports.explain import bad_views, views_meant
from viewkeeper.reports.run_state import read_run_state
from viewkeeper.reports.traffic import measured, no_traffic
from viewkeeper.views.advice import Advice, Traffic, advised, choices
from viewkeeper.views.definition import RelationName, ViewDefinition


def advice_document(keeper: Keeper, view: str | None = None) -> dict[str, Any]:
    """On one view, or on all of them; what is wrong with the others."""
    bad = bad_views(keeper, view)
    definitions = [keeper.views[name].definition for name in views_meant(keeper, view)]
    traffic = read_run_state(keeper.config.folder).get("traffic") or no_traffic("")
    relations = [name for each in definitions for name in each.relations]
    sources = {name.source: keeper.source(name.source) for name in relations}
    sizes = row_estimates(sources, relations)
    told = measured(traffic)
    return {
        "measured": {name: traffic[name] for name in ("since", "batches", "transactions")},
        "views": [_advised(each, sizes, told) for each in definitions],
        "bad": {name: error.as_dict() for name, error in bad.items()},
    }


def _advised(
    definition: ViewDefinition, sizes: Mapping[RelationName, int], traffic: Mapping[str, Any]
) -> dict[str, Any]:
    document: dict[str, Any] = {"view": definition.name, "relations": [], "header": None}
    try:
        choice = choice_for(definition)
    except UsageError as error:
        return document | {"remark": f"it can't be kept as it is declared: {error.message}"}
    if not choice.is_incremental:
        return document | {"remark": f"it is kept by {choice.protocol}, which reads no copies"}
    found = [
        advised(each, traffic.get(str(each.relation), Traffic()))
        for each in choices(definition, sizes)
    ]
    remark = None if found else "nothing is joined, so nothing is asked"
    kept = [str(each.choices.relation) for each in found if each.keep]
    is_news = any(each.keep and not each.choices.is_kept for each in found)
    return document | {
        "relations": [_document(each) for each in found],
        "header": f"-- keep: {', '.join(kept)}" if is_news else None,
        "remark": remark,
    }


def _document(advice: Advice) -> dict[str, Any]:
    return advice.choices.as_dict() | {
        "measured": vars(advice.traffic),
        "advice": "keep" if advice.keep else "ask",
        "reason": advice.reason,
    }
