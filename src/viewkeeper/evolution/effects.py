"""What a schema change would do to every view, before it is done: the blast radius, and who decides.

Pure planning for people and for the live pipeline. Each view is untouched, goes on under other names, is
offered a column, is read again, gets another definition, stops because its text does not fit, or is
retired; and its policy says whether that happens at once, waits for a person, or leaves the view as it is.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.evolution.adaptation import Method, adaptation_of
from viewkeeper.evolution.changes import (
    ChangeType,
    Rewrite,
    SchemaChange,
    catalog_after,
)
from viewkeeper.evolution.knowledge import Knowledge
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.evolution.preferences import Policy
from viewkeeper.evolution.quality import Quality
from viewkeeper.evolution.rewriting import EvolvingView
from viewkeeper.evolution.synchronization import (
    Offered,
    Renamed,
    Retired,
    Synchronized,
    Untouched,
    preferences_after,
    synchronized,
)
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.printing import view_sql

Views = Mapping[str, EvolvingView]


class Kind(enum.Enum):
    UNTOUCHED = "untouched"
    RENAMED = "renamed"
    OFFERED = "column offered"
    REREAD = "read anew"
    SYNCHRONIZED = "synchronized"
    RETIRED = "retired"
    STOPPED = "stopped"


class Decision(enum.Enum):
    """What the view's policy makes of the effect."""

    PROCEED = "proceed"
    ASK = "ask"
    FREEZE = "freeze"


@dataclass(frozen=True)
class Effect:
    """What happens to one view. ``after`` is what it becomes; None when it is retired or stops.

    ``method`` says how its extent is brought over, ``method_reason`` why it must be recomputed.
    """

    view: str
    kind: Kind
    decision: Decision
    after: EvolvingView | None
    reason: str = ""
    mapping: EvolutionMapping | None = None
    quality: Quality | None = None
    others: tuple[str, ...] = ()
    method: Method = Method.KEPT
    method_reason: str = ""

    @property
    def changes_the_view(self) -> bool:
        """Whether it gets another definition, if only other names in it, or comes to its end."""
        return self.kind in (Kind.RENAMED, Kind.SYNCHRONIZED, Kind.RETIRED, Kind.STOPPED)

    def as_dict(self) -> dict[str, Any]:
        """For `evolve --json`."""
        return {
            "view": self.view,
            "effect": self.kind.value,
            "decision": self.decision.value,
            "reason": self.reason,
            "sql": None if self.after is None else view_sql(self.after.definition),
            "mapping": [] if self.mapping is None else list(self.mapping.lines()),
            "quality": None if self.quality is None else self.quality.as_dict(),
            "others": list(self.others),
            "adaptation": None if self.after is None else self.method.value,
            "adaptation_reason": self.method_reason,
        }


def effects(
    change: SchemaChange, views: Views, knowledge: Knowledge, catalog: Catalog
) -> tuple[Effect, ...]:
    """One effect for each view, in order; ``knowledge`` and ``catalog`` are those before the change."""
    after = catalog_after(catalog, change)
    return tuple(_effect(name, view, change, knowledge, after) for name, view in views.items())


def planned(
    changes: Iterable[SchemaChange], views: Views, knowledge: Knowledge, catalog: Catalog
) -> Iterator[tuple[SchemaChange, tuple[Effect, ...]]]:
    """The effects of several changes, one after the other; a view that is retired has no more."""
    remaining = dict(views)
    for change in changes:
        found = effects(change, remaining, knowledge, catalog)
        yield change, found
        remaining = {e.view: e.after for e in found if e.after is not None}
        knowledge, catalog = knowledge.after(change), catalog_after(catalog, change)


def _effect(
    name: str, view: EvolvingView, change: SchemaChange, knowledge: Knowledge, catalog: Catalog
) -> Effect:
    result = synchronized(view, change, knowledge, catalog)
    match result:
        case Untouched(definition):
            found = Effect(name, Kind.UNTOUCHED, Decision.PROCEED, _becoming(view, definition))
        case Offered(definition, field):
            reason = f"{change}: the view may show {field.name}, of type {field.type}"
            after = _becoming(view, definition)
            found = Effect(name, Kind.OFFERED, Decision.PROCEED, after, reason)
        case Renamed(definition, mapping):
            reason = f"{change}: other names underneath, the same columns and rows"
            after = _becoming(view, definition, mapping)
            found = Effect(name, Kind.RENAMED, Decision.PROCEED, after, reason, mapping)
        case Synchronized(definition, mapping, reason, quality, others):
            after = _becoming(view, definition, mapping)
            kind = Kind.REREAD if _only_rereads(change, view, after) else Kind.SYNCHRONIZED
            method, why = adaptation_of(view.definition, after.definition, mapping)
            found = Effect(
                name, kind, Decision.PROCEED, after, reason, mapping, quality, others, method, why
            )
        case Retired(reason, others, stops):
            kind = Kind.STOPPED if stops else Kind.RETIRED
            found = Effect(name, kind, Decision.PROCEED, None, reason, others=others)
    return replace(found, decision=_decision(found, view.preferences.policy))


def _only_rereads(change: SchemaChange, before: EvolvingView, after: EvolvingView) -> bool:
    """Whether the view says and shows the same as before, over other rows or values."""
    if not isinstance(change, ChangeType):
        return isinstance(change, Rewrite)
    texts = view_sql(before.definition), view_sql(after.definition)
    return texts[0] == texts[1] and before.definition.schema == after.definition.schema


def _becoming(
    view: EvolvingView, definition: Any, mapping: EvolutionMapping | None = None
) -> EvolvingView:
    preferences = view.preferences
    if mapping is not None:
        preferences = preferences_after(preferences, mapping)
    return EvolvingView(definition, preferences)


def _decision(effect: Effect, policy: Policy) -> Decision:
    if not effect.changes_the_view or policy is Policy.AUTO:
        return Decision.PROCEED
    return Decision.ASK if policy is Policy.APPROVE else Decision.FREEZE
