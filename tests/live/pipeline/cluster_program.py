"""The driver of `test_cluster`, a process of its own: ``python cluster_program.py PROJECT SHOP_URL``.

Loads a view, has one large transaction committed, brings it in, and tells in JSON who did what.
"""

from __future__ import annotations

import json
import sys

import psycopg

import viewkeeper
from viewkeeper.live.reading import contents
from viewkeeper.live.reading.bulk_reading import BulkReading
from viewkeeper.run_events import RelationRead, RunEvent

READ_HERE: list[str] = []


class Noted(BulkReading):
    """Reads in the driver, and says what."""

    def __init__(self, cut, needed, on_rows):
        READ_HERE.extend(str(name) for name in needed)
        super().__init__(cut, needed, on_rows)


def main() -> None:
    folder, shop = sys.argv[1:3]
    contents.BulkReading = Noted
    read: dict[str, int] = {}

    def heard(event: RunEvent) -> None:
        if isinstance(event, RelationRead):
            read[event.relation] = event.rows

    with viewkeeper.open(folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up(heard)
        read_here = list(READ_HERE)
        loaded = keeper.warehouse().read_arrow("sales").num_rows
        with psycopg.connect(shop) as database:
            database.execute("UPDATE orders SET cust = (cust + 1) % 100 WHERE id % 10 = 0")
        keeper.run_until_caught_up(heard)
        found = keeper.warehouse().read_arrow("sales").to_pydict()
        told = {
            "read": read,
            "read_here": read_here,
            "loaded": loaded,
            "sums": [len(found["id"]), sum(found["id"]), sum(map(len, found["name"]))],
        }
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    main()
