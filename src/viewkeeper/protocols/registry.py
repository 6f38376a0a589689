"""All protocols by name."""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.errors import UsageError, did_you_mean
from viewkeeper.protocols.batched_sweep import BatchedSweep
from viewkeeper.protocols.c_strobe import CStrobe
from viewkeeper.protocols.eca import ECA
from viewkeeper.protocols.medwrap import Medwrap
from viewkeeper.protocols.messages import Protocol
from viewkeeper.protocols.naive import Naive
from viewkeeper.protocols.nested_sweep import NestedSweep
from viewkeeper.protocols.parallel_sweep import ParallelSweep
from viewkeeper.protocols.recompute import Recompute
from viewkeeper.protocols.simplistic import Simplistic
from viewkeeper.protocols.strobe import Strobe
from viewkeeper.protocols.sweep import Sweep

PROTOCOLS: dict[str, type[Protocol]] = {
    protocol.name: protocol
    for protocol in (
        Naive,
        Recompute,
        Sweep,
        NestedSweep,
        ParallelSweep,
        BatchedSweep,
        ECA,
        Strobe,
        CStrobe,
        Medwrap,
        Simplistic,
    )
}


def protocol_named(name: str) -> type[Protocol]:
    """The protocol of that name; raises UsageError that names the nearest one."""
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
