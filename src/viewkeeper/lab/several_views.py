"""``lab run --views``: several views, merged by a painting algorithm, judged together."""

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
from viewkeeper.simulator.merging.run import MergeOptions, MergeOutcome, simulated_merge
from viewkeeper.simulator.merging.scenario import MergeSize, Painting
from viewkeeper.terminal import FAILED, Grid, console, styled, write_json, write_line, write_lines

# Tells people what happened in a run, or returns it for JSON.
Tell = Callable[[MergeJournal], dict[str, Any]]


@dataclass(frozen=True)
class ViewsTrial:
    """Everything but the seed."""

    options: MergeOptions
    search: bool = False

    def command(self, seed: int) -> str:
        """The command line that does this again."""
        size, network = self.options.size, self.options.network
        words = [f"viewkeeper lab run --views {size.views} --painting"]
        words.append(f"{self.options.painting.value} --sources {size.sources}")
        words.append(f"--transactions {size.transactions} --seed {seed}")
        flags = {
            "--inversions": network.inversions,
            "--no-fifo": not network.fifo,
            "--search": self.search,
        }
        return " ".join(words + [flag for flag, given in flags.items() if given])

    def as_dict(self) -> dict[str, Any]:
        """What was tried, for JSON."""
        options = self.options
        return {
            "painting": options.painting.value,
            "sources": options.size.sources,
            "fifo": options.network.fifo,
            "inversions": options.network.inversions,
        }


def views_trial(painting: str, views: int, wish: Wish, protocol: str | None) -> ViewsTrial:
    """Raises UsageError on what is for a single view."""
    given = (("--protocol", protocol), ("--variant", wish.variants))
    single = [flag for flag, value in given if value]
    if single:
        raise UsageError(
            "does-not-apply",
            f"{' and '.join(single)} can not be chosen for several views",
            detail="the painting and the seed determine who maintains each of them",
            hint="leave it out, or leave out --views and --painting",
        )
    size = MergeSize(views, wish.size.sources, wish.size.transactions)
    options = MergeOptions(Painting(painting), size, network=wish.network)
    return ViewsTrial(options, wish.search)


def run_views(trial: ViewsTrial, seed: int, tell: Tell, *, as_json: bool) -> None:
    """Run it and tell, what happened first; exit 1 when a group of views misses its level."""
    journal = MergeJournal()
    try:
        outcome = simulated_merge(seed, trial.options, search=trial.search, watch=journal)
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
    table.add_row("painting", f"{trial.options.painting.value}, seed {outcome.seed}")
    counted = f"{trial.options.size.sources} sources, {outcome.transactions} transactions"
    changing = f"{outcome.changing} of them change one"
    table.add_row("scenario", f"{counted}, {len(outcome.views)} views, {changing}")
    for view, manager in outcome.views.items():
        table.add_row("view", f"{view} by {manager}")
    for group, verdict, expected in zip(
        outcome.groups, outcome.verdicts, outcome.expected_levels, strict=True
    ):
        style = "green" if verdict.meets(expected) else "bold red"
        found = styled(f"{', '.join(group)}: ").append_text(styled(str(verdict.level), style))
        table.add_row("level", found.append_text(styled(f" (expected {expected})")))
    table.add_row("states", f"{outcome.states} seen by a reader")
    table.add_row("messages", f"{outcome.messages} in all")
    return table


def _tell_failure(outcome: MergeOutcome) -> None:
    write_line()
    if outcome.torn:
        write_line(f"shown in part: global transactions {', '.join(outcome.torn)}", "red")
    if outcome.broken_blocks:
        states = ", ".join(map(str, outcome.broken_blocks))
        write_line(f"states that end inside a block: {states}", "red")
    for verdict, expected in zip(outcome.verdicts, outcome.expected_levels, strict=True):
        if verdict.problem and not verdict.meets(expected):
            write_lines(verdict.problem, "red")


def _tell_contradiction(
    trial: ViewsTrial, seed: int, error: InvariantViolated, *, as_json: bool
) -> None:
    document = {"seed": seed} | trial.as_dict()
    heading = f"{trial.options.painting.value}, seed {seed}"
    write_contradiction(heading, document, error, trial.command(seed), as_json=as_json)
