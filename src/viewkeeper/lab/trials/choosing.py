"""Which trial a protocol's name and the options beside it mean."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.errors import UsageError
from viewkeeper.lab.trials.asking_trial import AskingTrial, asking_trial
from viewkeeper.lab.trials.medwrap_trial import MEDIATED, VARIANTS, multi_relation_trial
from viewkeeper.lab.trials.ring_trial import ring_trial, ring_variants
from viewkeeper.lab.trials.trial import Trial, Wish
from viewkeeper.protocols.registry import PROTOCOLS, RINGS, TRIED, World, unknown_protocol
from viewkeeper.simulator.generator import Shape, Size
from viewkeeper.simulator.kernel.world import Network


def variants_of(name: str) -> list[str]:
    """What `--variant` takes for a protocol."""
    if name in RINGS:
        return list(ring_variants(name))
    return list(VARIANTS) if name in MEDIATED else []


def wish(
    *,
    sources: int,
    transactions: int,
    shape: str,
    inversions: bool = False,
    no_fifo: bool = False,
    search: bool = False,
    beyond_assumptions: bool = False,
    variants: Sequence[str] = (),
) -> Wish:
    """The options of the command line, put together."""
    return Wish(
        Size(sources, transactions, Shape(shape)),
        Network(fifo=not no_fifo, inversions=inversions),
        search,
        beyond_assumptions,
        tuple(variants),
    )


def chosen_trial(name: str, wanted: Wish) -> Trial:
    """The trial that this means; raises UsageError on a name or an option that does not fit."""
    _require_known(name)
    match TRIED[name].world:
        case World.RING:
            return ring_trial(name, wanted)
        case World.SEVERAL_RELATIONS:
            return multi_relation_trial(name, wanted)
    return asking_trial(PROTOCOLS[name], wanted)


def explorable_trial(name: str, wanted: Wish) -> AskingTrial:
    """A trial whose every interleaving can be tried; raises UsageError where there is none."""
    _require_known(name)
    if name not in PROTOCOLS:
        raise UsageError(
            "not-explored",
            f"lab explore does not know the world of {name}",
            hint=f"run many seeds: viewkeeper lab swarm --protocol {name} --seeds 1..200",
        )
    return asking_trial(PROTOCOLS[name], wanted)


def required(protocol: str | None) -> str:
    """The protocol, or a UsageError that says that one must be named."""
    if protocol is None:
        raise UsageError(
            "command-line",
            "nothing says what to run",
            detail="expected a protocol, like --protocol sweep, or several views, like --views 4",
            hint="see `viewkeeper lab run --help`",
        )
    return protocol


def _require_known(name: str) -> None:
    if name not in TRIED:
        raise unknown_protocol(name, TRIED)
