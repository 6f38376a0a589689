"""All protocols, one record each: what it is called, what it promises and needs, where it runs.

A record's name is the word of the header ``protocol`` and of ``viewkeeper lab``. The lab, the choice of a protocol for
a view, the live managers and the tables of the documentation are made from these records.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.errors import UsageError, did_you_mean
from viewkeeper.protocols.batched_sweep import BatchedSweep
from viewkeeper.protocols.c_strobe import CStrobe
from viewkeeper.protocols.eca import ECA
from viewkeeper.protocols.incremental import IncrementalView
from viewkeeper.protocols.mediation import Mediation
from viewkeeper.protocols.medwrap import Medwrap
from viewkeeper.protocols.messages import Protocol
from viewkeeper.protocols.naive import Naive
from viewkeeper.protocols.nested_sweep import NestedSweep
from viewkeeper.protocols.ordered_medwrap import OrderedMre
from viewkeeper.protocols.parallel_sweep import ParallelSweep
from viewkeeper.protocols.quiescent_ring import QuiescentRing
from viewkeeper.protocols.recompute import Recompute
from viewkeeper.protocols.ring import Ring
from viewkeeper.protocols.ring_machines import RingProtocol
from viewkeeper.protocols.ring_terms import RingTerms
from viewkeeper.protocols.simplistic import Simplistic
from viewkeeper.protocols.strobe import Strobe
from viewkeeper.protocols.sweep import Sweep
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level

BATCHED_SWEEP, RECOMPUTE = BatchedSweep.name, Recompute.name
PERIODIC, VIRTUAL = "periodic", "virtual"


class World(enum.Enum):
    """The simulated world that a protocol is tried in."""

    # A view manager at the warehouse asks sources.
    ASKING = enum.auto()
    # Sources with several relations, on the histories that MEDWRAP and its rivals share.
    SEVERAL_RELATIONS = enum.auto()
    # Machines at the sources pass a token.
    RING = enum.auto()


class Manager(enum.Enum):
    """The kind of live manager; `live.managers` has one factory for each."""

    INCREMENTAL = enum.auto()
    PROTOCOL = enum.auto()
    MEDWRAP = enum.auto()
    MRE = enum.auto()
    RING = enum.auto()
    RECOMPUTE = enum.auto()


@dataclass(frozen=True)
class Registered:
    """A protocol. What it promises, assumes and asks, its ``machine`` says: a class of this package.

    ``world``: where it is tried; ``manager``: who keeps live views by it. None where that is nowhere.
    """

    machine: type[Protocol] | type[RingProtocol]
    world: World | None = World.ASKING
    manager: Manager | None = Manager.PROTOCOL
    # The words of a header that is the same machine at other times.
    other_name: str = ""
    other_asks: str = ""

    @property
    def name(self) -> str:
        return self.other_name or self.machine.name

    @property
    def asks(self) -> str:
        return self.other_asks or self.machine.asks

    @property
    def level(self) -> Level:
        return self.machine.level

    @property
    def needs(self) -> str:
        """In words, everything that it assumes."""
        return self.machine.at_sources or str(self.machine.assumes)

    @property
    def summary(self) -> str:
        """The first line of what its class says about itself."""
        return (self.machine.__doc__ or "").strip().split("\n", 1)[0]

    @property
    def is_recomputed(self) -> bool:
        """Whether views are computed from whole relations, and not from changes."""
        return self.manager is Manager.RECOMPUTE

    def make(self, definition: ViewDefinition) -> Any:
        """What keeps the view, empty as it is here; raises UsageError for a view that it can't keep."""
        extent = Bag(definition.schema)
        match self.manager:
            case Manager.MEDWRAP | Manager.MRE:
                return Mediation(definition)
            case Manager.INCREMENTAL:
                return IncrementalView(definition, extent)
        if issubclass(self.machine, RingProtocol):
            return self.machine.system(definition, extent, {})
        return self.machine(definition, extent)

    def refusal(self, definition: ViewDefinition) -> UsageError | None:
        """Why it can't keep this view; None when it can."""
        try:
            self.make(definition)
        except UsageError as error:
            return error
        return None


REGISTRY: dict[str, Registered] = {
    record.name: record
    for record in (
        Registered(BatchedSweep, manager=Manager.INCREMENTAL),
        Registered(Sweep),
        Registered(NestedSweep),
        Registered(ParallelSweep),
        Registered(Naive, manager=None),
        Registered(Strobe),
        Registered(CStrobe),
        Registered(ECA),
        Registered(Simplistic, World.SEVERAL_RELATIONS),
        Registered(Medwrap, World.SEVERAL_RELATIONS, Manager.MEDWRAP),
        Registered(OrderedMre, World.SEVERAL_RELATIONS, Manager.MRE),
        Registered(Ring, World.RING, Manager.RING),
        Registered(QuiescentRing, World.RING, Manager.RING),
        Registered(RingTerms, World.RING, Manager.RING),
        Registered(Recompute, manager=Manager.RECOMPUTE),
        Registered(
            Recompute, None, Manager.RECOMPUTE, PERIODIC, "whole relations, once per period"
        ),
        Registered(
            Recompute,
            None,
            Manager.RECOMPUTE,
            VIRTUAL,
            "whole relations, once per query; nothing is stored",
        ),
    )
}

# Those that a view may name.
LIVE = {name: record for name, record in REGISTRY.items() if record.manager is not None}
# Those that the lab can try.
TRIED = {name: record for name, record in REGISTRY.items() if record.world is not None}
# Those that can be one view manager that asks, in the simulator: they play every scenario.
PROTOCOLS: dict[str, type[Protocol]] = {
    name: record.machine
    for name, record in TRIED.items()
    # MRE begins with the contents of relations, which that world hands to no one.
    if issubclass(record.machine, Protocol) and record.manager is not Manager.MRE
}
RINGS: dict[str, type[RingProtocol]] = {
    name: record.machine
    for name, record in TRIED.items()
    if issubclass(record.machine, RingProtocol)
}


def protocol_named(name: str) -> type[Protocol]:
    """The view manager of that name; raises UsageError that names the nearest one."""
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    raise unknown_protocol(name, PROTOCOLS)


def unknown_protocol(name: str, known: Iterable[str]) -> UsageError:
    """What is raised where a name is none of the known ones."""
    names = tuple(known)
    return UsageError(
        "unknown-protocol",
        f"there is no protocol {name}",
        detail=f"the protocols are {', '.join(names)}",
        hint=did_you_mean(name, names),
    )
