"""What a system is asked to do, and what it answers. Standard library only: every environment loads this."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

RELATIONS = {
    "orders": ("o_id", "cust_id", "qty"),
    "customers": ("cust_id", "name", "region_id"),
    "regions": ("region_id", "rname"),
}
KEYS = {"orders": "o_id", "customers": "cust_id", "regions": "region_id"}

# {relation} is what each system calls its input.
JOINED = (
    "FROM {orders} o JOIN {customers} c ON o.cust_id = c.cust_id "
    "JOIN {regions} r ON c.region_id = r.region_id"
)
VIEWS = {
    "join": f"SELECT o.o_id, o.qty, c.name, r.rname {JOINED}",
    "totals": f"SELECT r.rname, SUM(o.qty) AS total, COUNT(*) AS orders {JOINED} GROUP BY r.rname",
}
# What tells a right end from a wrong one, in any dialect; {view} is the view.
CHECKS = {
    "join": (
        "SELECT COUNT(*), SUM(o_id), SUM(qty), SUM(LENGTH(name)), SUM(LENGTH(rname)) FROM {view}"
    ),
    "totals": "SELECT COUNT(*), SUM(total), SUM(orders), SUM(LENGTH(rname)) FROM {view}",
}


@dataclass(frozen=True)
class Task:
    """One run of one system: load the base, then bring in the streams, one after the other.

    ``moves``: the small stream in which the view's size stays the same; all states are told instead.
    """

    peer: str
    view: str
    data: Path
    scratch: Path
    streams: tuple[str, ...]
    moves: bool = False
    rate: float = 0.0
    rate_seconds: float = 0.0

    @classmethod
    def read(cls, path: Path) -> Task:
        found = json.loads(path.read_text())
        found |= {"data": Path(found["data"]), "scratch": Path(found["scratch"])}
        return cls(**found | {"streams": tuple(found["streams"])})

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), default=str))

    def sql(self, **names: str) -> str:
        """The view's text over what a system calls its relations."""
        return VIEWS[self.view].format(**{name: names.get(name, name) for name in RELATIONS})

    def base(self, relation: str) -> Path:
        """A relation before the first stream, as Parquet."""
        return self.data / "base" / f"{relation}.parquet"

    def after(self, stream: str, relation: str) -> Path:
        """A relation after a stream, as Parquet: for systems that compute everything anew."""
        return self.data / f"after-{stream}" / f"{relation}.parquet"

    def changes(self, stream: str) -> Iterator[dict[str, Any]]:
        """A stream's transactions in order, each of one row: relation, before, after."""
        with (self.data / f"{stream}.jsonl").open() as lines:
            for line in lines:
                yield json.loads(line)

    def updates(self, stream: str) -> int:
        return int(self._expected[stream]["updates"])

    def is_right(self, stream: str, found: tuple[Any, ...]) -> bool:
        """Whether what `CHECKS` gives after a stream is what it must be."""
        expected: list[int] = self._expected[stream][self.view]
        return [int(value) for value in found] == expected

    @property
    def check(self) -> str:
        return CHECKS[self.view]

    @property
    def _expected(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.data / "expected.json").read_text())
        return found


@dataclass
class Streamed:
    """What bringing in one stream took; ``right`` is None where the end can't be looked at."""

    stream: str
    updates: int
    seconds: float
    right: bool | None = None
    asked_rows: int | None = None
    asked_queries: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class Measurement:
    """A system's answer. ``states``: of every state that it showed, the signed rows that led to it."""

    version: str
    load_seconds: float | None = None
    streams: list[Streamed] = field(default_factory=list)
    freshness: dict[str, Any] | None = None
    states: list[list[list[Any]]] | None = None
    notes: str = ""


def replaced(
    before: Iterable[tuple[Any, ...]], after: Iterable[tuple[Any, ...]]
) -> list[list[Any]]:
    """The signed rows that lead from one whole state to another."""
    return [*([-1, list(row)] for row in before), *([1, list(row)] for row in after)]


class Clock:
    """Seconds of the block that was timed last."""

    seconds = 0.0

    @contextmanager
    def timing(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds = time.perf_counter() - started
