"""A place in the log: its number, the random tag of the row there, and the relations' shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from viewkeeper.errors import SourceError, rebuild_command
from viewkeeper.sources.interface import Position
from viewkeeper.sources.sqlite.shapes import Shape


@dataclass(frozen=True)
class Clock:
    """The log's newest number, the tag of the row that has it, and which history it belongs to."""

    seq: int
    tag: int
    history: str
    may_prune: bool = False


@dataclass(frozen=True)
class Place:
    """A parsed position."""

    history: str
    seq: int
    tag: int
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    # The shapes as they stand in a position: made once, not for every transaction.
    encoded: Mapping[str, Any] = field(default_factory=dict)

    def moved(self, seq: int, tag: int) -> Place:
        return Place(self.history, seq, tag, self.shapes, self.encoded)

    def with_shapes(self, shapes: Mapping[str, Shape]) -> Place:
        encoded = {relation: shape.as_json() for relation, shape in shapes.items()}
        return replace(self, shapes=dict(shapes), encoded=encoded)


def position_of(place: Place, after: int | None = None) -> Position:
    """JSON-able; ``after`` is the number before a transaction's first row."""
    position = {
        "history": place.history,
        "seq": place.seq,
        "tag": place.tag,
        "shapes": place.encoded,
    }
    if after is not None:
        position["after"] = after
    return position


def parse_position(position: Position, source: str) -> Place:
    try:
        shapes = {relation: Shape(*parts) for relation, parts in position["shapes"].items()}
        place = Place(str(position["history"]), int(position["seq"]), int(position["tag"]))
        return place.with_shapes(shapes)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SourceError(
            "bad-position",
            f"this is no position of source {source}",
            source=source,
            retryable=False,
            detail=f"found {dict(position)!r}: {error}",
            hint=rebuild_command(source),
        ) from None


def feed_gap(source: str, detail: str) -> SourceError:
    return SourceError(
        "feed-gap",
        f"the feed of source {source} can't go on from where it stood",
        source=source,
        retryable=False,
        detail=detail,
        hint=rebuild_command(source),
    )
