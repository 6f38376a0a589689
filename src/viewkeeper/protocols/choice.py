"""Which protocol keeps a view live: the one its text names, or the cheapest that its class allows.

Whether a protocol can keep a view is asked of the protocol itself: it is made, and it refuses or not.

| the view says | kept by |
|---|---|
| ``protocol: NAME`` | that one, or refused with its reason |
| ``refresh: full`` | recompute |
| ``refresh: auto``, ``incremental``, or nothing | batched-sweep; recompute where the view can't be kept from changes |
| ``refresh: incremental-strict`` | batched-sweep, or refused |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from viewkeeper.errors import UsageError
from viewkeeper.protocols.registry import (
    BATCHED_SWEEP,
    LIVE,
    PERIODIC,
    RECOMPUTE,
    Manager,
    Registered,
    unknown_protocol,
)
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import Upkeep

# What `refresh` may say where the view keeps copies of relations.
_KEEPING = ("auto", "incremental", "incremental-strict")
_UNITS = {"s": 1, "min": 60, "h": 3600}
_PERIOD = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h)")


@dataclass(frozen=True)
class Choice:
    """Who keeps a view, what that promises, and why it is so, in sentences."""

    protocol: str
    level: Level
    why: tuple[str, ...]

    @property
    def is_incremental(self) -> bool:
        """Whether the view is kept from changes by its stores: batched SWEEP, as far as it goes."""
        return LIVE[self.protocol].manager is Manager.INCREMENTAL

    @property
    def is_recomputed(self) -> bool:
        return LIVE[self.protocol].is_recomputed

    def shortfall(self, declared: Level) -> str | None:
        """In words, what is missing from the level that a view declares; None when nothing is.

        A view that names its protocol is refused instead: only where the choice is ours may it be less.
        """
        if self.level >= declared:
            return None
        return (
            f"declared {declared}, kept at {self.level} by {self.protocol}: {'; '.join(self.why)}"
        )


@lru_cache(maxsize=1024)
def choice_for(definition: ViewDefinition) -> Choice:
    """Who keeps the view; raises UsageError where nobody can as it is declared."""
    refresh = setting(definition, "refresh") or "auto"
    _require_keeper(definition, refresh)
    if definition.protocol is not None:
        if definition.protocol not in LIVE:
            raise unknown_protocol(definition.protocol, LIVE)
        return _named(definition, LIVE[definition.protocol], refresh)
    obstacles = Upkeep(pruned(definition)).obstacles
    if obstacles and refresh == "incremental-strict":
        raise UsageError(
            "not-incremental",
            f"{definition.name} can't be maintained from changes, and may not be computed anew",
            detail="; ".join(obstacles),
            hint="change the view, or let it be computed anew: `-- refresh: auto`",
        )
    if obstacles:
        vain = ("the copies that it asks for are not made",) if setting(definition, "keep") else ()
        return _recomputed(("it can't be kept from changes", *obstacles, *vain))
    if refresh == "full":
        return _recomputed(("the view says `refresh: full`",))
    return Choice(BATCHED_SWEEP, LIVE[BATCHED_SWEEP].level, tuple(_reasons(definition)))


def period_seconds(definition: ViewDefinition) -> float | None:
    """How often a periodic view is refreshed; None for others. Raises UsageError."""
    if definition.protocol != PERIODIC:
        return None
    text = setting(definition, "every")
    found = None if text is None else _PERIOD.fullmatch(text.lower())
    if found is None or not float(found[1]):
        raise UsageError(
            "bad-period",
            f"{definition.name} does not say how often it is refreshed",
            detail="periodic needs a header `every`" if text is None else f"found `every: {text}`",
            hint="write, for example, `-- every: 30 s`, `5 min` or `1 h`",
        )
    return float(found[1]) * _UNITS[found[2]]


def block_size(definition: ViewDefinition) -> int:
    """A state is shown for each of this many transactions (MVC's complete-N); 1: for every one."""
    return int(setting(definition, "block") or 1)


def setting(definition: ViewDefinition, name: str) -> str | None:
    """What a header of the view says."""
    return dict(definition.settings).get(name)


def _require_keeper(definition: ViewDefinition, refresh: str) -> None:
    """Refuse a header ``keep`` where copies would not be read."""
    said = f"protocol: {definition.protocol}" if definition.protocol else f"refresh: {refresh}"
    keeping = (BATCHED_SWEEP, *_KEEPING)
    if setting(definition, "keep") and (definition.protocol or refresh) not in keeping:
        raise UsageError(
            "protocol-not-applicable",
            f"{definition.name} asks for copies (`keep`) and for `{said}`",
            detail=f"only {BATCHED_SWEEP} reads copies; others ask the sources",
            hint="leave one of the two lines out",
        )


def _named(definition: ViewDefinition, protocol: Registered, refresh: str) -> Choice:
    refused = protocol.refusal(definition)
    if refused is not None:
        # The word meant batched SWEEP once.
        if protocol.name == "sweep" and LIVE[BATCHED_SWEEP].refusal(definition) is None:
            refused.hint = f"write `-- protocol: {BATCHED_SWEEP}`, or leave the line out"
        raise refused
    if refresh == "full" and not protocol.is_recomputed:
        raise UsageError(
            "protocol-not-applicable",
            f"{definition.name} asks for {protocol.name} and for `refresh: full`",
            detail=f"{protocol.name} keeps views from changes",
            hint="leave one of the two lines out",
        )
    if refresh == "incremental-strict" and protocol.is_recomputed:
        raise UsageError(
            "protocol-not-applicable",
            f"{definition.name} asks for {protocol.name} and for `refresh: incremental-strict`",
            detail=f"{protocol.name} computes views anew",
            hint="leave one of the two lines out",
        )
    if protocol.level < definition.level:
        raise UsageError(
            "protocol-below-level",
            f"{definition.name} asks for {protocol.name}, which is not {definition.level}",
            detail=f"{protocol.name} promises {protocol.level} consistency",
            hint=f"write `-- consistency: {protocol.level}`, or leave the protocol out",
        )
    period_seconds(definition)
    why = [f"the view says `protocol: {protocol.name}`"]
    if protocol.name == "sweep":
        why.append(f"it asks for each update by itself; {BATCHED_SWEEP} asks once for many")
    return Choice(protocol.name, protocol.level, tuple(why))


def _recomputed(why: tuple[str, ...]) -> Choice:
    return Choice(RECOMPUTE, LIVE[RECOMPUTE].level, why)


def _reasons(definition: ViewDefinition) -> list[str]:
    """Why batched SWEEP: by level, by keys, by sources."""
    level = LIVE[BATCHED_SWEEP].level
    reasons = [f"it reaches {level} consistency, whatever the view declares"]
    if (size := block_size(definition)) > 1:
        reasons.append(f"it shows a state for every {size} transactions, as `block` says")
    copies = ", ".join(str(name) for name in Upkeep(definition).kept)
    if copies:
        reasons.append(f"the view keeps copies ({copies}), which no other protocol reads")
        return reasons
    linear = definition.is_linear
    if not linear:
        reasons.append("no other protocol keeps steps, groups or DISTINCT from changes")
        return reasons
    if max(len(term.occurrences) for term in definition.terms) == 1:
        reasons.append("nothing is joined, so nothing is asked")
        return reasons
    reasons.append("in batches it asks once for many transactions, where others ask for each")
    if LIVE["strobe"].refusal(definition) is None:
        reasons.append("the view shows all keys, so strobe and c-strobe could keep it too")
    if len(definition.sources) == 1:
        reasons.append("all relations are at one source, so eca could keep it too")
    elif len(definition.relations) > len(definition.sources):
        reasons.append("some source has several of its relations, which medwrap would join there")
    return reasons
