"""Worlds of one view, as its readers see them: the states that it goes through, and the cuts that are claimed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from viewkeeper.algebra.expressions import Column, Comparison, Literal
from viewkeeper.algebra.types import INTEGER
from viewkeeper.errors import invariant
from viewkeeper.protocols.messages import TXN, InstallBatch, InstallChange
from viewkeeper.simulator.kernel.journal import Journal, Told, rows_text
from viewkeeper.simulator.kernel.world import Act, Channel, Commit, Network, Node, Reveal, World
from viewkeeper.simulator.source import ScriptedSource
from viewkeeper.timeline import CutVector


class OneViewWorld(World):
    """Sources that commit their scripts, other nodes, and the view."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        channels: Mapping[str, Sequence[Channel]],
        network: Network,
        extent: Any,
        journal: Journal | None,
    ) -> None:
        super().__init__(nodes, channels, network, journal)
        self.states: list[Any] = [extent]
        self.claims: list[CutVector] = [CutVector.start(self.sources)]
        if journal is not None:
            journal.begun(extent)

    @property
    def sources(self) -> dict[str, Any]:
        return {name: node for name, node in self.nodes.items() if isinstance(node, ScriptedSource)}

    def carry_out(self, sender: str, action: Any) -> None:
        match action:
            case InstallChange():
                self.install(action)
            case InstallBatch():
                for step in steps_of(action):
                    self.install(step)
            case _:
                invariant(False, f"{type(self).__name__} has no route for {action}")

    def install(self, install: InstallChange) -> None:
        """The view has another state, and a reader could see it."""
        self.states.append(self.states[-1] + install.change)
        self.claims.append(install.cut)
        if self.journal is not None:
            self.journal.installed(install.change, install.cut, self.states[-1])

    def told_act(self, act: Act, to: str | None = None) -> Told | None:
        """What a source does by itself, in words; a commit is announced ``to`` a place."""
        match act:
            case Commit(name):
                source = self.sources[name]
                made = source.script[source.committed - 1]
                changes = {relation.relation: rows for relation, rows in made.changes}
                text = "; ".join(f"{name} {rows_text(rows)}" for name, rows in changes.items())
                facts = {"transaction": made}
                return Told("commit", f"#{made.number}", text, to=to, facts=facts)
            case Reveal(_, number):
                return Told("reveal", "", f"#{number} becomes visible to queries")
        return None


def steps_of(batch: InstallBatch) -> Iterator[InstallChange]:
    """A batch as the sequence of changes that it stands for: each is a state a reader can ask for."""
    names = [name for name in batch.change.schema.names if name != TXN]
    for number, cut, transaction in zip(batch.numbers, batch.cuts, batch.transactions, strict=True):
        step = Comparison("=", Column(TXN), Literal(number, INTEGER))
        yield InstallChange(batch.change.where(step).only(names), cut, (transaction,))
