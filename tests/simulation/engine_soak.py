"""Many seeds of engine worlds: `make soak-engine SEEDS=10000`. Ends with 1 if one of them is violated."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import islice
from pathlib import Path

from simulation.engine_worlds import FAMILIES, played

CHUNK = 50


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def chunk(family: str, first: int, count: int) -> tuple[Counter[str], list[str]]:
    """Some seeds of a family: what they were made of, and what was wrong."""
    found: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in range(first, first + count):
        found["seeds"] += 1
        try:
            verdict = played(family, seed)
        except Exception as error:
            wrong.append(f"{family} {seed}: {error!r}"[:600])
            continue
        wrong += [f"{family} {seed}: {problem}"[:600] for problem in verdict.problems[:1]]
        found.update(verdict.counts)
        found.update(states=verdict.states, changing=verdict.changing)
    return found, wrong


def chunks(seeds: int, first: int) -> list[tuple[str, int, int]]:
    """All families alike, so many seeds in all."""
    each = -(-seeds // len(FAMILIES))
    return [
        (family, first + start, min(CHUNK, each - start))
        for start in range(0, each, CHUNK)
        for family in FAMILIES
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="of all families together")
    parser.add_argument("--first", type=int, default=0, help="the first seed of each family")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    began = time.monotonic()
    total: Counter[str] = Counter()
    wrong: list[str] = []
    left = iter(chunks(options.seeds, options.first))
    with ProcessPoolExecutor(options.processes) as pool:
        running = {pool.submit(chunk, *each) for each in islice(left, 4 * options.processes)}
        while running:
            done = next(as_completed(running))
            running.remove(done)
            running |= {pool.submit(chunk, *each) for each in islice(left, 1)}
            found, bad = done.result()
            total.update(found)
            wrong += bad
            for line in bad:
                say(f"VIOLATION {line}")
            if total["seeds"] % 500 < CHUNK:
                seconds = time.monotonic() - began
                say(f"{total['seeds']} of {options.seeds} seeds, {seconds:.0f} s")
    document = {"seconds": round(time.monotonic() - began), **dict(total), "violations": wrong}
    say(json.dumps(document, indent=2))
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
