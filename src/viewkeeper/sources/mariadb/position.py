"""Places in the binary log: a file, an offset, and marks by which another history gives itself away.

Files are numbered and never reused, unless somebody says RESET MASTER or restores a backup; then the
same file name means another log. ``born`` (the second in which the file was begun) and the last
``gtid`` tell such histories apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viewkeeper.errors import SourceError, UsageError, rebuild_command
from viewkeeper.sources.interface import Position

# Behind the four magic bytes of a log file.
FIRST_OFFSET = 4


@dataclass(frozen=True)
class Place:
    """``born`` is 0 and ``gtid`` empty where they are not known."""

    file: str
    offset: int
    born: int = 0
    gtid: str = ""

    @property
    def order(self) -> tuple[int, int]:
        return file_number(self.file), self.offset

    @property
    def identity(self) -> str:
        return f"{self.file}:{self.offset}"

    def as_position(self) -> Position:
        return {"file": self.file, "offset": self.offset, "born": self.born, "gtid": self.gtid}


def is_log_file(file: str) -> bool:
    """Whether a log of this name is a file of numbered events; others have another ending."""
    return file.rpartition(".")[2].isdigit()


def file_number(file: str) -> int:
    return int(file.rpartition(".")[2])


def place_of(position: Position) -> Place:
    """Raises UsageError for something that is no position of a MariaDB source."""
    fields: dict[str, Any] = dict(position)
    try:
        place = Place(
            str(fields["file"]), int(fields["offset"]), int(fields.get("born", 0)),
            str(fields.get("gtid", "")),
        )  # fmt: skip
        file_number(place.file)
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            "bad-position",
            "this is no position in a MariaDB log",
            detail=f"expected file and offset, found {fields!r}",
        ) from None
    return place


def compare(left: Place, right: Place, source: str) -> int:
    """−1, 0 or 1; raises SourceError when the two belong to different histories."""
    same_file = left.file == right.file
    if left.file.rpartition(".")[0] != right.file.rpartition(".")[0] or (
        same_file and left.born and right.born and left.born != right.born
    ):
        raise another_history(source, f"{left.identity} and {right.identity} are of different logs")
    return (left.order > right.order) - (left.order < right.order)


def another_history(source: str, detail: str) -> SourceError:
    return SourceError(
        "feed-gap",
        f"the binary log of source {source} is not the one we have read so far",
        source=source,
        retryable=False,
        detail=detail,
        hint="after RESET MASTER, a restored backup or a failover: " + rebuild_command(source),
    )
