"""Large relations read by Spark's executors, all of them at the cut that this process holds open.

Only where the source can share its cut with other processes (PostgreSQL exports its snapshot), and only
on a cluster: with a local master an executor is a thread of a JVM beside us, and reading in our own
threads is quicker. The executors need Viewkeeper installed, a way to the source, and its password, which
travels with the task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from viewkeeper.algebra.types import Schema
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import KeyedRead, Snapshot
from viewkeeper.sources.opening import open_source
from viewkeeper.spark.reading_in_parts import has_executors, read_in_parts, tasks_at_once
from viewkeeper.spark.relation import SparkRelation
from viewkeeper.spark.staged import Staging

# Below this a relation is read before executors have begun.
ROWS_MIN = 100_000
PART_ROWS_MIN = 50_000
# More parts than tasks at a time: a task that is done early takes another one.
PARTS_PER_TASK = 2
_SIGN = "viewkeeper-source-error: "


@dataclass(frozen=True)
class PartReader:
    """Reads parts of a relation in another process, at a cut that is open in this one."""

    relation: str
    columns: tuple[str, ...]
    parts: int
    # With the source's address and password in it: never shown.
    shared: Mapping[str, Any] = field(repr=False)

    def __call__(self, part: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._read(part)
        except SourceError as error:
            # Spark hands texts over, not exceptions.
            raise RuntimeError(_SIGN + json.dumps(error.as_dict())) from None

    def _read(self, part: int) -> Iterator[pa.RecordBatch]:
        address = self.shared["source"]
        question = KeyedRead(self.relation, self.columns, part=part, parts=self.parts)
        with (
            open_source(
                address["name"], address["url"], statement_seconds=address["statement_seconds"]
            ) as source,
            source.cut([self.relation], self.shared) as cut,
        ):
            yield from cut.read(question)


def parts_for(rows: int | None, tasks: int) -> int:
    """In how many parts executors read a relation of about ``rows`` rows; 0: it is not worth it."""
    if rows is None or rows < ROWS_MIN:
        return 0
    return max(1, min(tasks * PARTS_PER_TASK, rows // PART_ROWS_MIN))


def read_by_executors(
    staging: Staging, cut: Snapshot, relation: str, needed: Schema
) -> SparkRelation | None:
    """All rows of a relation at the cut, or None where we had better read them ourselves."""
    if not has_executors(staging.session):
        return None
    parts = parts_for(cut.row_estimate(relation), tasks_at_once(staging.session))
    shared = cut.share() if parts else None
    if shared is None or "source" not in shared:
        return None
    reader = PartReader(relation, needed.names, parts, shared)
    try:
        return read_in_parts(staging, needed, parts, reader)
    except Exception as failure:
        raise source_error(str(failure), str(shared["source"]["name"])) from failure


def source_error(text: str, source: str) -> SourceError:
    """What went wrong at a source while executors read it, from Spark's account of it."""
    _, sign, told = text.partition(_SIGN)
    if sign:
        said, _ = json.JSONDecoder().raw_decode(told)
        return SourceError(
            said["code"],
            said["message"],
            source=said["source"],
            retryable=said["retryable"],
            detail=said.get("detail", ""),
            hint=said.get("hint", ""),
        )
    lines = [line.strip() for line in text.splitlines() if "Error" in line] or [text[:300]]
    return SourceError(
        "executors-cannot-read",
        f"Spark's executors could not read source {source}",
        source=source,
        retryable=False,
        detail=lines[-1],
        hint="every executor needs the same Viewkeeper in its Python, and a way to the source",
    )
