"""What each choice costs for a relation that a view joins, to ask its source or to keep a copy; and which
of the two the measured traffic speaks for.

Pure: the rules are plain, and every advice says which one made it.

| in this order | then |
|---|---|
| the view keeps a copy already | keep: what it would cost to ask is no longer measured |
| it was asked for less than `QUESTIONS_MIN` times | ask: nothing speaks for a copy yet |
| its source does not say how large it is | ask |
| the copy would be larger than `COPY_BYTES_MAX` | ask: copies are held in memory |
| more of its rows changed than were fetched | ask: a copy is written at every change |
| fewer rows were fetched than it has | ask: loading a copy would fetch more |
| none of these | keep |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.types import Kind, Schema
from viewkeeper.views.definition import LOCAL, RelationName, ViewDefinition
from viewkeeper.views.planning import Route, routes
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import Upkeep

COPY_BYTES_MAX = 256 << 20
# With fewer, it may be chance.
QUESTIONS_MIN = 10
# What a value takes in Arrow; of text, a guess.
_BYTES = {Kind.BOOLEAN: 1, Kind.DATE: 4, Kind.DECIMAL: 16, Kind.STRING: 24, Kind.BINARY: 24}
_BYTES_OTHERWISE = 8


@dataclass(frozen=True)
class Traffic:
    """What was measured of one relation, for all views: questions with their answers, changed rows."""

    queries: int = 0
    keys: int = 0
    rows: int = 0
    bytes: int = 0
    changed: int = 0


@dataclass(frozen=True)
class Choices:
    """What it costs a view to ask for a relation, and to keep it.

    ``questions``: how many questions for it a change of each relation leads to. ``is_whole``: some of
    them ask for all of it. ``rows``: about how many it has, where that is known.
    """

    relation: RelationName
    questions: Mapping[RelationName, int]
    is_whole: bool
    row_bytes: int
    rows: int | None
    is_kept: bool

    @property
    def copy_bytes(self) -> int | None:
        return None if self.rows is None else self.rows * self.row_bytes

    def as_dict(self) -> dict[str, Any]:
        return {
            "relation": str(self.relation),
            "kept": self.is_kept,
            "questions": {str(start): number for start, number in self.questions.items()},
            "whole_relation": self.is_whole,
            "row_bytes": self.row_bytes,
            "rows": self.rows,
            "copy_bytes": self.copy_bytes,
        }


@dataclass(frozen=True)
class Advice:
    """Whether to keep a copy, and why."""

    choices: Choices
    traffic: Traffic
    keep: bool
    reason: str


def choices(definition: ViewDefinition, sizes: Mapping[RelationName, int]) -> tuple[Choices, ...]:
    """The relations that somebody is asked for, in order of appearance; ``sizes`` in rows."""
    narrow = pruned(definition)
    ways = routes(narrow)
    schemas = {o.name: o.schema for term in narrow.all_terms for o in term.occurrences}
    kept = Upkeep(narrow).kept
    return tuple(
        Choices(
            name,
            _questions(name, ways),
            any(hop.is_whole for way in ways for hop in way.hops if hop.name == name),
            row_bytes(schemas[name]),
            sizes.get(name),
            name in kept,
        )
        for name in definition.relations
        if any(hop.name == name for way in ways for hop in way.hops)
    )


def _questions(name: RelationName, ways: tuple[Route, ...]) -> dict[RelationName, int]:
    found: Counter[RelationName] = Counter()
    for way in ways:
        if way.name.source != LOCAL:
            found[way.name] += sum(hop.name == name for hop in way.hops)
    return {start: number for start, number in found.items() if number}


def row_bytes(schema: Schema) -> int:
    """About how much a row takes."""
    return sum(_BYTES.get(field.type.kind, _BYTES_OTHERWISE) for field in schema)


def advised(about: Choices, traffic: Traffic) -> Advice:
    """Which choice the traffic speaks for."""
    copy = about.copy_bytes
    if about.is_kept:
        return Advice(about, traffic, True, "it is kept; what it would cost to ask is not measured")
    if not traffic.queries:
        return Advice(about, traffic, False, "it was not asked for yet")
    if traffic.queries < QUESTIONS_MIN:
        reason = f"it was asked for less than {QUESTIONS_MIN} times, which may be chance"
        return Advice(about, traffic, False, reason)
    if copy is None or about.rows is None:
        return Advice(about, traffic, False, "its source does not say how large it is")
    if copy > COPY_BYTES_MAX:
        reason = f"a copy would take more than {COPY_BYTES_MAX >> 20} MiB of memory"
        return Advice(about, traffic, False, reason)
    if traffic.changed > traffic.rows:
        reason = "more of its rows changed than were fetched, and a copy is written at every change"
        return Advice(about, traffic, False, reason)
    if traffic.rows < about.rows:
        reason = "fewer rows were fetched so far than loading a copy would fetch"
        return Advice(about, traffic, False, reason)
    times = traffic.rows / max(about.rows, 1)
    return Advice(
        about, traffic, True, f"what was fetched would have filled a copy {times:.1f} times"
    )
