"""MariaDB's part of `make bench-sources`: the feed, cuts, queries at a cut.

Run alone: python benchmarks/sources.py --kinds mariadb
"""

from __future__ import annotations

from typing import Any

from sources_measuring import ROWS_PER_TRANSACTION, cut_times, feed_times, query_times

from viewkeeper.sources.interface import Source
from viewkeeper.sources.opening import open_source
from viewkeeper.testing.mariadb import PrivateMariaDB

ROWS = 300_000
TABLE = (
    "CREATE TABLE items (id BIGINT PRIMARY KEY, name TEXT, price DECIMAL(10,2), qty INT)"
    " ENGINE = InnoDB"
)


def measure() -> dict[str, Any]:
    """Every figure, by name."""
    with (
        PrivateMariaDB() as server,
        server.connect(autocommit=True) as connection,
        connection.cursor() as writer,
    ):
        writer.execute("CREATE DATABASE bench")
        writer.execute("USE bench")
        writer.execute(TABLE)
        figures: dict[str, Any] = {"kind": "mariadb", "mariadb": connection.get_server_info()}
        with open_source("bench", server.url("bench")) as source:
            for size in ROWS_PER_TRANSACTION:
                name = f"feed_rows_per_second_{size}_per_transaction"
                figures[name], figures["feed_cpu_us_per_row"] = feed_rate(source, writer, size)
            writer.execute("ANALYZE TABLE items")
            figures |= query_times(source, ROWS)
            figures |= cut_times(source)
    return figures


def feed_rate(source: Source, writer: Any, size: int) -> tuple[int, float]:
    """Rows per second of a feed that is behind by all of them, and our own CPU time per row."""
    count = ROWS if size > 1 else ROWS // 10
    writer.execute("TRUNCATE items")
    start = source.start_position()
    _fill(writer, count, size)
    elapsed, spent = feed_times(source, start, count, size)
    return round(count / elapsed), round(spent / count * 1e6, 2)


def _fill(writer: Any, count: int, size: int) -> None:
    writer.execute(
        "CREATE OR REPLACE PROCEDURE fill(total BIGINT, size BIGINT) BEGIN "
        "FOR step IN 0 .. (total - 1) DIV size DO INSERT INTO items "
        "SELECT n, CONCAT('item ', n), n / 100.0, n % 7 FROM "
        "(SELECT step * size + seq AS n FROM seq_0_to_999 WHERE seq < size) numbers "
        "WHERE n < total; COMMIT; END FOR; END"
    )
    writer.execute("SET autocommit = 0")
    writer.execute(f"CALL fill({count}, {size})")
    writer.execute("SET autocommit = 1")
