"""Whole relations of one source at one cut, read by several connections where the source allows it.

A large relation is asked for in parts. Each free thread takes the next part; a source whose snapshot
belongs to one connection is read by that one alone, and then parts would only cost.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from viewkeeper.algebra.types import Schema
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import KeyedRead, Snapshot
from viewkeeper.views.definition import RelationName

# Each reader thread decodes what it reads.
READERS_MAX = min(4, os.cpu_count() or 1)
# Below this a part is not worth a connection.
PART_ROWS_MIN = 100_000
ROWS_BETWEEN_REPORTS = 100_000


@dataclass(frozen=True)
class RowsRead:
    """How far a relation has been read; ``expected`` is what the source's statistics say."""

    rows: int
    expected: int | None
    seconds: float
    is_whole: bool

    @property
    def percent(self) -> int | None:
        """Not before the end is it all, whatever the statistics say."""
        if self.is_whole:
            return 100
        return None if not self.expected else min(99, 100 * self.rows // self.expected)

    @property
    def rows_per_second(self) -> int:
        return round(self.rows / self.seconds) if self.seconds > 0 else 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "rows_expected": self.expected,
            "percent": self.percent,
            "rows_per_second": self.rows_per_second,
        }


# Told from the threads that read, one at a time for a source.
OnRows = Callable[[RelationName, RowsRead], None]


@dataclass
class _Progress:
    relation: RelationName
    expected: int | None
    parts: int
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    reported: int = 0
    parts_done: int = 0
    started: float | None = None

    @property
    def is_whole(self) -> bool:
        return self.parts_done == self.parts


class BulkReading:
    """Reads once; `batches` gives the rows by relation."""

    def __init__(
        self, cut: Snapshot, needed: Mapping[RelationName, Schema], on_rows: OnRows
    ) -> None:
        self._cut, self._needed, self._on_rows = cut, needed, on_rows
        self._lock = threading.Lock()
        self._progress: dict[RelationName, _Progress] = {}
        self._parts: list[tuple[_Progress, int]] = []

    def batches(self) -> dict[RelationName, list[pa.RecordBatch]]:
        """All rows, in any order. Raises what a reader met first; the others stop then."""
        with contextlib.ExitStack() as stack:
            expected = {name: self._cut.row_estimate(name.relation) for name in self._needed}
            readers = self._readers(sum(rows or 0 for rows in expected.values()), stack)
            for name, rows in expected.items():
                parts = max(1, min(len(readers), (rows or 0) // PART_ROWS_MIN))
                progress = self._progress[name] = _Progress(name, rows, parts)
                self._parts += [(progress, part) for part in range(parts)]
            with ThreadPoolExecutor(max_workers=len(readers)) as threads:
                list(threads.map(self._work, readers))
        return {name: progress.batches for name, progress in self._progress.items()}

    def _readers(self, rows: int, stack: contextlib.ExitStack) -> list[Snapshot]:
        readers = [self._cut]
        while len(readers) < min(READERS_MAX, rows // PART_ROWS_MIN):
            # A source that has no connection to spare is read with those that we have.
            with contextlib.suppress(SourceError):
                twin = self._cut.twin()
                if twin is not None:
                    readers.append(stack.enter_context(twin))
                    continue
            break
        return readers

    def _work(self, cut: Snapshot) -> None:
        while True:
            with self._lock:
                if not self._parts:
                    return
                progress, part = self._parts.pop(0)
                progress.started = progress.started or time.monotonic()
            try:
                self._read(cut, progress, part)
            except BaseException:
                with self._lock:
                    self._parts.clear()
                raise

    def _read(self, cut: Snapshot, progress: _Progress, part: int) -> None:
        name = progress.relation
        columns = self._needed[name].names
        question = KeyedRead(name.relation, columns, part=part, parts=progress.parts)
        for batch in cut.read(question):
            with self._lock:
                progress.batches.append(batch)
                progress.rows += batch.num_rows
                if progress.rows - progress.reported >= ROWS_BETWEEN_REPORTS:
                    self._report(progress)
        with self._lock:
            progress.parts_done += 1
            if progress.is_whole:
                self._report(progress)

    def _report(self, progress: _Progress) -> None:
        progress.reported = progress.rows
        seconds = time.monotonic() - (progress.started or 0.0)
        seen = RowsRead(progress.rows, progress.expected, seconds, progress.is_whole)
        self._on_rows(progress.relation, seen)
