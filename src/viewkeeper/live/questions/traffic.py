"""What was asked for and what changed, relation by relation: the figures that ``viewkeeper advise`` goes by.

Plain data, as it stands in the events of a run and in the file of its state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from viewkeeper.engine.integrator import rows_in
from viewkeeper.views.advice import Traffic

if TYPE_CHECKING:
    from viewkeeper.live.context import Cycle

CHANGED = "changed"


def changed_rows(cycle: Cycle) -> dict[str, int]:
    """How many rows an epoch's transactions put into each relation or took out of it."""
    found: Counter[str] = Counter()
    for arrival in cycle.batch:
        for name, change in arrival.transaction.changes:
            found[str(name)] += rows_in(change)
    return dict(found)


def no_traffic(since: str) -> dict[str, Any]:
    """Nothing was measured yet."""
    return {"since": since, "batches": 0, "transactions": 0, "relations": {}}


def add_batch(traffic: dict[str, Any], event: Mapping[str, Any]) -> None:
    """Take the figures of a batch in."""
    traffic["batches"] += 1
    traffic["transactions"] += event["transactions"]
    for source, asked in event["asked"].items():
        for relation, tally in asked.get("relations", {}).items():
            _add(traffic, f"{source}.{relation}", tally)
    for relation, rows in event.get("changes", {}).items():
        _add(traffic, relation, {CHANGED: rows})


def _add(traffic: dict[str, Any], relation: str, figures: Mapping[str, int]) -> None:
    total = traffic["relations"].setdefault(relation, {})
    for name, figure in figures.items():
        total[name] = total.get(name, 0) + figure


def measured(traffic: Mapping[str, Any]) -> dict[str, Traffic]:
    """The figures by relation."""
    return {name: Traffic(**figures) for name, figures in traffic["relations"].items()}
