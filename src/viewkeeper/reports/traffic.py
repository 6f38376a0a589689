"""What was asked for and what changed, relation by relation: the figures that ``viewkeeper advise`` goes by.

Plain data, as it stands in the file of a run's state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viewkeeper.run_events import BatchCommitted
from viewkeeper.views.advice import Traffic

CHANGED = "changed"


def no_traffic(since: str) -> dict[str, Any]:
    """Nothing was measured yet."""
    return {"since": since, "batches": 0, "transactions": 0, "relations": {}}


def add_batch(traffic: dict[str, Any], batch: BatchCommitted) -> None:
    """Take the figures of a batch in."""
    traffic["batches"] += 1
    traffic["transactions"] += batch.transactions
    for source, asked in batch.asked.items():
        for relation, tally in asked.get("relations", {}).items():
            _add(traffic, f"{source}.{relation}", tally)
    for relation, rows in batch.changes.items():
        _add(traffic, relation, {CHANGED: rows})


def _add(traffic: dict[str, Any], relation: str, figures: Mapping[str, int]) -> None:
    total = traffic["relations"].setdefault(relation, {})
    for name, figure in figures.items():
        total[name] = total.get(name, 0) + figure


def measured(traffic: Mapping[str, Any]) -> dict[str, Traffic]:
    """The figures by relation."""
    return {name: Traffic(**figures) for name, figures in traffic["relations"].items()}
