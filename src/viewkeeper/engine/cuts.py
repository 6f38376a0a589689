"""A group's cuts: opened, waited for until every feed has passed them, and shared by jobs that follow.

Once each feed has passed its cut's bound, every transaction that an answer can reflect has arrived. Only then is
anything asked in a way that counts.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from viewkeeper.engine.intake import Intake
from viewkeeper.engine.messages import Snapshot
from viewkeeper.errors import SourceError
from viewkeeper.protocols.messages import Reflected
from viewkeeper.sources.interface import Position, SourceTransaction
from viewkeeper.sources.transaction_block import TransactionBlock
from viewkeeper.views.definition import RelationName, ViewDefinition


class Purpose(enum.Enum):
    """What cuts are opened for."""

    JOB = "job"
    FILL = "fill"
    READ = "read"


@dataclass
class OpenCuts:
    """Cuts on their way: asked for, then open (``snapshots``) until the feeds have passed them."""

    ticket: int
    purpose: Purpose
    snapshots: Mapping[str, Snapshot] | None = None
    opened_at: float = 0.0
    # When a feed was last seen to move, and where all stood then.
    moved_at: float = 0.0
    stood: Mapping[str, Position] | None = None
    is_prefetched: bool = False


@dataclass(frozen=True)
class SharedCuts:
    """Cuts that the feeds have passed, and that the next job may be asked at, too."""

    ticket: int
    snapshots: Mapping[str, Snapshot]
    until: float


def are_of_this_life(snapshots: Mapping[str, Snapshot], life: Mapping[str, str | None]) -> bool:
    """Whether no source was restarted between its cut and what its feed has delivered."""
    return all(snapshot.life == life[name] for name, snapshot in snapshots.items())


def behind(snapshots: Mapping[str, Snapshot], intake: Intake) -> list[str]:
    """The sources whose feed has not passed its cut."""
    return [
        name
        for name, snapshot in snapshots.items()
        if intake.life[name] is None or intake.compare(name, intake.fed[name], snapshot.bound) < 0
    ]


def reflected(
    snapshots: Mapping[str, Snapshot], intake: Intake, applied: Mapping[str, int]
) -> dict[str, Reflected]:
    """By source, which transactions its cut reflects: all that are in batches, and of those that wait the
    ones that the cut says."""
    waiting: dict[str, list[SourceTransaction | TransactionBlock]] = {
        name: [] for name in snapshots
    }
    for _, origin, *_ in intake.integrator.pending:
        if origin.source in waiting:
            waiting[origin.source].append(origin)
    return {
        name: reflected_by(snapshot, applied[name], waiting[name])
        for name, snapshot in snapshots.items()
    }


def reflected_by(
    cut: Snapshot, applied: int, waiting: Sequence[SourceTransaction | TransactionBlock]
) -> Reflected:
    """Which transactions of its source a cut reflects: all that are applied, and of those that wait, whose
    numbers follow, the ones the cut says."""
    shown: list[bool] = []
    for is_block, some in groupby(waiting, key=lambda each: isinstance(each, TransactionBlock)):
        if is_block:
            for block in cast("Iterable[TransactionBlock]", some):
                shown += cut.reflects_block(block)
        else:
            shown += cut.reflects_each(list(cast("Iterable[SourceTransaction]", some)))
    prefix = shown.index(False) if False in shown else len(shown)
    also = [applied + 1 + n for n in range(prefix, len(shown)) if shown[n]]
    return Reflected(applied + prefix, also=frozenset(also))


def other_type(
    snapshots: Mapping[str, Snapshot], views: Iterable[ViewDefinition]
) -> SourceError | None:
    """A broken query, where a column has another type at its cut than the views know."""
    for definition in views:
        for term in definition.all_terms:
            for occurrence in term.occurrences:
                if occurrence.source not in snapshots:
                    continue
                error = _other_type(snapshots, occurrence.name, occurrence.schema)
                if error is not None:
                    return error
    return None


def _other_type(
    snapshots: Mapping[str, Snapshot], name: RelationName, schema: object
) -> SourceError | None:
    found = snapshots[name.source].schemas[name.relation].schema
    for field in schema:  # type: ignore[attr-defined]
        if field.name in found and found.type_of(field.name) != field.type:
            what = f"{name.relation}.{field.name}"
            now = found.type_of(field.name)
            return broken_types(name.source, f"{what} as {field.type}", f"{what} as {now}")
    return None


def broken_types(source: str, expected: str, found: str) -> SourceError:
    """What was asked for has other types by now: somebody changed the schema."""
    return SourceError(
        "broken-query",
        f"source {source} answers with other types than it had",
        source=source,
        retryable=False,
        detail=f"expected {expected}; found {found}",
        hint="its schema has changed: `viewkeeper run` takes the change when its feed tells of it",
    )


def source_restarted(name: str) -> SourceError:
    return SourceError(
        "source-restarted",
        f"source {name} was restarted while it was being read",
        source=name,
        retryable=True,
    )


def cut_behind(name: str) -> SourceError:
    return SourceError(
        "cut-behind",
        f"source {name} shows an older state than the views have already",
        source=name,
        retryable=True,
        detail="a replica that lags behind, or a server that was restored",
        hint="it is tried again; if it stays so, look at where the source's address leads",
    )


def feed_behind(names: list[str], waited_seconds: float) -> SourceError:
    return SourceError(
        "feed-behind",
        f"the feed of {', '.join(names)} does not keep up with its source",
        source=names[0],
        retryable=True,
        detail=f"it stood still for {waited_seconds:.0f} s before a position that it must pass",
        hint="it is tried again; look at the source's load and its log",
    )
