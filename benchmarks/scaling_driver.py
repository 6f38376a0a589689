"""The driver of one load on a cluster: ``scaling_driver.py WARM_PROJECT PROJECT``, told by lines of input.

The first project warms the executors; the second one is measured. Says when it is ready and when it has
loaded, and waits for a word after each.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from peers.processes import cpu_seconds

from viewkeeper.project.keeper import Keeper


def main() -> None:
    warm, measured = sys.argv[1:3]
    with Keeper.open(warm, allow_setup=True) as first:
        with first.pipeline() as pipeline:
            pipeline.load()
        with Keeper.open(measured, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
            _say("ready")
            cpu, started = cpu_seconds(os.getpid()), time.perf_counter()
            pipeline.load()
            seconds = time.perf_counter() - started
            _say("loaded", seconds=seconds, cpu_seconds=cpu_seconds(os.getpid()) - cpu)


def _say(event: str, **figures: float) -> None:
    print(json.dumps({"event": event, **figures}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
