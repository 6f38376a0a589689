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
    # The version of the database's schema up to which its changes were told; 0 when that was not noted.
    schema: int = 0
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    # The shapes as they stand in a position: made once, not for every transaction.
    encoded: Mapping[str, Any] = field(default_factory=dict)

    def moved(self, seq: int, tag: int) -> Place:
        return Place(self.history, seq, tag, self.schema, self.shapes, self.encoded)

    def with_shapes(self, shapes: Mapping[str, Shape]) -> Place:
        encoded = {relation: shape.as_json() for relation, shape in shapes.items()}
        return replace(self, shapes=dict(shapes), encoded=encoded)


def position_of(place: Place, after: int | None = None) -> Position:
    """JSON-able; ``after`` is the number before a transaction's first row."""
    position = {
        "history": place.history,
        "seq": place.seq,
        "tag": place.tag,
        "schema": place.schema,
        "shapes": place.encoded,
    }
    if after is not None:
        position["after"] = after
    return position


def parse_position(position: Position, source: str) -> Place:
    try:
        shapes = {relation: Shape(*parts) for relation, parts in position["shapes"].items()}
        seq, tag, version = position["seq"], position["tag"], position.get("schema", 0)
        place = Place(str(position["history"]), int(seq), int(tag), int(version))
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


def order_of(position: Position) -> tuple[int, int]:
    """What positions of one history are compared by: the log's number, then the schema's version.

    A change of the schema moves no number of the log, and may change rows all the same: a position
    that does not count it is behind one that does.
    """
    return int(position["seq"]), int(position.get("schema", 0))


def feed_gap(source: str, detail: str) -> SourceError:
    return SourceError(
        "feed-gap",
        f"the feed of source {source} can't go on from where it stood",
        source=source,
        retryable=False,
        detail=detail,
        hint=rebuild_command(source),
    )
