"""``lab run --views``: several views in the engine, merged, judged together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer
from rich.text import Text

from viewkeeper.errors import InvariantViolated, UsageError
from viewkeeper.lab.running import write_contradiction
from viewkeeper.lab.trials.trial import Wish
from viewkeeper.simulator.merging.journal import MergeJournal
from viewkeeper.simulator.merging.run import (
    MergeOptions,
    MergeOutcome,
    Painting,
    simulated_merge,
)
from viewkeeper.terminal import FAILED, Grid, console, styled, write_json, write_line, write_lines

# Tells people what happened in a run, or returns it for JSON.
Tell = Callable[[MergeJournal], dict[str, Any]]


@dataclass(frozen=True)
class ViewsTrial:
    """Everything but the seed."""

    options: MergeOptions

    def command(self, seed: int) -> str:
        """The command line that does this again."""
        options = self.options
        words = [f"viewkeeper lab run --views {options.views} --painting"]
        words.append(f"{options.painting.value} --sources {options.sources}")
        words.append(f"--transactions {options.transactions} --seed {seed}")
        return " ".join(words)

    def as_dict(self) -> dict[str, Any]:
        """What was tried, for JSON."""
        return {"painting": self.options.painting.value, "sources": self.options.sources}


def views_trial(painting: str, views: int, wish: Wish, protocol: str | None) -> ViewsTrial:
    """Raises UsageError on what is for a single view."""
    given = {
        "--protocol": protocol,
        "--variant": wish.variants,
        "--inversions": wish.network.inversions,
        "--no-fifo": not wish.network.fifo,
        "--search": wish.search,
    }
    single = [flag for flag, value in given.items() if value]
    if single:
        raise UsageError(
            "does-not-apply",
            f"{' and '.join(single)} can not be chosen for several views",
            detail="the painting and the seed determine who maintains each of them and in which order things "
            "happen, and states are always judged by search",
            hint="leave it out, or leave out --views and --painting",
        )
    size = wish.size
    return ViewsTrial(MergeOptions(Painting(painting), views, size.sources, size.transactions))


def run_views(trial: ViewsTrial, seed: int, tell: Tell, *, as_json: bool) -> None:
    """Run it and tell, what happened first; exit 1 when something is wrong."""
    journal = MergeJournal()
    try:
        outcome = simulated_merge(seed, trial.options, journal)
    except InvariantViolated as error:
        tell(journal)
        _tell_contradiction(trial, seed, error, as_json=as_json)
        raise typer.Exit(FAILED) from None
    happened = tell(journal)
    if as_json:
        document = outcome.as_dict() | trial.as_dict()
        document["replay"] = None if outcome.is_good else trial.command(seed)
        write_json(document | happened)
    else:
        console().print(_table(trial, outcome))
        if not outcome.is_good:
            _tell_failure(outcome)
            write_line("Replay:")
            write_line(trial.command(seed))
    if not outcome.is_good:
        raise typer.Exit(FAILED)


def transcribed(*, as_json: bool) -> Tell:
    """The transcript, as text or as lines of JSON."""

    def tell(journal: MergeJournal) -> dict[str, Any]:
        if not as_json:
            write_tables(journal)
        return {"transcript": journal.transcript().splitlines()}

    return tell


def untold(journal: MergeJournal) -> dict[str, Any]:
    """The outcome alone."""
    return {}


def write_tables(journal: MergeJournal) -> None:
    """Each message and the tables after it, in their colours."""
    console().print(Text.from_markup(journal.transcript(markup=True)), soft_wrap=True)


def _table(trial: ViewsTrial, outcome: MergeOutcome) -> Grid:
    table = Grid(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column()
    verdict = outcome.verdict
    table.add_row("painting", f"{trial.options.painting.value}, seed {outcome.seed}")
    counted = f"{trial.options.sources} sources, {verdict.counts['transactions']} transactions"
    table.add_row("scenario", f"{counted}, {len(outcome.views)} views")
    for view, manager in outcome.views.items():
        table.add_row("view", f"{view} by {manager}")
    for group, (level, expected) in verdict.levels.items():
        style = "green" if level >= expected else "bold red"
        found = styled(f"{group}: ").append_text(styled(str(level), style))
        table.add_row("level", found.append_text(styled(f" (expected {expected})")))
    table.add_row("states", f"{verdict.states} seen by a reader, {verdict.changing} change a view")
    return table


def _tell_failure(outcome: MergeOutcome) -> None:
    write_line()
    for problem in outcome.verdict.problems:
        write_lines(problem, "red")


def _tell_contradiction(
    trial: ViewsTrial, seed: int, error: InvariantViolated, *, as_json: bool
) -> None:
    document = {"seed": seed} | trial.as_dict()
    heading = f"{trial.options.painting.value}, seed {seed}"
    write_contradiction(heading, document, error, trial.command(seed), as_json=as_json)
