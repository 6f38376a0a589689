"""Work of Spark with an end: what takes longer is cancelled, and its caller goes on."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from viewkeeper.errors import UsageError

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")

# Cancelled tasks end at their next row; what does not end is left to its thread, which holds up nothing.
CANCEL_SECONDS = 5.0


def within(seconds: float, context: SparkContext, work: Callable[[], T]) -> T:
    """What ``work`` gives; raises UsageError when it takes longer, its jobs cancelled.

    It works in a thread: the planning of a query can't be interrupted, and may take long by itself.
    """
    group = f"viewkeeper-query-{uuid.uuid4()}"
    results: list[T] = []
    failures: list[BaseException] = []

    def working() -> None:
        try:
            context.setJobGroup(group, "a query of a reader", interruptOnCancel=True)
            results.append(work())
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=working, name=group, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        # Also those that it has not begun yet: it may still be planning, and would run for ever after.
        scala: Any = context._jsc
        scala.sc().cancelJobGroupAndFutureJobs(group)
        thread.join(CANCEL_SECONDS)
        raise UsageError(
            "query-timeout",
            f"the query took longer than {seconds:g} s and was cancelled",
            hint="give it more time with --timeout, or ask for less",
        )
    if failures:
        raise failures[0]
    return results[0]
