"""``lab swarm``: many seeds, on all processors, with the first failing one and how to replay it."""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from viewkeeper.consistency.checker import Undecided
from viewkeeper.consistency.violation import as_document
from viewkeeper.errors import InvariantViolated, UsageError, invariant
from viewkeeper.lab.trials.trial import Trial
from viewkeeper.terminal import (
    FAILED,
    GOOD,
    UNDECIDED,
    console,
    write_json,
    write_line,
    write_lines,
)

# Enough seeds for a worker to be busy for a moment, few enough for the progress bar to move.
SEEDS_PER_TASK = 10


@dataclass(frozen=True)
class SeedResult:
    """What one seed came to: a level, ``stuck`` or ``undecided``."""

    seed: int
    level: str
    is_good: bool
    is_undecided: bool = False
    problem: str = ""
    violation: dict[str, object] | None = None
    # How many transactions it had, and how many of them changed the view.
    transactions: int = 0
    changing: int = 0


@dataclass
class Tally:
    """The results so far, in the order of the seeds."""

    levels: Counter[str] = field(default_factory=Counter)
    good: int = 0
    undecided: int = 0
    failed: int = 0
    transactions: int = 0
    changing: int = 0
    first_failure: SeedResult | None = None

    @property
    def done(self) -> int:
        return self.good + self.undecided + self.failed

    def add(self, result: SeedResult) -> None:
        self.levels[result.level] += 1
        self.transactions += result.transactions
        self.changing += result.changing
        if result.is_good:
            self.good += 1
        elif result.is_undecided:
            self.undecided += 1
        else:
            self.failed += 1
            self.first_failure = self.first_failure or result


def parse_seeds(text: str) -> range:
    """``A..B``, both included; or a single seed."""
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text.strip())
    if match is None or (match[2] is not None and int(match[2]) < int(match[1])):
        raise UsageError(
            "wrong-seeds",
            f"{text} is no range of seeds",
            hint="write the first and the last one, like --seeds 1..2000",
        )
    return range(int(match[1]), int(match[2] or match[1]) + 1)


def swarm(trial: Trial, seeds: range, *, jobs: int, fail_fast: bool, as_json: bool) -> None:
    """Run all seeds and tell; Ctrl-C ends it with what was done so far."""
    tally = Tally()
    interrupted = False
    try:
        with _progress(len(seeds)) as progress:
            bar = progress.add_task(trial.name, total=len(seeds))
            for result in results(trial, seeds, jobs):
                tally.add(result)
                progress.advance(bar)
                if fail_fast and tally.failed:
                    break
    except KeyboardInterrupt:
        interrupted = True
    if as_json:
        write_json(_document(trial, seeds, tally) | {"interrupted": interrupted})
    else:
        _tell(trial, seeds, tally)
    if interrupted:
        raise KeyboardInterrupt
    code = FAILED if tally.failed else UNDECIDED if tally.undecided else GOOD
    if code != GOOD:
        raise typer.Exit(code)


def results(trial: Trial, seeds: range, jobs: int) -> Iterator[SeedResult]:
    """The results in the order of the seeds; with ``jobs`` 0 one process for each processor."""
    workers = min(jobs or os.cpu_count() or 1, math.ceil(len(seeds) / SEEDS_PER_TASK))
    if workers <= 1:
        for seed in seeds:
            yield judged_seed(trial, seed)
        return
    # Not forked: a progress bar runs a thread, and a fork of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    with _deaf_to_interrupts():
        pool = context.Pool(workers)
    # Leaving a pool terminates its workers at once, whatever they are doing.
    with pool:
        yield from pool.imap(partial(judged_seed, trial), seeds, chunksize=SEEDS_PER_TASK)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Workers that are started inside ignore Ctrl-C: only we hear it, and then we stop them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def judged_seed(trial: Trial, seed: int) -> SeedResult:
    """Run one seed; a contradiction or an endless wait is a failure like a level that was missed."""
    try:
        outcome = trial.outcome(seed)
    except InvariantViolated as error:
        problem = f"{error.message} ({error.detail})" if error.detail else error.message
        return SeedResult(seed, "stuck", False, problem=problem)
    except Undecided:
        return SeedResult(seed, "undecided", False, is_undecided=True)
    level = str(outcome.verdict.level)
    transactions, changing = outcome.transactions, outcome.changing
    if outcome.is_good:
        return SeedResult(seed, level, True, transactions=transactions, changing=changing)
    verdict = outcome.verdict
    problem = outcome.problem or "a reader was answered too early"
    shown = as_document(verdict.wrong_claim or verdict.violation)
    return SeedResult(
        seed, level, False, False, problem, shown, transactions=transactions, changing=changing
    )


def _progress(total: int) -> Progress:
    """A bar on stderr if that is a terminal, else nothing."""
    stderr = console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=stderr,
        transient=True,
        disable=not stderr.is_terminal or total == 0,
    )


def _document(trial: Trial, seeds: range, tally: Tally) -> dict[str, Any]:
    first = tally.first_failure
    return {
        "protocol": trial.name,
        "expected_level": str(trial.level),
        "seeds": {"first": seeds[0], "last": seeds[-1]},
        "transactions": trial.size.transactions,
        **trial.as_dict(),
        "done": tally.done,
        "committed": tally.transactions,
        "changing": tally.changing,
        "good": tally.good,
        "failed": tally.failed,
        "undecided": tally.undecided,
        "levels": dict(sorted(tally.levels.items())),
        "first_failure": None
        if first is None
        else {
            "seed": first.seed,
            "level": first.level,
            "problem": first.problem,
            "violation": first.violation,
            "replay": trial.command(first.seed),
        },
    }


def _tell(trial: Trial, seeds: range, tally: Tally) -> None:
    levels = ", ".join(f"{count} {level}" for level, count in sorted(tally.levels.items()))
    name = trial.name
    done = f"{tally.done} of {len(seeds)} seeds of {name}: {levels or 'none'}"
    write_line(f"{done} (expected {trial.level})")
    write_line(f"{tally.changing} of {tally.transactions} transactions change the view")
    if tally.first_failure is None:
        undecided = f", {tally.undecided} undecided" if tally.undecided else ""
        write_line(f"no failure{undecided}", "yellow" if undecided else "green")
        return
    first = tally.first_failure
    invariant(tally.failed > 0, "a first failure without failures")
    write_line(f"{tally.failed} failed, the first is seed {first.seed}", "bold red")
    write_lines(first.problem, "red")
    write_line("Replay:")
    write_line(trial.command(first.seed))
