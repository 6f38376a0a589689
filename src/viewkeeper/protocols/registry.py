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
from viewkeeper.protocols.messages import Assumptions, Protocol
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

BATCHED_SWEEP, RECOMPUTE, PERIODIC, VIRTUAL = "batched-sweep", "recompute", "periodic", "virtual"


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
    """A protocol. ``machine`` is its class; ``asks`` what it asks of the sources, for people."""

    name: str
    machine: type[Protocol] | type[RingProtocol]
    asks: str
    # Where it is tried, and who keeps views by it; None where that is nowhere.
    world: World | None = World.ASKING
    manager: Manager | None = Manager.PROTOCOL
    # In words, what it needs where the sources are.
    at_sources: str = ""

    @property
    def level(self) -> Level:
        return self.machine.level

    @property
    def paper(self) -> str:
        """The paper and its section."""
        return self.machine.paper

    @property
    def assumes(self) -> Assumptions:
        return getattr(self.machine, "assumes", Assumptions())

    @property
    def needs(self) -> str:
        """In words, everything that it assumes."""
        return self.at_sources or str(self.assumes)

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


_BESIDE = "a program beside the data of every source"

REGISTRY: dict[str, Registered] = {
    record.name: record
    for record in (
        Registered(
            BATCHED_SWEEP,
            BatchedSweep,
            "rows by key, once per batch: n − 1 questions for each changed relation",
            manager=Manager.INCREMENTAL,
        ),
        Registered("sweep", Sweep, "rows by key, n − 1 questions for each update"),
        Registered(
            "nested-sweep",
            NestedSweep,
            "rows by key, n − 1 questions for each composite of updates",
        ),
        Registered(
            "parallel-sweep",
            ParallelSweep,
            "rows by key, n − 1 questions for each update, its two sides at once",
        ),
        Registered(
            "naive",
            Naive,
            "as sweep, and believes every answer",
            manager=None,
        ),
        Registered(
            "strobe",
            Strobe,
            "rows by key, n − 1 questions for each insertion, none for a deletion",
        ),
        Registered(
            "c-strobe",
            CStrobe,
            "as strobe, and again for what concurrent deletions took away",
        ),
        Registered(
            "eca",
            ECA,
            "one question for each update, with compensation for all that are open",
        ),
        Registered(
            "simplistic",
            Simplistic,
            "rows by key, Z − 1 questions for each update over Z relations",
            World.SEVERAL_RELATIONS,
        ),
        Registered(
            "medwrap",
            Medwrap,
            "joins by the source's own engine: one for the change, N − 1 over N sources",
            World.SEVERAL_RELATIONS,
            Manager.MEDWRAP,
        ),
        Registered(
            "mre",
            OrderedMre,
            "each source's part once at the start; then one join for each update",
            World.SEVERAL_RELATIONS,
            Manager.MRE,
            "room for a copy of every source's part of the view",
        ),
        Registered(
            "ring",
            Ring,
            "rows by key where the token is: n visits for each turn",
            World.RING,
            Manager.RING,
            _BESIDE,
        ),
        Registered(
            "quiescent-ring",
            QuiescentRing,
            "rows by key where the token is: n visits, and none while nothing happens",
            World.RING,
            Manager.RING,
            _BESIDE,
        ),
        Registered(
            "ring-terms",
            RingTerms,
            "rows by key where the tokens are: one ring for each term",
            World.RING,
            Manager.RING,
            _BESIDE,
        ),
        Registered(
            RECOMPUTE,
            Recompute,
            "whole relations, once per batch",
            manager=Manager.RECOMPUTE,
        ),
        Registered(
            PERIODIC,
            Recompute,
            "whole relations, once per period",
            None,
            Manager.RECOMPUTE,
        ),
        Registered(
            VIRTUAL,
            Recompute,
            "whole relations, once per query; nothing is stored",
            None,
            Manager.RECOMPUTE,
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
