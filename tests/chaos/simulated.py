"""A day of simulated operation: seeds in the simulator until a day's transactions have been judged.

A simulated second is not a clock's: it is one transaction (or as many as ``--rate`` says) committed by
the simulated sources. So 24 hours at one transaction a second are 86,400 transactions, in runs of a few
dozen each; every run has its own view, its own order of messages and its own verdict. What is simulated
is the pure core: the protocol that keeps live views, with announcements and answers that overtake each
other and transactions that become visible late and out of order. Processes, disks and networks are not:
`python -m chaos` has those.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from chaos.reporting import markdown, write_into
from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.generator import Shape, Size
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.run import simulated

# The one that keeps live views without a choice, most of the time; and two that can be chosen.
TURNS = ("batched-sweep", "batched-sweep", "sweep", "batched-sweep", "nested-sweep")
NETWORKS = (Network(fifo=False, inversions=True), Network(fifo=False), Network())
SIZES = (
    Size(sources=3, transactions=24, shape=Shape.ANY, spread=True),
    Size(sources=2, transactions=40, shape=Shape.ANY),
    Size(sources=4, transactions=16, shape=Shape.CHAIN, spread=True),
)


class Found(NamedTuple):
    seed: int
    protocol: str
    transactions: int
    states: int
    problem: str


def play(seed: int) -> Found:
    """One seed: which protocol, how large and on what network follows from its number."""
    protocol = PROTOCOLS[TURNS[seed % len(TURNS)]]
    outcome = simulated(
        protocol, seed, SIZES[seed % len(SIZES)], NETWORKS[seed // 3 % len(NETWORKS)]
    )
    problem = "" if outcome.is_good else outcome.problem
    return Found(seed, protocol.name, outcome.transactions, outcome.states, problem)


def day(hours: float, rate: float, first_seed: int, workers: int) -> dict[str, object]:
    """Seeds until so many hours at that rate are over, or one of them is wrong."""
    wanted = round(hours * 3600 * rate)
    started = time.monotonic()
    transactions = states = runs = 0
    protocols: Counter[str] = Counter()
    wrong: list[str] = []
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for found in pool.imap(play, _seeds(first_seed, wanted), chunksize=10):
            runs += 1
            transactions += found.transactions
            states += found.states
            protocols[found.protocol] += 1
            if found.problem:
                wrong.append(f"seed {found.seed}, {found.protocol}: {found.problem}")
            if transactions >= wanted or wrong:
                break
    return {
        "hours": hours,
        "transactions_per_simulated_second": rate,
        "seeds": [first_seed, first_seed + runs - 1],
        "runs": runs,
        "transactions": transactions,
        "states": states,
        "runs_by_protocol": dict(sorted(protocols.items())),
        "seconds": round(time.monotonic() - started, 1),
        "violations": wrong,
    }


def _seeds(first: int, transactions: int) -> Iterator[int]:
    # More than can be needed: the caller stops when it has enough.
    return itertools.islice(itertools.count(first), transactions)


def table(found: dict[str, object]) -> str:
    rows: list[tuple[object, ...]] = [
        ("simulated hours", found["hours"]),
        ("transactions in a simulated second", found["transactions_per_simulated_second"]),
        ("runs, seeds", f"{found['runs']:,}, {found['seeds'][0]} to {found['seeds'][1]}"),  # type: ignore[index]
        ("runs by protocol", str(found["runs_by_protocol"]).strip("{}").replace("'", "")),
        ("transactions", f"{found['transactions']:,}"),
        ("states checked", f"{found['states']:,}"),
        ("seconds on this machine", found["seconds"]),
        ("violations", len(found["violations"])),  # type: ignore[arg-type]
    ]
    return markdown(("figure", "value"), rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos.simulated", description=__doc__)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--rate", type=float, default=1, help="transactions per simulated second")
    parser.add_argument("--seed", type=int, default=1_000_000, help="the first one")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--document", type=Path, default=None)
    chosen = parser.parse_args()
    found = day(chosen.hours, chosen.rate, chosen.seed, chosen.workers)
    sys.stdout.write(table(found) + "\n" + "\n".join(found["violations"]) + "\n")  # type: ignore[arg-type]
    if chosen.json is not None:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")
    if chosen.document is not None:
        write_into(chosen.document, "simulated", table(found))
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
