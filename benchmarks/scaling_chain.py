"""A chain of small sources: relation i of source i points to relation i + 1 of the next one.

SQLite files, for a source then costs nothing but itself.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from viewkeeper.project.keeper import Keeper

ROWS = 2_000


class Chain:
    """Some views over a chain; use it in a ``with``. Needs a Spark that runs already."""

    def __init__(self, sources: int, views: int) -> None:
        self._stack = contextlib.ExitStack()
        self._sources = sources
        self._random = random.Random(sources)
        self._next = itertools.count(ROWS)
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="chain-")))
        for number in range(sources):
            with contextlib.closing(sqlite3.connect(self._file(number))) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, next INTEGER, v INTEGER)")
                rows = [(n, n * 7 % ROWS, n % 100) for n in range(ROWS)]
                database.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
                database.commit()
        (self.folder / "views").mkdir()
        for number in range(views):
            (self.folder / "views" / f"chain_{number}.sql").write_text(self._view(number))
        sections = (
            f'[sources.s{number}]\nurl = "sqlite:///{self._file(number)}"\n'
            for number in range(sources)
        )
        (self.folder / "viewkeeper.toml").write_text("".join(sections))

    def __enter__(self) -> Chain:
        self._keeper = self._stack.enter_context(Keeper.open(self.folder, allow_setup=True))
        self._pipeline = self._stack.enter_context(self._keeper.pipeline())
        self._pipeline.load()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def brought_in(self, rows: int) -> dict[str, Any]:
        """One transaction of so many rows in the first source, and what it took to bring it in."""
        with contextlib.closing(sqlite3.connect(self._file(0), timeout=60)) as database:
            new = [
                (next(self._next), self._random.randrange(ROWS), self._random.randrange(100))
                for _ in range(rows)
            ]
            started = time.perf_counter()
            database.executemany("INSERT INTO t VALUES (?, ?, ?)", new)
            database.commit()
        targets = self._pipeline.committed_now()
        queries = 0
        while not self._pipeline.has_applied(targets):
            cycle = self._pipeline.cycle(0.05)
            if cycle is not None:
                queries += sum(asked.queries for asked in cycle.asked.values())
        return {"seconds": time.perf_counter() - started, "queries": queries}

    def _file(self, number: int) -> Path:
        return self.folder / f"s{number}.db"

    def _view(self, number: int) -> str:
        names = range(self._sources)
        columns = ", ".join(f"t{i}.v AS v{i}" for i in names)
        joins = " ".join(f"JOIN s{i}.t t{i} ON t{i - 1}.next = t{i}.id" for i in names if i)
        return f"SELECT t0.id, {columns} FROM s0.t t0 {joins} WHERE t0.v >= {number}\n"
