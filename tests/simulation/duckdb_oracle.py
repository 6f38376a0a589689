"""A second opinion on histories: DuckDB holds the same rows, and runs the view's own text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from unit.sql.oracle import database, insert
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.timeline import Transaction


class DuckOracle:
    """What DuckDB says of a text while transactions are committed."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, text: str) -> None:
        self._connection = connection
        self._text = text

    def commit(self, transaction: Transaction) -> None:
        for name, change in transaction.changes:
            same = " AND ".join(
                f"{column} IS NOT DISTINCT FROM ?" for column in change.schema.names
            )
            for row, count in change:
                for _ in range(-count):
                    first = f"SELECT min(rowid) FROM {name} WHERE {same}"
                    self._connection.execute(f"DELETE FROM {name} WHERE rowid = ({first})", row)
            insert(self._connection, name, [row for row, count in change for _ in range(count)])

    def rows(self) -> list[Any]:
        return self._connection.execute(self._text).fetchall()


@contextmanager
def duck_oracle(scenario: Scenario, path: Path) -> Iterator[DuckOracle]:
    """DuckDB with the scenario's first contents."""
    with database(scenario.initial) as connection:
        yield DuckOracle(connection, path.read_text())
