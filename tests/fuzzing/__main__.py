"""Attacks one decoder for some minutes of CPU time: python -m fuzzing pgoutput --minutes 10

Guided by the code that it reaches where `atheris` is installed (the extra ``fuzz``), else by chance. Memory is
limited, so that a false length fails instead of filling the machine; an input that takes too long is a finding,
too. Whatever is found is kept in build/fuzz and belongs into test_findings.py.

It works in slices, each a process: what guides the inputs takes 15 MB for each second, and gives none back. A slice
begins with the inputs that the ones before it have kept.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

TARGETS = ("pgoutput", "binlog", "wal")
MEMORY_BYTES_MAX = 4 << 30
SLICE_SECONDS = 60
# So much CPU time beside the minutes that were asked for: then the system ends it, whatever it is doing.
SPARE_SECONDS = 300
# One input may take so long in CPU time, also on a slow machine; none takes a tenth of it.
INPUT_SECONDS_MAX = 20
FOLDER = Path(__file__).parents[2] / "build" / "fuzz"


class Session:
    """How long is left, and how much was done."""

    def __init__(self, name: str, seconds: float, way: str) -> None:
        self._name, self._way = name, way
        self._until = time.process_time() + seconds
        self._started = time.process_time()
        self._runs = 0
        self.target: Callable[[bytes], None] = lambda data: None

    def run(self, data: bytes) -> None:
        """One input; ends the process when the time is over."""
        self._runs += 1
        signal.setitimer(signal.ITIMER_VIRTUAL, INPUT_SECONDS_MAX)
        self.target(data)
        if time.process_time() > self._until:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            self.end()

    def end(self, *_: object) -> NoReturn:
        """Tell what was done; also when it is ended before its time."""
        seconds = time.process_time() - self._started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        sys.stdout.write(
            f"{self._name} ({self._way}): {self._runs} inputs in {seconds:.0f} CPU seconds,"
            f" {peak} MiB at most, nothing found\n"
        )
        sys.stdout.flush()
        os._exit(0)


def _by_chance(session: Session, seeds: list[bytes], seed: int) -> NoReturn:
    from fuzzing.mutations import chosen, harmed

    randomness = random.Random(seed)
    while True:
        data = harmed(randomness.choice(seeds), chosen(randomness))
        try:
            session.run(data)
        except BaseException:
            (FOLDER / "found").write_bytes(data)
            raise


def _guided(session: Session, folder: Path, seed: int) -> None:
    import atheris

    arguments = [
        f"-artifact_prefix={FOLDER}/",
        f"-seed={seed}",
        "-max_len=16384",
        "-rss_limit_mb=0",
    ]
    # Its own clock is the wall's: ours is the one that counts.
    arguments += ["-timeout=600", "-malloc_limit_mb=1024", "-print_final_stats=0", "-verbosity=0"]
    arguments += ["-handle_term=0", "-handle_int=0"]
    atheris.Setup([sys.argv[0], *arguments, str(folder)], session.run)
    atheris.Fuzz()


def _too_long(*_: object) -> NoReturn:
    raise TimeoutError(f"an input took more than {INPUT_SECONDS_MAX} seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--by-chance", action="store_true")
    parser.add_argument("--slice", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.slice is not None:
        attack(options)
    left, number = options.minutes * 60, 0
    while left > 0:
        words = [
            sys.executable,
            "-m",
            "fuzzing",
            options.target,
            "--slice",
            str(min(left, SLICE_SECONDS)),
        ]
        words += ["--seed", str(options.seed + number), *["--by-chance"] * options.by_chance]
        status = subprocess.run(words, check=False).returncode
        if status:
            sys.exit(f"{options.target}: ended with {status}, see {FOLDER}")
        left, number = left - SLICE_SECONDS, number + 1


def attack(options: argparse.Namespace) -> NoReturn:
    """One slice."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    seconds = int(options.slice) + SPARE_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.signal(signal.SIGVTALRM, _too_long)
    try:
        if options.by_chance:
            raise ImportError
        import atheris

        with atheris.instrument_imports(
            include=["viewkeeper.sources"], enable_loader_override=False
        ):
            module = importlib.import_module(f"fuzzing.{options.target}")
        way = "guided"
    except ImportError:
        module, way = importlib.import_module(f"fuzzing.{options.target}"), "by chance"
    seeds = module.seeds()
    folder = FOLDER / options.target
    folder.mkdir(parents=True, exist_ok=True)
    session = Session(options.target, options.slice, way)
    session.target = module.attack
    signal.signal(signal.SIGTERM, session.end)
    if way == "guided":
        for number, content in enumerate(seeds):
            (folder / f"seed-{number}").write_bytes(content)
        _guided(session, folder, options.seed)
    _by_chance(session, seeds, options.seed)


if __name__ == "__main__":
    main()
