"""The simulated world of several views: sources, integrator, view managers, merge process, warehouse.

As in `simulator.world`, nothing happens by itself: `choices` lists what could, `take` makes it happen. Every
process has a channel to every other. Without FIFO a channel reorders; where the paper needs the order
of one sender, the receiver restores it from sequence numbers. The warehouse commits whatever it was
given in any order, always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.consistency import SourceHistories
from viewkeeper.errors import invariant
from viewkeeper.merging.global_transactions import GlobalTransactions, NumberUnit, Part, PartArrived
from viewkeeper.merging.integrator import Integrator
from viewkeeper.merging.merge_groups import GroupsEvent, MergeGroups, ViewAdded, ViewDropped
from viewkeeper.merging.messages import (
    ActionList,
    ActionListArrived,
    BlockEnded,
    CommitTransaction,
    WarehouseCommitted,
)
from viewkeeper.protocols.inbox import Inbox, SettledMessage, TransactionMessage
from viewkeeper.protocols.messages import AskSource, SourceSettled, TransactionArrived
from viewkeeper.simulator.kernel.world import Commit, Network, Reveal
from viewkeeper.simulator.merging.channels import (
    INTEGRATOR,
    MERGE,
    WAREHOUSE,
    Add,
    Choice,
    Deliver,
    Drop,
    EndBlock,
    Envelope,
    InOrder,
    Refresh,
)
from viewkeeper.simulator.merging.managers import (
    Answer,
    BlockClosed,
    Change,
    ManagerProcess,
    Numbered,
    Replacement,
    Settled,
)
from viewkeeper.simulator.merging.scenario import MergeScenario
from viewkeeper.simulator.source import SimulatedSource
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.assembly import evaluated

# Told of every event that the merge process takes in, and what follows from it.
Watch = Callable[[GroupsEvent, MergeGroups, tuple[CommitTransaction, ...]], None]


class MergeWorld:
    """Everything there is in a run with several views."""

    def __init__(
        self,
        scenario: MergeScenario,
        groups: MergeGroups,
        network: Network = Network(),  # noqa: B008  (immutable)
        *,
        every: int = 1,
        keep_source_order: bool = True,
        watch: Watch = lambda event, groups, commits: None,
    ) -> None:
        """``every``: the block size of the merge process; ``keep_source_order`` as in `Integrator`."""
        self.scenario = scenario
        self.network = network
        self.every = every
        self.watch = watch
        self.sources = {
            name: SimulatedSource(name, scenario.initial, script, inversions=network.inversions)
            for name, script in sorted(scenario.scripts.items())
        }
        self.inboxes = {name: Inbox(name) for name in self.sources}
        self.histories = SourceHistories(scenario.initial, scenario.scripts)
        self.together = GlobalTransactions(timeout_seconds=60)
        present = [v for v in scenario.views if v.name not in scenario.added]
        reads = {v.name: v.definition.relations for v in present}
        self.integrator = Integrator(reads, keep_source_order=keep_source_order)
        self.block_is_open = False
        self.groups = groups
        extents = {
            v.name: evaluated(v.definition, lambda name: scenario.initial[name]) for v in present
        }
        self.managers = {v.name: ManagerProcess(v, extents[v.name]) for v in present}
        self.to_add = [v for v in scenario.views if v.name in scenario.added]
        self.to_drop = sorted(scenario.dropped)
        self.numbered = dict.fromkeys(self.sources, 0)
        # What a reader could see: all views, after the updates of these rows.
        self.states: list[dict[str, Bag]] = [extents]
        self.shown: list[frozenset[int]] = [frozenset()]
        # For each row: its transaction and the views it concerns.
        self.rows: dict[int, tuple[Transaction, tuple[str, ...]]] = {}
        self.messages = 0
        self.on_the_way: list[Envelope] = []
        self._sent: dict[tuple[str, str], int] = {}
        self._orders: dict[tuple[str, str], InOrder] = {}
        for view in present:
            relations = frozenset(view.definition.relations)
            self.groups.step(ViewAdded(view.name, relations, view.promise))

    # -- what could happen, and making it happen ---------------------------------------------------

    def choices(self) -> list[Choice]:
        """Everything that could happen next, in a fixed order; empty when the run is over."""
        found: list[Choice] = []
        for source in self.sources.values():
            found += source.choices
        found += [Add(view.name) for view in self.to_add]
        found += [Drop(name) for name in self.to_drop if name in self.managers]
        found += [Refresh(name) for name, manager in self.managers.items() if manager.may_refresh]
        found += [Deliver(index) for index in self._deliverable()]
        if not found and self.block_is_open:
            found.append(EndBlock())
        return found

    def _deliverable(self) -> Iterator[int]:
        seen: set[tuple[str, str]] = set()
        for index, envelope in enumerate(self.on_the_way):
            channel = (envelope.sender, envelope.to)
            if not self.network.fifo or envelope.to == WAREHOUSE or channel not in seen:
                yield index
            seen.add(channel)

    def take(self, choice: Choice) -> None:
        """Make it happen."""
        match choice:
            case Commit(name):
                source = self.sources[name]
                transaction = source.commit()
                message = TransactionMessage(transaction, source.settled)
                self._send(name, INTEGRATOR, message)
            case Reveal(name, number):
                self.sources[name].reveal(number)
                self._send(name, INTEGRATOR, SettledMessage(self.sources[name].settled))
            case Refresh(view):
                self._send(view, MERGE, self.managers[view].refresh())
            case Add(view):
                self._add(view)
            case Drop(view):
                self._drop(view)
            case EndBlock():
                self._end_block(self.integrator.last_row)
                self._send(INTEGRATOR, MERGE, BlockEnded())
            case Deliver(index):
                self._deliver(self.on_the_way.pop(index))

    def _send(self, sender: str, to: str, message: Any) -> None:
        sequence = self._sent.get((sender, to), 0) + 1
        self._sent[sender, to] = sequence
        self.messages += 1
        self.on_the_way.append(Envelope(sender, to, sequence, message))

    def _deliver(self, envelope: Envelope) -> None:
        sender, to = envelope.sender, envelope.to
        # Lists of a dropped view's manager still arrive; it hears and asks no more.
        if self._is_gone(to) or (self._is_gone(sender) and to in self.sources):
            return
        if to == INTEGRATOR:
            self._integrate(sender, envelope.message)
        elif to == WAREHOUSE:
            self._commit(envelope.message)
        elif to in self.sources:
            answer = self.sources[to].answer(envelope.message, self.managers[sender].assemblies)
            self._send(to, sender, Answer(to, answer))
        elif sender in self.sources:
            self._manage(to, envelope.message)
        else:
            order = self._orders.setdefault((sender, to), InOrder())
            for message in order.received(envelope):
                if to == MERGE:
                    self._merge(message)
                else:
                    self._manage(to, message)

    def _is_gone(self, name: str) -> bool:
        return name in self.scenario.dropped and name not in self.managers

    # -- the processes -----------------------------------------------------------------------------

    def _integrate(self, source: str, message: TransactionMessage | SettledMessage) -> None:
        for event in self.inboxes[source].receive(message):
            match event:
                case TransactionArrived(transaction):
                    tie = self.scenario.ties.get((source, transaction.number))
                    part = Part(source, transaction, tie)
                    for action in self.together.step(PartArrived(part, now_seconds=0)):
                        if isinstance(action, NumberUnit):
                            self._number(action.parts)
                case SourceSettled(_, upto):
                    for name, manager in self.managers.items():
                        if source in manager.inboxes:
                            self._send(INTEGRATOR, name, Settled(source, upto))

    def _number(self, parts: tuple[Part, ...]) -> None:
        for index, part in enumerate(parts, 1):
            transaction: Transaction = part.transaction
            relevance = self.integrator.number(
                part.source, transaction.relations, more=index < len(parts)
            )
            self.rows[relevance.row] = (transaction, relevance.views)
            self.numbered[part.source] = transaction.number
            self._send(INTEGRATOR, MERGE, relevance)
            for name, manager in self.managers.items():
                if part.source in manager.inboxes:
                    relevant = name in relevance.views
                    numbered = Numbered(relevance.row, transaction, relevant)
                    self._send(INTEGRATOR, name, numbered)
            self.block_is_open = self.every > 1
            self._tell_blocks(relevance.row, is_end=index == len(parts))

    def _tell_blocks(self, row: int, *, is_end: bool) -> None:
        for name, manager in self.managers.items():
            if manager.view.every > 1 and row % manager.view.every == 0:
                self._send(INTEGRATOR, name, BlockClosed(row))
        if row % self.every == 0 and is_end:
            self.block_is_open = False

    def _end_block(self, row: int) -> None:
        self.block_is_open = False
        for name, manager in self.managers.items():
            if manager.view.every > 1:
                self._send(INTEGRATOR, name, BlockClosed(row))

    def _add(self, name: str) -> None:
        view = next(v for v in self.to_add if v.name == name)
        self.to_add.remove(view)
        sources, histories = view.definition.sources, self.histories
        start = CutVector.of({source: self.numbered[source] for source in sources})
        extent = evaluated(view.definition, lambda r: histories.contents(r, start[r.source]))
        self.managers[name] = ManagerProcess(view, extent, start)
        relations = frozenset(view.definition.relations)
        self._send(INTEGRATOR, MERGE, ViewAdded(name, relations, view.promise))
        self.integrator.views[name] = relations
        relevance = self.integrator.number_view(name, sources)
        self._send(INTEGRATOR, MERGE, relevance)
        self._send(name, MERGE, ActionList(name, (relevance.row,), Replacement(extent)))
        self.block_is_open = self.every > 1
        self._tell_blocks(relevance.row, is_end=True)

    def _drop(self, name: str) -> None:
        del self.managers[name], self.integrator.views[name]
        self._send(INTEGRATOR, MERGE, ViewDropped(name))

    def _manage(self, view: str, message: Any) -> None:
        for outgoing in self.managers[view].receive(message):
            match outgoing:
                case AskSource(_, source, _):
                    self._send(view, source, outgoing)
                case ActionList():
                    self._send(view, MERGE, outgoing)

    def _merge(self, message: GroupsEvent | ActionList) -> None:
        event: GroupsEvent = (
            ActionListArrived(message) if isinstance(message, ActionList) else message
        )
        commits = self.groups.step(event)
        self.watch(event, self.groups, commits)
        for commit in commits:
            self._send(MERGE, WAREHOUSE, commit)

    def _commit(self, commit: CommitTransaction) -> None:
        state = dict(self.states[-1])
        for action_list in commit.lists:
            match action_list.contents:
                case Change(rows):
                    state[action_list.view] = state[action_list.view] + rows
                case Replacement(rows):
                    state[action_list.view] = rows
        self.states.append(state)
        self.shown.append(self.shown[-1] | frozenset(commit.rows))
        self._send(WAREHOUSE, MERGE, WarehouseCommitted(commit.number))

    # -- at the end --------------------------------------------------------------------------------

    def require_finished(self) -> None:
        """Nothing can happen any more: then nothing may be waiting either (liveness)."""
        invariant(not self.choices(), "the run is not over")
        busy = [name for name, manager in self.managers.items() if not manager.is_idle]
        invariant(not busy, "view managers wait for ever", detail=f"{busy}")
        invariant(not self.together.held, "parts of global transactions wait for ever")
        invariant(self.groups.is_idle, "the merge process waits for ever")
