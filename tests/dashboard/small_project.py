"""A project without databases and without Spark: its warehouse is written row by row, so all is known."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.warehouse import Changes, Definition, EpochCommit, Extent, Warehouse

SCHEMA = Schema.of(id=INTEGER, name=STRING)
TEXT = "-- consistency: complete\nSELECT p.id, p.name FROM depot.people p\n"
HOSTILE = {
    101: "<script>document.title='broken into'</script><img src=x onerror=\"document.title='broken into'\">",
    102: "x" * 1_000_000,
    103: "safe \u202e gnp.exe \u200f end",
}

Row = tuple[int, str | None, int]


def changes(txn: int, *rows: Row) -> Changes:
    """Rows of one transaction: id, name, how many more (or fewer)."""
    columns = [[row[n] for row in rows] for n in range(3)]
    types = [pa.int64(), pa.string(), pa.int64()]
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    numbers = pa.array([txn] * len(rows), pa.int64())
    return Changes(pa.table([*arrays, numbers], ["id", "name", "_count", "_txn"]))


class SmallProject:
    """One view ``people`` over a SQLite file; transactions are written by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "views").mkdir(parents=True)
        (folder / "views" / "people.sql").write_text(TEXT)
        (folder / "viewkeeper.toml").write_text('[sources.depot]\nurl = "sqlite:///depot.db"\n')
        with closing(sqlite3.connect(folder / "depot.db")) as depot:
            depot.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
        self.warehouse = Warehouse.create(folder / "warehouse")
        empty = changes(0).rows.drop_columns(["_txn"])
        load = EpochCommit(
            1, 0, {"people": Extent(empty)}, definitions={"people": Definition(SCHEMA, TEXT)}
        )
        with self.warehouse.writer() as writer:
            writer.commit(load)

    def commit(self, *transactions: tuple[Row, ...]) -> None:
        """Each transaction in an epoch of its own."""
        with self.warehouse.writer() as writer:
            for rows in transactions:
                txn = writer.latest.last_txn + 1
                position = {"depot": {"seq": txn}}
                writer.commit(EpochCommit(txn, txn, {"people": changes(txn, *rows)}, position))

    def tell(self, **state: Any) -> None:
        """What a running keeper would tell; this process plays it."""
        told = {
            "pid": os.getpid(),
            "state": "running",
            "views": {"people": {"level": "complete", "protocol": "batched-sweep"}},
        }
        self.write("run.json", told | state)

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        path = self.folder / ".viewkeeper" / name
        path.parent.mkdir(exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(document))
        draft.replace(path)

    def read(self, name: str) -> Any:
        return json.loads((self.folder / ".viewkeeper" / name).read_text())


RENAME = {
    "id": "7",
    "at": "2026-05-01T12:00:00+00:00",
    "source": "depot",
    "relation": "people",
    "statement": "ALTER TABLE people RENAME COLUMN name TO full_name",
    "txn": 3,
    "status": "pending",
    "cost": "no row is read again",
    "effects": [
        {
            "view": "people",
            "effect": "the same columns, from another name",
            "before": "SELECT p.id, p.name\nFROM depot.people p",
            "after": "SELECT p.id, p.full_name AS name\nFROM depot.people p",
        }
    ],
}
