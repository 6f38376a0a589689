"""``lab protocols``: what there is to try."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from viewkeeper.lab.trials.choosing import variants_of
from viewkeeper.protocols.registry import TRIED
from viewkeeper.terminal import Grid, console, write_json


def list_protocols(*, as_json: bool) -> None:
    """All protocols with their level, what they assume, and where they come from."""
    if as_json:
        write_json(list(listed()))
        return
    table = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("level", no_wrap=True)
    table.add_column("assumes", ratio=3)
    table.add_column("paper", ratio=2)
    for entry in TRIED.values():
        table.add_row(
            entry.name, str(entry.level), entry.needs, entry.machine.paper, end_section=True
        )
    console().print(table)


def listed() -> Iterator[dict[str, Any]]:
    """Everything that the lab can try; ``live``: views can be kept by it, outside the lab."""
    for record in TRIED.values():
        machine = record.machine
        yield {
            "name": record.name,
            "level": str(record.level),
            "assumes": vars(machine.assumes) | {"at_sources": machine.at_sources},
            "paper": machine.paper,
            "summary": record.summary,
            "live": record.manager is not None,
            "variants": variants_of(record.name),
        }
