"""What one trial in the lab is: a protocol, a size and a network that fit it, and its own command line.

Families of protocols run in worlds of their own; each has its kind of trial in a sibling module, and
`choosing` finds the one that a name means. The commands know this class only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.simulator.generator import Size
from viewkeeper.simulator.kernel.journal import Journal
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.run import Outcome
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class Wish:
    """What was asked for on the command line, whatever the protocol."""

    size: Size
    network: Network
    search: bool = False
    beyond_assumptions: bool = False
    variants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial(ABC):
    """Everything but the seed. Crosses process borders."""

    wish: Wish

    @property
    @abstractmethod
    def name(self) -> str:
        """The protocol's."""

    @property
    @abstractmethod
    def level(self) -> Level:
        """The level that every run must reach."""

    @abstractmethod
    def outcome(self, seed: int, journal: Journal | None = None) -> Outcome:
        """Run one seed; raises InvariantViolated when the protocol contradicts itself or gets stuck."""

    def measures(self, outcome: Outcome) -> dict[str, Any]:
        """What else is known of a run in this world, for JSON."""
        return {}

    @abstractmethod
    def lines(self, outcome: Outcome, measures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """What a run cost, for people: a word and what is to be said about it."""

    @property
    def size(self) -> Size:
        return self.wish.size

    @property
    def network(self) -> Network:
        return self.wish.network

    def command(self, seed: int, verb: str = "run") -> str:
        """The command line that does this again."""
        size, network = self.size, self.network
        words = [f"viewkeeper lab {verb} --protocol {self.name}"]
        words.append(f"--sources {size.sources} --transactions {size.transactions} --seed {seed}")
        words.append(f"--shape {size.shape.value}")
        words += [f"--variant {variant}" for variant in self.wish.variants]
        flags = {
            "--inversions": network.inversions,
            "--no-fifo": not network.fifo,
            "--search": self.wish.search,
            "--beyond-assumptions": self.wish.beyond_assumptions,
        }
        return " ".join(words + [flag for flag, given in flags.items() if given])

    def as_dict(self) -> dict[str, Any]:
        """What was tried, for JSON."""
        return {
            "relations": self.size.sources,
            "shape": self.size.shape.value,
            "fifo": self.network.fifo,
            "inversions": self.network.inversions,
            "variants": list(self.wish.variants),
        }


def settings_of(
    name: str, variants: tuple[str, ...], known: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The settings that these variants stand for; raises UsageError on one that is not known."""
    unknown = [variant for variant in variants if variant not in known]
    if unknown:
        raise UsageError(
            "unknown-variant",
            f"{name} has no variant {unknown[0]}",
            detail=f"its variants are {', '.join(known)}" if known else "it has no variants",
        )
    settings: dict[str, Any] = {}
    for variant in variants:
        clash = settings.keys() & known[variant].keys()
        if clash:
            raise UsageError("variants-clash", f"{' and '.join(variants)} exclude each other")
        settings |= known[variant]
    return settings
