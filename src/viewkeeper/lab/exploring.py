"""``lab explore``: every interleaving of a small scenario."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import typer

from viewkeeper.consistency.violation import as_document
from viewkeeper.errors import InvariantViolated
from viewkeeper.lab.running import tell_contradiction
from viewkeeper.lab.trials.asking_trial import AskingTrial
from viewkeeper.simulator.exploration import Exploration, explore
from viewkeeper.simulator.generator import random_scenario
from viewkeeper.simulator.schedule import step_text
from viewkeeper.terminal import FAILED, console, write_json, write_line, write_lines


def explore_all(trial: AskingTrial, seed: int, *, as_json: bool) -> None:
    """Search and tell; exit 1 when an interleaving misses the expected level."""
    # One transaction after the other round the sources: all on one source would not interfere.
    scenario = random_scenario(seed, replace(trial.size, spread=True))
    stderr = console(stderr=True)
    with stderr.status("exploring …") as status:

        def progress(worlds: int) -> None:
            status.update(f"exploring … {worlds:,} worlds")

        try:
            found = explore(trial.protocol, scenario, trial.network, progress)
        except InvariantViolated as error:
            tell_contradiction(trial, seed, error, verb="explore", as_json=as_json)
            raise typer.Exit(FAILED) from None
    if as_json:
        write_json(_document(trial, seed, found))
    else:
        _tell(trial, seed, found)
    if found.violations:
        raise typer.Exit(FAILED)


def _document(trial: AskingTrial, seed: int, found: Exploration) -> dict[str, Any]:
    verdict = found.first_violation
    violation = None if verdict is None else verdict.wrong_claim or verdict.violation
    return {
        "protocol": trial.name,
        "seed": seed,
        "transactions": trial.size.transactions,
        **trial.as_dict(),
        "expected_level": str(trial.level),
        "interleavings": found.interleavings,
        "worlds": found.worlds,
        "histories": found.histories,
        "levels": found.levels,
        "violations": found.violations,
        "violation": as_document(violation),
        "schedule": [step_text(choice) for choice in found.first_path],
        "replay": trial.command(seed, "explore") if found.violations else None,
    }


def _tell(trial: AskingTrial, seed: int, found: Exploration) -> None:
    size = trial.size
    kind = "relations of one source" if size.one_source else "sources"
    write_line(
        f"{trial.name}: {size.sources} {kind}, {size.transactions} transactions, seed {seed}"
    )
    write_line(
        f"{found.interleavings:,} interleavings over {found.worlds:,} different worlds, "
        f"{found.histories} different histories of the view"
    )
    levels = ", ".join(f"{count} {level}" for level, count in sorted(found.levels.items()))
    write_line(f"ends: {levels} (expected {trial.level})")
    if not found.violations:
        write_line("no violation", "green")
        return
    write_line(f"{found.violations} ends violate it; the first one:", "bold red")
    if found.first_violation is not None:
        write_lines(found.first_violation.problem, "red")
    write_line("Schedule: " + "; ".join(step_text(choice) for choice in found.first_path))
    write_line("Replay:")
    write_line(trial.command(seed, "explore"))
