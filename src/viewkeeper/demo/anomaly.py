"""Why it is hard, in three updates: the same ones under a protocol that believes its answers, and SWEEP.

Both play scenarios of the simulator, where the checker decides what was reached.
"""

from __future__ import annotations

from typing import Any

from viewkeeper.simulator.scenario_file import Played, load_scenario, played

SCENARIOS = ("naive-anomaly", "sweep-figure-5-concurrent")


def compared() -> dict[str, Any]:
    """Both runs, state by state; a state is right when it is the view at the cut it stands for."""
    files = [load_scenario(name) for name in SCENARIOS]
    runs = [played(file) for file in files]
    right = _states(runs[-1])
    return {
        "view": " ".join(files[-1].view.split()),
        "updates": ["before", *_updates(runs[-1])],
        "protocols": [_told(run, right) for run in runs],
    }


def _told(run: Played, right: list[str]) -> dict[str, Any]:
    outcome = run.outcome
    return {
        "protocol": outcome.protocol,
        "level": str(outcome.verdict.level),
        "is_good": outcome.is_good,
        "states": [
            {"view": state, "right": state == wanted}
            for state, wanted in zip(_states(run), right, strict=True)
        ],
    }


def _states(run: Played) -> list[str]:
    kinds = ("start", "install")
    return [e.text.split("V is ")[-1] for e in run.journal.entries if e.kind in kinds]


def _updates(run: Played) -> list[str]:
    """Each update as its source committed it, without its number there."""
    commits = [entry for entry in run.journal.entries if entry.kind == "commit"]
    return [f"{entry.place}: {entry.text.split(' ', 1)[1]}" for entry in commits]
