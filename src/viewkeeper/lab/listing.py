"""``lab protocols``: what there is to try."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from viewkeeper.lab.trials.choosing import lab_protocols, variants_of
from viewkeeper.protocols.messages import Assumptions
from viewkeeper.protocols.mre import MreWrapper
from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.medwrap.run import MedwrapOptions
from viewkeeper.simulator.rings.run import RING_PROTOCOLS
from viewkeeper.terminal import Grid, console, write_json
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class Listed:
    """What is told of a protocol. ``live``: the pipeline can run it, not the lab alone."""

    name: str
    level: Level
    assumes: Assumptions
    paper: str
    summary: str
    live: bool = True
    at_sources: str = ""

    @property
    def needs(self) -> str:
        return self.at_sources or str(self.assumes)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "level": str(self.level),
            "assumes": vars(self.assumes) | {"at_sources": self.at_sources},
            "paper": self.paper,
            "summary": self.summary,
            "live": self.live,
            "variants": variants_of(self.name),
        }


def list_protocols(*, as_json: bool) -> None:
    """All protocols with their level, what they assume, and where they come from."""
    if as_json:
        write_json([entry.as_dict() for entry in listed()])
        return
    table = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("level", no_wrap=True)
    table.add_column("assumes", ratio=3)
    table.add_column("paper", ratio=2)
    for entry in listed():
        table.add_row(entry.name, str(entry.level), entry.needs, entry.paper, end_section=True)
    console().print(table)


def listed() -> Iterator[Listed]:
    """Everything that the lab can try, in the order of `lab_protocols`."""
    for name in lab_protocols():
        if name in PROTOCOLS:
            protocol = PROTOCOLS[name]
            yield Listed(name, protocol.level, protocol.assumes, protocol.paper, summary(protocol))
        elif name in RING_PROTOCOLS:
            ring = RING_PROTOCOLS[name]
            yield Listed(
                name,
                ring.level,
                Assumptions(),
                ring.paper,
                summary(ring),
                live=False,
                at_sources="a program beside the data of every source",
            )
        else:
            yield Listed(
                name,
                MedwrapOptions(stores=True).level,
                Assumptions(),
                "MEDWRAP, section 5",
                summary(MreWrapper),
                live=False,
                at_sources="room for a copy of every source's part of the view",
            )


def summary(protocol: type) -> str:
    """The first line of what the protocol's class says about itself."""
    return (protocol.__doc__ or "").strip().split("\n", 1)[0]
