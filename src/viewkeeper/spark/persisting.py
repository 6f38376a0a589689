"""Relations from which several others are computed, computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

from viewkeeper.spark.relation import SparkRelation
from viewkeeper.spark.staged import StagedRelation


@contextmanager
def persisted() -> Iterator[Callable[[Any], Any]]:
    """Gives a function that makes Spark keep a relation's rows; they are let go at the end."""
    kept: list[DataFrame] = []

    def share(relation: Any) -> Any:
        if isinstance(relation, StagedRelation):
            return relation  # it is here already
        frame = relation.frame.persist()
        kept.append(frame)
        return SparkRelation.from_frame(frame, relation.schema)

    try:
        yield share
    finally:
        for frame in kept:
            frame.unpersist()
