"""PostgreSQL's part of `make bench-sources`: the feed, cuts, queries at a cut.

Run alone: python benchmarks/sources.py --kinds postgres
"""

from __future__ import annotations

from typing import Any

import psycopg
from sources_measuring import ROWS_PER_TRANSACTION, cut_times, feed_times, query_times

from viewkeeper.sources.interface import Source
from viewkeeper.sources.opening import open_source
from viewkeeper.testing.postgres import EmbeddedPostgres

ROWS = 300_000
TABLE = "CREATE TABLE items (id bigint PRIMARY KEY, name text, price numeric(10,2), qty integer)"


def measure() -> dict[str, Any]:
    """Every figure, by name."""
    with EmbeddedPostgres() as server, psycopg.connect(server.url(), autocommit=True) as writer:
        writer.execute(TABLE)
        version = writer.info.parameter_status("server_version")
        figures: dict[str, Any] = {"kind": "postgres", "postgres": version}
        with open_source("bench", server.url(), allow_setup=True) as source:
            source.setup(["items"])
            for size in ROWS_PER_TRANSACTION:
                name = f"feed_rows_per_second_{size}_per_transaction"
                figures[name], figures["feed_cpu_us_per_row"] = feed_rate(source, writer, size)
            writer.execute("VACUUM ANALYZE items")
            figures |= query_times(source, ROWS)
            figures |= cut_times(source)
    return figures


def feed_rate(source: Source, writer: psycopg.Connection[Any], size: int) -> tuple[int, float]:
    """Rows per second of a feed that is behind by all of them, and our own CPU time per row."""
    count = ROWS if size > 1 else ROWS // 10
    writer.execute("TRUNCATE items")
    start = source.start_position()
    _fill(writer, count, size)
    elapsed, spent = feed_times(source, start, count, size)
    return round(count / elapsed), round(spent / count * 1e6, 2)


def _fill(writer: psycopg.Connection[Any], count: int, size: int) -> None:
    writer.execute(
        "CREATE OR REPLACE PROCEDURE fill(total bigint, size bigint) LANGUAGE plpgsql AS $$ "
        "BEGIN FOR low IN 0 .. total - 1 BY size LOOP INSERT INTO items "
        "SELECT n, 'item ' || n, n / 100.0, n % 7 FROM generate_series(low, "
        "least(low + size, total) - 1) n; COMMIT; END LOOP; END $$"
    )
    writer.execute("SET synchronous_commit = off")
    writer.execute(f"CALL fill({count}, {size})")
    writer.execute("SET synchronous_commit = on")
    writer.execute("SELECT pg_logical_emit_message(true, 'bench', '')")
