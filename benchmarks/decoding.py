"""PostgreSQL's single rows beside an older revision of ours: both decode the same messages, in turns, in one run.

    python benchmarks/decoding.py [--before 4bb13f2] [--rounds 5] [--json FILE]

The older code comes out of git's history, by default from before bounds were checked. A figure is how many times as
fast the code of today is, by the best CPU time of several rounds: others can only make a round worse. ``feed`` is a
whole feed, begin and commit of each transaction included, that gets its messages from memory.
"""

from __future__ import annotations

import argparse
import io
import json
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BEFORE = "4bb13f2"
ROWS, REPEATS = 4_000, 7
NUMERIC = (10 << 16 | 2) + 4
TEXTS = {
    "int8": [b"5", b"123456", b"-77000000001"],
    "text": [b"hello", b"a longer text of some words"],
    "numeric": [b"12.50", b"-1234567.89"],
    "float8": [b"1.5", b"0.1", b"1e-310"],
    "bool": [b"t", b"f"],
    "timestamp": [b"2024-01-01 12:00:00.123456"],
    "timestamptz": [b"2024-01-01 12:00:00.123456+00"],
    "date": [b"2024-02-29"],
    "bytea": [b"\\x00ff"],
}
SHAPES = {
    **{kind: (kind,) * 4 for kind in TEXTS},
    "peers": ("int8", "int8", "int8"),
    "items": ("int8", "text", "numeric", "int8"),
    "mixed": ("int8", "int8", "text", "numeric", "timestamp", "bool"),
}
OID = 77


def rows_of(kinds: tuple[str, ...]) -> list[list[bytes]]:
    return [[TEXTS[kind][n % len(TEXTS[kind])] for kind in kinds] for n in range(ROWS)]


def written(row: list[bytes]) -> bytes:
    texts = (b"t" + struct.pack(">I", len(text)) + text for text in row)
    return struct.pack(">H", len(row)) + b"".join(texts)


def inserted(row: list[bytes]) -> bytes:
    return b"I" + struct.pack(">I", OID) + b"N" + written(row)


def updated(old: list[bytes], new: list[bytes]) -> bytes:
    return b"U" + struct.pack(">I", OID) + b"O" + written(old) + b"N" + written(new)


# -- in a process with one of the two ------------------------------------------------------------------


def microseconds(shape: str) -> float:
    """Of an insertion and an update."""
    from viewkeeper.sources.postgres.codec import ColumnType, codec_for
    from viewkeeper.sources.postgres.pgoutput import TupleDecoder

    kinds = SHAPES[shape]
    modifiers = {"numeric": NUMERIC}
    types = [ColumnType(f"pg_catalog.{kind}", "b", modifiers.get(kind, -1)) for kind in kinds]
    decoder = TupleDecoder([codec_for(each).parse for each in types])  # type: ignore[union-attr]
    rows = rows_of(kinds)
    inserts = [inserted(row) for row in rows]
    updates = [updated(*pair) for pair in zip(rows, rows[1:] + rows[:1], strict=True)]

    def decode() -> None:
        for message in inserts:
            decoder.insert(message)
        for message in updates:
            decoder.update(message)

    return best(decode) / ROWS * 1e6


def feed_microseconds() -> float:
    """Of a transaction of one updated row, by a feed."""
    from viewkeeper.sources.postgres import feed as feeds
    from viewkeeper.sources.postgres.catalog import described
    from viewkeeper.sources.postgres.position import make_position
    from viewkeeper.sources.postgres.shapes import TrackedRelations

    kinds = SHAPES["items"]
    columns = [
        {
            "num": number, "name": f"c{number}", "generated": "", "oid": 1_000 + number, "modifier": -1,
            "type": f"pg_catalog.{kind}", "category": "b", "element": "", "element_category": "",
            "base_modifier": NUMERIC if kind == "numeric" else -1,
        }
        for number, kind in enumerate(kinds, start=1)
    ]  # fmt: skip
    relation = {
        "oid": OID, "schema": "public", "name": "r", "columns": columns, "key": ["c1"], "children": [],
    }  # fmt: skip
    tracked = TrackedRelations("s", [described("r", relation)], lambda oids: {}, lambda o, n: None)
    rows = rows_of(kinds)
    messages = []
    for number, (old, new) in enumerate(zip(rows, rows[1:] + rows[:1], strict=True), start=1):
        end = number * 1_000
        messages += [
            b"B" + struct.pack(">QQI", 1, 800_000_000_000_000 + number, number),
            updated(old, new),
            b"C" + struct.pack(">BQQQ", 0, end - 8, end, 5),
        ]

    class Stream:
        sent_lsn = 0

        def __init__(self, *_: Any, **__: Any) -> None:
            self._left = messages

        def read(self, most: int) -> list[bytes]:
            found, self._left = self._left[:most], self._left[most:]
            return found

    feeds.ReplicationStream = Stream  # type: ignore[assignment, misc]
    feeds.STRETCH_MESSAGES_MIN = 10**9  # one by one

    def follow() -> None:
        start: Any = make_position("system", 1, 0)
        url: Any = None
        feed = feeds.PostgresFeed("s", url, "slot", tracked, start, life="", xid_near=1)
        found = 0
        while found < ROWS:
            found += len(feed.poll(0.0))

    return best(follow) / ROWS * 1e6


def best(work: Callable[[], None]) -> float:
    def timed() -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    return min(timed() for _ in range(REPEATS))


def measured() -> dict[str, float]:
    return {**{shape: microseconds(shape) for shape in SHAPES}, "feed": feed_microseconds()}


# -- both, in turns ------------------------------------------------------------------------------------


def compared(before: Path, rounds: int) -> dict[str, dict[str, float]]:
    sources = {"before": before / "src", "now": ROOT / "src"}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sources}
    for number in range(rounds):
        for name in sorted(sources, reverse=bool(number % 2)):
            words = [sys.executable, "-I", __file__, "--measure", str(sources[name])]
            told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            found[name].append(json.loads(told))
    figures = {}
    for shape in found["now"][0]:
        least = {name: min(each[shape] for each in runs) for name, runs in found.items()}
        figures[shape] = {
            "times_as_fast": round(least["before"] / least["now"], 3),
            "microseconds": round(least["now"], 2),
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.measure is not None:
        sys.path.insert(0, str(options.measure))
        print(json.dumps(measured()))
        return
    with tempfile.TemporaryDirectory(prefix="viewkeeper-before-") as folder:
        words = ["git", "-C", str(ROOT), "archive", options.before, "src/viewkeeper"]
        archive = subprocess.run(words, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        figures = compared(Path(folder), options.rounds)
    for shape, figure in figures.items():
        print(
            f"{shape:<12} {figure['times_as_fast']:.2f} times as fast, {figure['microseconds']} µs"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
