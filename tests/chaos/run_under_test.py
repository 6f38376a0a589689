"""``viewkeeper`` with handles for the storm: a clock that can jump, deliveries that are repeated.

Everything else is the product as it is, unless a variant is asked for that is known to be wrong. Run as ``python -m chaos.run_under_test run …``.
"""

from __future__ import annotations

import datetime as dt
import faulthandler
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

from chaos.wrong import VARIANTS
from viewkeeper.cli import main
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.project import keeper
from viewkeeper.sources.postgres import feed as postgres_feed
from viewkeeper.warehouse import writer as warehouse_writer
from viewkeeper.warehouse.warehouse import Warehouse

CLOCK_FILE = "VIEWKEEPER_CHAOS_CLOCK"
VARIANT = "VIEWKEEPER_CHAOS_VARIANT"

_pipelines: list[Pipeline] = []
_true_time = time.time


def offset_seconds() -> float:
    """How wrong the clock is at the moment."""
    try:
        return float(Path(os.environ[CLOCK_FILE]).read_text() or 0)
    except (KeyError, OSError, ValueError):
        return 0.0


def wrong_clock() -> dt.datetime:
    return dt.datetime.fromtimestamp(_true_time() + offset_seconds(), dt.UTC)


def wrong_time() -> float:
    return _true_time() + offset_seconds()


def remember_pipeline() -> None:
    enter = Pipeline.__enter__

    def entered(self: Pipeline) -> Pipeline:
        _pipelines.append(self)
        return enter(self)

    Pipeline.__enter__ = entered  # type: ignore[method-assign]


def repeat_deliveries(number: int, frame: object) -> None:
    """Have every feed go back to where the ledger stands, as after a lost connection."""

    def repeat() -> None:
        for pipeline in _pipelines:
            for source, position in pipeline.writer.latest.positions.items():
                pipeline.read_again(source, position)

    threading.Thread(target=repeat, daemon=True).start()


def install() -> None:
    remember_pipeline()
    signal.signal(signal.SIGUSR1, repeat_deliveries)
    # Where a run that does not come to its end stands, for whoever has to find out why.
    faulthandler.register(signal.SIGUSR2, all_threads=True)
    if VARIANT in os.environ:
        VARIANTS[os.environ[VARIANT]](setattr)
    # Two small transactions that come together are a block: a storm has no backlogs of thousands.
    postgres_feed.BLOCK_MESSAGES_MIN = 6
    # And a few that wait are a backlog, worked off in several batches at the same cuts.
    keeper.Limits = partial(keeper.Limits, backlog_from=8, batch_transactions_max=20)  # type: ignore[misc]
    if CLOCK_FILE in os.environ:
        time.time = wrong_time
        warehouse_writer.system_clock = wrong_clock
        for function in (Warehouse.__init__, Warehouse.open, Warehouse.create):
            _replace_default(getattr(function, "__func__", function))


def _replace_default(function: object) -> None:
    """Where the clock is a default, it was bound when the function was made."""
    keywords = function.__kwdefaults__ or {}  # type: ignore[attr-defined]
    if "clock" in keywords:
        keywords["clock"] = wrong_clock
    positional = function.__defaults__ or ()  # type: ignore[attr-defined]
    function.__defaults__ = tuple(  # type: ignore[attr-defined]
        wrong_clock if getattr(each, "__name__", "") == "system_clock" else each
        for each in positional
    )


if __name__ == "__main__":
    install()
    main()
