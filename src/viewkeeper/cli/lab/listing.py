"""``lab protocols``: what there is to try."""

from __future__ import annotations

from rich.table import Table

from viewkeeper.cli.output import console, write_json
from viewkeeper.protocols.registry import PROTOCOLS


def list_protocols(*, as_json: bool) -> None:
    """All protocols with their level, what they assume, and where they come from."""
    if as_json:
        write_json(
            [
                {
                    "name": protocol.name,
                    "level": str(protocol.level),
                    "assumes": vars(protocol.assumes),
                    "paper": protocol.paper,
                    "summary": summary(protocol),
                }
                for protocol in PROTOCOLS.values()
            ]
        )
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("level", no_wrap=True)
    table.add_column("assumes", ratio=3)
    table.add_column("paper", ratio=2)
    for protocol in PROTOCOLS.values():
        table.add_row(
            protocol.name,
            str(protocol.level),
            str(protocol.assumes),
            protocol.paper,
            end_section=True,
        )
    console().print(table)


def summary(protocol: type) -> str:
    """The first line of what the protocol's class says about itself."""
    return (protocol.__doc__ or "").strip().split("\n", 1)[0]
