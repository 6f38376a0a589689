"""Us beside an older revision of ours: the peers' workload on both, alternately, in one run.

    python benchmarks/former.py --before REVISION [--rounds 5] [--orders 300000] [--json FILE]

The older revision comes out of git's history with its own benchmark, and runs in this environment. A figure is the
older one's seconds divided by ours, round by round; the median of the rounds counts, with the smallest and the
largest beside it. Neighbours in one round see about the same machine, so a busy one adds noise and no bias: each
round begins with the other revision.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from peers.processes import carried_out
from peers.task import VIEWS, Task
from peers.workload import write_workload

ROOT = Path(__file__).parents[1]
WARM_UPDATES, RATE, SEED = 5_000, 100.0, 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--before", required=True, help="a revision of git")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--orders", type=int, default=300_000)
    parser.add_argument("--updates", type=int, default=100_000)
    parser.add_argument("--views", nargs="*", choices=VIEWS, default=["join"])
    parser.add_argument("--rate-seconds", type=float, default=15.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="viewkeeper-former-") as name:
        folder = Path(name)
        _unpack(options.before, folder / "before")
        runs = _measured(options, folder)
    figures = compared(runs)
    for figure, found in figures.items():
        print(f"{figure:<24} {found['ratio']:.2f} ({found['least']:.2f} to {found['most']:.2f})")
    if options.json is not None:
        options.json.write_text(json.dumps({"figures": figures, "runs": runs}, indent=1) + "\n")


def compared(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """By figure: the older revision's seconds over ours, within each round; above 1 we are faster now."""
    pairs: dict[str, dict[int, dict[str, float]]] = {}
    for run in runs:
        for figure, seconds in _seconds(run["measurement"]):
            rounds = pairs.setdefault(f"{run['view']}: {figure}", {})
            rounds.setdefault(run["round"], {})[run["code"]] = seconds
    found = {}
    for figure, rounds in pairs.items():
        ratios = [each["before"] / each["now"] for each in rounds.values() if len(each) == 2]
        if ratios:
            middle = statistics.median(ratios)
            found[figure] = {"ratio": middle, "least": min(ratios), "most": max(ratios)}
    return found


def _seconds(measurement: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    yield "load", measurement["load_seconds"]
    for streamed in measurement["streams"]:
        if streamed["stream"] != "warm":
            yield f"{streamed['updates']:,} updates", streamed["seconds"]
    if measurement["freshness"]:
        yield "freshness, p50", measurement["freshness"]["p50_seconds"]
        yield "freshness, p99", measurement["freshness"]["p99_seconds"]


def _measured(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    streams = [("warm", WARM_UPDATES), (str(options.updates), options.updates)]
    rate_updates = ("rate", int(RATE * options.rate_seconds))
    write_workload(folder / "data", options.orders, [*streams, rate_updates], SEED)
    codes = {"before": folder / "before", "now": ROOT}
    runs = []
    for number in range(options.rounds):
        for view in options.views:
            rate = RATE if view == "join" else 0.0
            names = tuple(name for name, _ in streams)
            for code in sorted(codes, reverse=bool(number % 2)):
                task = Task(
                    "viewkeeper", view, folder / "data", folder / "scratch", names,
                    rate=rate, rate_seconds=options.rate_seconds,
                )  # fmt: skip
                place = codes[code]
                path = (place / "benchmarks", place / "src")
                outcome = carried_out(task, Path(sys.executable), code=path)
                if outcome.measurement is None:
                    sys.exit(f"{code}, {view}: {outcome.failure}")
                told = {name: round(s, 3) for name, s in _seconds(outcome.measurement)}
                load = f"load {os.getloadavg()[0]:.1f}"
                print(f"round {number + 1}, {view}, {code}: {told}, {load}", file=sys.stderr)
                runs.append(
                    {
                        "round": number,
                        "view": view,
                        "code": code,
                        "measurement": outcome.measurement,
                    }
                )
    return runs


def _unpack(revision: str, folder: Path) -> None:
    words = ["git", "-C", str(ROOT), "archive", revision, "src", "benchmarks"]
    archive = subprocess.run(words, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


if __name__ == "__main__":
    main()
