"""All merge processes: one for each group of views, regrouped while they run.

Paper: MVC (1997), sections 6.1 and 6.2. Relevance of every row goes to every group, restricted to its
views, so all know how far the numbering has come; everything else goes to one group alone.

Groups change for three reasons. A view is *added* that reads relations of two groups, or a transaction
concerns views of two groups: these become one, with both tables in one. A view is *dropped* that held
two groups together: they part as soon as no row and no uncommitted transaction concerns both. Groups
that are not concerned never notice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace

from viewkeeper.errors import UsageError, invariant
from viewkeeper.merging.algorithm import MergeAlgorithm
from viewkeeper.merging.commit_order import CommitOrder, DependentOnly, Numbers
from viewkeeper.merging.complete_n import CompleteN
from viewkeeper.merging.groups import partition
from viewkeeper.merging.merge_process import MergeProcess
from viewkeeper.merging.messages import (
    ActionListArrived,
    BlockEnded,
    CommitTransaction,
    Event,
    RelevanceArrived,
    WarehouseCommitted,
)
from viewkeeper.merging.mixtures import Promise, algorithm_for
from viewkeeper.merging.table import ViewUpdateTable


@dataclass(frozen=True)
class ViewAdded:
    """A view takes part from the next row on. Its initial extent comes as an update of its own."""

    view: str
    relations: frozenset[Hashable]
    promise: Promise


@dataclass(frozen=True)
class ViewDropped:
    """A view takes part no more; lists of it may still be on their way, and are ignored."""

    view: str


GroupsEvent = Event | ViewAdded | ViewDropped


class MergeGroups:
    """The merge processes of all groups, as one state machine."""

    def __init__(
        self,
        make_order: Callable[[Numbers], CommitOrder] = DependentOnly,
        choose: Callable[[Iterable[Promise], ViewUpdateTable], MergeAlgorithm] = algorithm_for,
        ties: Iterable[Iterable[str]] = (),
    ) -> None:
        """``ties``: views that transactions will change together; others are found as they come."""
        self.relations: dict[str, frozenset[Hashable]] = {}
        self.promises: dict[str, Promise] = {}
        self.processes: list[MergeProcess] = []
        self._make_order = make_order
        self._choose = choose
        self._numbers = Numbers()
        self._announced = 0
        # Views that some transaction changed together: groups by relations alone would part them.
        self._ties: dict[frozenset[str], None] = {frozenset(tie): None for tie in ties}
        # Within a unit: the views that its rows have concerned so far.
        self._unit: frozenset[str] | None = None
        self._dropped: set[str] = set()
        # Lists of views that have not been added yet.
        self._early: dict[str, list[ActionListArrived]] = {}
        # Commits that concern dropped views alone: the warehouse has them, and will say so.
        self._orphans: set[int] = set()
        self._must_part = False

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The views of each group, as they are now."""
        return tuple(tuple(process.table.columns) for process in self.processes)

    @property
    def is_idle(self) -> bool:
        nothing_else = not self._orphans and not self._early
        return nothing_else and all(process.is_idle for process in self.processes)

    def process_of(self, view: str) -> MergeProcess:
        return next(p for p in self.processes if view in p.table.columns)

    def step(self, event: GroupsEvent) -> tuple[CommitTransaction, ...]:
        """Take one event in; the commits may be carried out in any order among themselves."""
        match event:
            case RelevanceArrived():
                return tuple(self._relevance_arrived(event))
            case ActionListArrived(action_list):
                if action_list.view in self._dropped:
                    return ()
                if action_list.view not in self.relations:
                    # Its manager was faster than the word that there is such a view.
                    self._early.setdefault(action_list.view, []).append(event)
                    return ()
                return self.process_of(action_list.view).step(event)
            case BlockEnded():
                return tuple(commit for process in self.processes for commit in process.step(event))
            case WarehouseCommitted(number):
                return tuple(self._committed(number))
            case ViewAdded(view, relations, promise):
                return tuple(self._add(view, relations, promise))
            case ViewDropped(view):
                return tuple(self._drop(view))

    # -- rows and commits --------------------------------------------------------------------------

    def _relevance_arrived(self, event: RelevanceArrived) -> Iterable[CommitTransaction]:
        self._announced = event.row
        concerned = frozenset(event.views) & self.relations.keys()
        # The parts of a global transaction are rows of their own, and must be in one table.
        together = (self._unit or frozenset()) | concerned
        if len(together) > 1 and together not in self._ties:
            self._ties[together] = None
            yield from self._regrouped()
        self._unit = together if event.more else None
        for process in self.processes:
            views = tuple(view for view in event.views if view in process.table.columns)
            yield from process.step(replace(event, views=views))

    def _committed(self, number: int) -> Iterable[CommitTransaction]:
        if number in self._orphans:
            self._orphans.remove(number)
            return
        owner = next((p for p in self.processes if number in p.commits.in_flight), None)
        invariant(owner is not None, f"the warehouse committed {number}, which it was not given")
        if owner is not None:
            yield from owner.step(WarehouseCommitted(number))
        if self._must_part:
            yield from self._regrouped()

    # -- views that come and go --------------------------------------------------------------------

    def _add(
        self, view: str, relations: frozenset[Hashable], promise: Promise
    ) -> Iterable[CommitTransaction]:
        if view in self.relations:
            raise UsageError("view-exists", f"there is a view {view} already")
        self._dropped.discard(view)
        self.relations[view], self.promises[view] = frozenset(relations), promise
        table = ViewUpdateTable((view,))
        table.announced = self._announced
        self.processes.append(self._process(table, self._make_order(self._numbers)))
        yield from self._regrouped()
        for early in self._early.pop(view, ()):
            yield from self.process_of(view).step(early)

    def _drop(self, view: str) -> Iterable[CommitTransaction]:
        if view not in self.relations:
            raise UsageError("no-such-view", f"there is no view {view}")
        process = self.process_of(view)
        del self.relations[view], self.promises[view]
        self._dropped.add(view)
        smaller = dict.fromkeys(tie - {view} for tie in self._ties)
        self._ties = {tie: None for tie in smaller if len(tie) > 1}
        process.table.drop(view)
        process.commits.drop(view)
        self.processes.remove(process)
        if process.table.columns:
            successor = self._process(process.table, process.commits)
            self.processes.append(successor)
            # Rows that waited for the dropped view alone can go now.
            yield from successor.take_over()
        else:
            self._orphans.update(process.commits.in_flight)
        yield from self._regrouped()

    # -- groups ------------------------------------------------------------------------------------

    def _process(self, table: ViewUpdateTable, commits: CommitOrder) -> MergeProcess:
        promises = [self.promises[view] for view in table.columns]
        algorithm = self._choose(promises, table)
        if isinstance(algorithm, CompleteN):
            algorithm.count_on(is_inside_unit=self._unit is not None)
        elif self._unit is None:
            # A block was open, and nobody counts blocks any more.
            table.close_unit()
        return MergeProcess(algorithm, commits)

    def _regrouped(self) -> Iterable[CommitTransaction]:
        """Join what belongs together, part what does not any more and can be parted now."""
        wanted = partition(self.relations, self._ties)
        for group in wanted:
            members = [p for p in self.processes if not p.table.columns.keys().isdisjoint(group)]
            if len(members) > 1:
                yield from self._joined(members)
        self._must_part = False
        for process in list(self.processes):
            parts = [group for group in wanted if group[0] in process.table.columns]
            if len(parts) > 1:
                yield from self._parted(process, parts)

    def _joined(self, members: list[MergeProcess]) -> Iterable[CommitTransaction]:
        first, *others = members
        for other in others:
            first.table.absorb(other.table)
            first.commits.absorb(other.commits)
        first.table.wait_for(first.commits.uncommitted)
        at = self.processes.index(first)
        self.processes = [p for p in self.processes if p not in members]
        joined = self._process(first.table, first.commits)
        self.processes.insert(at, joined)
        yield from joined.take_over()

    def _parted(
        self, process: MergeProcess, parts: list[tuple[str, ...]]
    ) -> Iterable[CommitTransaction]:
        process.table.purge()
        pending = [*process.table.ties(), *process.commits.ties()]
        if any(not any(tie <= set(part) for part in parts) for tie in pending):
            # Some row or commit still concerns both; asked again after every commit.
            self._must_part = True
            return
        at = self.processes.index(process)
        successors = [
            self._process(process.table.part(part), process.commits.part(part)) for part in parts
        ]
        kept = {number for successor in successors for number in successor.commits.in_flight}
        self._orphans.update(process.commits.in_flight.keys() - kept)
        self.processes[at : at + 1] = successors
        for successor in successors:
            yield from successor.take_over()
