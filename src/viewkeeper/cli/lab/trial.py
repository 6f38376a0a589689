"""What one trial in the lab is: a protocol, a size and a network that fit it, and its own command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.protocols.messages import Assumptions, Protocol
from viewkeeper.protocols.registry import protocol_named
from viewkeeper.simulator.generator import Shape, Size
from viewkeeper.simulator.journal import Journal
from viewkeeper.simulator.run import Outcome, simulated
from viewkeeper.simulator.scenario import Network


@dataclass(frozen=True)
class Trial:
    """Everything but the seed. Crosses process borders."""

    protocol: type[Protocol]
    size: Size
    network: Network
    search: bool = False
    beyond_assumptions: bool = False

    def outcome(self, seed: int, journal: Journal | None = None) -> Outcome:
        """Run one seed; raises InvariantViolated when the protocol contradicts itself or gets stuck."""
        return simulated(
            self.protocol, seed, self.size, self.network, search=self.search, journal=journal
        )

    def command(self, seed: int, verb: str = "run") -> str:
        """The command line that does this again."""
        size, network = self.size, self.network
        words = [f"viewkeeper lab {verb} --protocol {self.protocol.name}"]
        words.append(f"--sources {size.sources} --transactions {size.transactions} --seed {seed}")
        words.append(f"--shape {size.shape.value}")
        flags = {
            "--inversions": network.inversions,
            "--no-fifo": not network.fifo,
            "--search": self.search,
            "--beyond-assumptions": self.beyond_assumptions,
        }
        return " ".join(words + [flag for flag, given in flags.items() if given])

    def as_dict(self) -> dict[str, Any]:
        """What was tried, for JSON."""
        return {
            "relations": self.size.sources,
            "shape": self.size.shape.value,
            "fifo": self.network.fifo,
            "inversions": self.network.inversions,
        }


def trial(
    name: str,
    *,
    sources: int,
    transactions: int,
    shape: str,
    inversions: bool = False,
    fifo: bool = True,
    search: bool = False,
    beyond_assumptions: bool = False,
) -> Trial:
    """The trial that these words mean; raises UsageError on a network that breaks an assumption."""
    protocol = protocol_named(name)
    network = Network(fifo=fifo, inversions=inversions)
    if not beyond_assumptions:
        _require_fitting(protocol, network)
    size = Size(
        sources,
        transactions,
        Shape(shape),
        keyed=protocol.assumes.keys,
        one_source=protocol.assumes.one_source,
    )
    return Trial(protocol, size, network, search, beyond_assumptions)


def _require_fitting(protocol: type[Protocol], network: Network) -> None:
    assumes: Assumptions = protocol.assumes
    broken = [
        flag
        for flag, breaks in (
            ("--no-fifo", assumes.fifo and not network.fifo),
            ("--inversions", assumes.no_inversions and network.inversions),
        )
        if breaks
    ]
    if broken:
        raise UsageError(
            "assumption-broken",
            f"{protocol.name} promises nothing with {' and '.join(broken)}",
            detail=f"it assumes {assumes}",
            hint="add --beyond-assumptions to see what happens, or choose sweep, which assumes nothing",
        )
