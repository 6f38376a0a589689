"""What the parts of a group's machine have in common: its views, what has arrived, what is at work, where it stands."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import deque
from collections.abc import Iterable, Mapping

from viewkeeper.engine.intake import Follow, Intake
from viewkeeper.engine.integrator import Arrival
from viewkeeper.engine.jobs import Jobs
from viewkeeper.engine.limits import Limits
from viewkeeper.engine.messages import Action
from viewkeeper.engine.notes import Notes
from viewkeeper.engine.pending_changes import PendingChanges
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.engine.scope import Scope
from viewkeeper.engine.unions import Compare
from viewkeeper.engine.view import View
from viewkeeper.sources.interface import Position, SchemaChange
from viewkeeper.sources.transaction_block import TransactionBlock

# Of what waits, this much is looked at for the oldest: transactions arrive in about the order of commits.
HEADS_MAX = 100


class GroupState:
    """Read by all parts of a machine; each field is written by one, or by few that say so."""

    def __init__(
        self,
        views: Mapping[str, View],
        evolution: Evolution,
        starts: Mapping[str, Position],
        compare: Compare,
        follow: Follow,
        limits: Limits,
        new: Iterable[str],
        taken: Iterable[SchemaChange],
    ) -> None:
        self.limits = limits
        self.scope = Scope(dict(views), evolution)
        self.starts = {name: starts[name] for name in self.scope.sources}
        self.intake = Intake(self.scope, self.starts, compare, follow, taken)
        # How far each source has been applied to the views in the warehouse, and how far it will be when
        # all commits that are on their way are there.
        self.reached: dict[str, Position] = dict(self.starts)
        self.reaching = dict(self.starts)
        self.notes = Notes(self.reached, compare)
        self.pending = PendingChanges(new)
        self.jobs = Jobs(views, 1, (), limits)
        # The last transaction of each source that is in a batch.
        self.applied: dict[str, int] = {}
        # Commits on their way to the warehouse: the rows of each.
        self.commits: dict[int, tuple[int, ...]] = {}
        # What only watched relations had in it, as far as no position says that it was passed.
        self.unshown: list[Arrival] = []
        self.backlog_rows = 0
        self.readers: deque[int] = deque()
        # An action that nothing else may go beside: a filling, or a reading.
        self.is_exclusive = False
        self.is_resting = False
        # What went wrong, until it can be dealt with.
        self.error: BaseException | None = None
        self.actions: list[Action] = []
        self.wake_at = math.inf

    def do(self, action: Action) -> None:
        self.actions.append(action)

    def wake(self, at: float) -> None:
        self.wake_at = min(self.wake_at, at)

    @property
    def is_free(self) -> bool:
        """Whether nothing is being computed or committed; rows may wait for a view that can't begin."""
        return not (self.jobs.is_at_work or self.commits)

    @property
    def uncommitted(self) -> list[Arrival]:
        """All that is not in the warehouse, in order."""
        return [*self.jobs.batches, *self.intake.integrator.pending]

    def forget_unshown(self) -> None:
        """What the positions have passed is needed no more: a view that comes to read it begins behind."""
        reached, compare = self.reached, self.intake.compare
        origins = ((arrival, arrival.origin) for arrival in self.unshown)
        self.unshown = [
            arrival
            for arrival, o in origins
            if o.source in reached and compare(o.source, o.position, reached[o.source]) > 0
        ]

    @property
    def holds_too_much(self) -> bool:
        """Also what is committed, and kept for a view that was not told of it yet."""
        return self.backlog_rows + self.jobs.kept_rows > self.limits.backlog_rows_max

    @property
    def change_due(self) -> SchemaChange | None:
        return self.intake.due[0] if self.intake.due else None

    def oldest_commits(self) -> dict[str, dt.datetime]:
        """By source, when the oldest transaction that is on its way to the views was committed."""
        lists = [self.intake.integrator.pending, *(r.batch for r in self.jobs.by_row.values())]
        found: dict[str, dt.datetime] = {}
        for arrival in (a for each in lists for a in itertools.islice(each, HEADS_MAX)):
            if self.intake.is_own(arrival):
                origin = arrival.origin
                at = (
                    origin.began_at if isinstance(origin, TransactionBlock) else origin.committed_at
                )
                found[origin.source] = min(at, found.get(origin.source, at))
        return found
