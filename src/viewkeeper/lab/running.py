"""``lab run``: one seed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer

from viewkeeper.errors import InvariantViolated
from viewkeeper.lab.trials.trial import Trial
from viewkeeper.simulator.kernel.journal import Journal
from viewkeeper.simulator.rings.run import RingOutcome
from viewkeeper.simulator.run import Outcome
from viewkeeper.terminal import FAILED, Grid, console, styled, write_json, write_line, write_lines


def run(trial: Trial, seed: int, *, transcript: bool, as_json: bool) -> None:
    """Run it and tell; exit 1 when the level is below the expected one."""
    journal = Journal() if transcript else None
    try:
        outcome = trial.outcome(seed, journal)
    except InvariantViolated as error:
        if not as_json:
            _write_transcript(journal)
        tell_contradiction(trial, seed, error, verb="run", as_json=as_json)
        raise typer.Exit(FAILED) from None
    measures = trial.measures(outcome)
    if as_json:
        document = _document(trial, outcome) | measures
        if journal is not None:
            document["transcript"] = journal.transcript().splitlines()
        write_json(document)
    else:
        _write_transcript(journal)
        console().print(_table(outcome, trial.lines(outcome, measures)))
        if not outcome.is_good:
            _tell_failure(outcome)
            write_line(trial.command(seed))
    if not outcome.is_good:
        raise typer.Exit(FAILED)


def _document(trial: Trial, outcome: Outcome) -> dict[str, Any]:
    """``violation`` is what a failure broke; ``short_of`` only tells what kept a good run from more."""
    document = outcome.as_dict() | trial.as_dict()
    found = document["violation"]
    good = outcome.is_good
    return document | {
        "violation": None if good else found,
        "short_of": found if good else None,
        "replay": None if good else trial.command(outcome.seed),
    }


def _table(outcome: Outcome, lines: Iterable[tuple[str, str]]) -> Grid:
    table = Grid(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column()
    table.add_row("protocol", f"{outcome.protocol}, seed {outcome.seed}")
    happened = f"{outcome.sources} sources, {outcome.transactions} transactions"
    table.add_row("scenario", f"{happened}, {outcome.changing} of them change the view")
    style = "green" if outcome.is_good else "bold red"
    found = styled(str(outcome.verdict.level), style)
    table.add_row(
        "level", found.append_text(styled(f" (expected {outcome.expected_level})", "default"))
    )
    table.add_row("states", f"{outcome.states} seen by a reader")
    for word, told in lines:
        table.add_row(word, told)
    return table


def _tell_failure(outcome: Outcome) -> None:
    write_line()
    if isinstance(outcome, RingOutcome) and not outcome.fresh_queries:
        write_line("a reader was answered without all that was committed before", "red")
    if outcome.problem:
        write_lines(outcome.problem, "red")
    write_line("Replay:")


def tell_contradiction(
    trial: Trial, seed: int, error: InvariantViolated, *, verb: str, as_json: bool
) -> None:
    """A run without a verdict: the protocol broke one of its invariants, or waits for ever."""
    document = {"protocol": trial.name, "seed": seed} | trial.as_dict()
    heading, replay = f"{trial.name}, seed {seed}", trial.command(seed, verb)
    write_contradiction(heading, document, error, replay, as_json=as_json)


def write_contradiction(
    heading: str, document: dict[str, Any], error: InvariantViolated, replay: str, *, as_json: bool
) -> None:
    """What went wrong, and the command that makes it happen again."""
    if as_json:
        write_json(document | {"error": error.as_dict(), "replay": replay})
        return
    write_line(f"{heading}: {error.message}", "bold red")
    if error.detail:
        write_line(f"Detail: {error.detail}")
    write_line("Replay:")
    write_line(replay)


def _write_transcript(journal: Journal | None) -> None:
    if journal is not None:
        for line in journal.transcript().splitlines():
            write_line(line)
        write_line()
