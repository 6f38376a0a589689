"""Us and what users would pick instead, on the same changes: ``python -m peers`` in `benchmarks`.

Every system runs in a process of its own, one after the other, round by round; each round begins with
another one. Figures are medians over the rounds, with the smallest and the largest beside them. All of
them are of one machine in one run: compare them with each other and with nothing else.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from peers.environments import ENVIRONMENTS, NotInstalled, python_of
from peers.processes import Outcome, carried_out
from peers.report import into_document, summary, text_table
from peers.states import Judge
from peers.task import VIEWS, Task
from peers.workload import write_moves, write_workload

REPOSITORY = Path(__file__).parents[2]
WARM_UPDATES = 5_000
RATE = 100.0
MOVES_ORDERS, MOVES_UPDATES = 2_000, 300
SEED = 12


def main() -> None:
    options = _options()
    if not options.report_only:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        results = _measured(options)
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    results = json.loads(options.json.read_text())
    print(text_table(summary(results)))
    if options.document is not None:
        into_document(results, options.document)
        print(f"written into {options.document}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--peers", nargs="*", choices=ENVIRONMENTS, default=list(ENVIRONMENTS))
    parser.add_argument("--orders", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--streams", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--views", nargs="*", choices=VIEWS, default=list(VIEWS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate-seconds", type=float, default=15.0)
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "peers")
    parser.add_argument("--json", type=Path, default=REPOSITORY / "build" / "peers.json")
    parser.add_argument("--document", type=Path, help="put the tables and plots in here, too")
    parser.add_argument("--report-only", action="store_true", help="measure nothing anew")
    return parser.parse_args()


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    pythons: dict[str, Path] = {}
    runs: list[dict[str, Any]] = []
    for peer in options.peers:
        try:
            pythons[peer] = python_of(peer, options.folder)
        except NotInstalled as reason:
            runs.append({"peer": peer, "failure": f"not installed: {reason}"})
            _say(f"{peer}: not installed: {reason}")
    load = os.getloadavg()[0]
    for number in range(options.rounds):
        turn = number % max(len(pythons), 1)
        order = [*list(pythons)[turn:], *list(pythons)[:turn]]
        for orders in options.orders:
            data = _workload(options, orders)
            for view in options.views:
                for peer in order:
                    task = _task(options, peer, view, orders, data)
                    outcome = carried_out(task, pythons[peer], nice=options.nice)
                    runs.append(_told(outcome, peer, number, orders=orders, view=view))
    return {
        "when": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "machine": {
            "processors": os.cpu_count(),
            "gigabytes": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
            "system": platform.platform(terse=True),
            "load_before": round(load, 1),
            "load_after": round(os.getloadavg()[0], 1),
        },
        "rounds": options.rounds,
        "runs": runs,
        "states": _states(options, pythons),
    }


def _workload(options: argparse.Namespace, orders: int) -> Path:
    streams = [("warm", WARM_UPDATES), *((str(count), count) for count in options.streams)]
    streams.append(("rate", int(RATE * options.rate_seconds)))
    name = "-".join(str(count) for count in (orders, *(count for _, count in streams), SEED))
    folder: Path = options.folder / "data" / name
    write_workload(folder, orders, streams, SEED)
    return folder


def _task(options: argparse.Namespace, peer: str, view: str, orders: int, data: Path) -> Task:
    streams = ("warm", *(str(count) for count in options.streams))
    rate = RATE if view == "join" and options.rate_seconds else 0.0
    scratch = options.folder / "scratch" / peer
    return Task(peer, view, data, scratch, streams, rate=rate, rate_seconds=options.rate_seconds)


def _states(options: argparse.Namespace, pythons: dict[str, Path]) -> dict[str, Any]:
    """For each system what became of the stream in which the view's size stays the same."""
    data = options.folder / "data" / f"moves-{MOVES_ORDERS}-{MOVES_UPDATES}-{SEED}"
    write_moves(data, MOVES_ORDERS, MOVES_UPDATES, SEED)
    judge: Judge | None = None
    verdicts: dict[str, Any] = {}
    for peer, python in pythons.items():
        scratch = options.folder / "scratch" / peer
        task = Task(peer, "join", data, scratch, ("moves",), moves=True)
        judge = judge or Judge.of(task)
        outcome = carried_out(task, python, nice=options.nice)
        if outcome.measurement is None:
            verdicts[peer] = {"failure": outcome.failure}
        else:
            verdicts[peer] = judge.verdict(outcome.measurement["states"] or []).as_dict()
        _say(f"{peer}, states: {json.dumps(verdicts[peer])}")
    return verdicts


def _told(outcome: Outcome, peer: str, number: int, **where: Any) -> dict[str, Any]:
    _say(f"round {number + 1}, {where}, {peer}: {outcome.failure or _short(outcome)}")
    run = {"peer": peer, "round": number, **where, "memory": asdict(outcome.memory)}
    if outcome.measurement is None:
        return {**run, "failure": outcome.failure}
    return {**run, **outcome.measurement}


def _short(outcome: Outcome) -> str:
    found = outcome.measurement or {}
    parts = [f"load {found['load_seconds']:.1f} s"]
    parts += [f"{s['stream']} in {s['seconds']:.2f} s" for s in found["streams"]]
    return ", ".join(parts) + f", {outcome.memory.system:,.0f} MB"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
