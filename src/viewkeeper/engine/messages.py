"""What goes into the engine and what comes out of it.

Actions of one group are carried out one after the other, in their order; those of different groups are
independent. A view's part of a job is computed beside them. Cuts are known by a *ticket*: who opens them keeps
them open until they are released, or until the job, the filling or the reading that took them over is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from viewkeeper.algebra.types import Schema
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.integrator import Arrival
from viewkeeper.engine.schema_changes import Foreseen
from viewkeeper.engine.view import View
from viewkeeper.evolution.effects import Effect
from viewkeeper.evolution.map_va import MapVA
from viewkeeper.protocols.messages import Reflected
from viewkeeper.sources.interface import (
    Position,
    RelationSchema,
    SchemaChange,
    SourceTransaction,
)
from viewkeeper.sources.transaction_block import TransactionBlock
from viewkeeper.views.definition import RelationName

Positions = Mapping[str, Position]
# For each view, the positions of the sources that it reads.
ViewPositions = Mapping[str, Positions]


class Snapshot(Protocol):
    """An open cut of one source, as far as the engine looks at it."""

    # Answers may be used once the feed has delivered everything up to here.
    @property
    def bound(self) -> Position: ...
    # Which run of the server it reads from.
    @property
    def life(self) -> str: ...
    @property
    def schemas(self) -> Mapping[str, RelationSchema]: ...

    def reflects_each(self, transactions: Sequence[SourceTransaction]) -> list[bool]: ...

    def reflects_block(self, block: TransactionBlock) -> list[bool]: ...


# -- events of the whole engine --------------------------------------------------------------------------


@dataclass(frozen=True)
class FeedDelivered:
    """A feed brought something."""

    delivery: Delivery


@dataclass(frozen=True)
class TimePassed:
    """Nothing happened, but the clock."""


@dataclass(frozen=True)
class NoteWanted:
    """Somebody waits for a position: the ledger is to have it as soon as it is passed."""

    source: str
    position: Position


# -- events of one group ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CutsOpened:
    ticket: int
    snapshots: Mapping[str, Snapshot]
    # About how many rows relations have, as far as it was asked for.
    sizes: Mapping[RelationName, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangeComputed:
    """A view's part of a job is here. ``job`` is its serial number."""

    job: int
    view: str
    contents: Any = field(repr=False)


@dataclass(frozen=True)
class Failed:
    """An action could not be carried out, a job not computed (``job``), or cuts not opened (``ticket``).

    After ``is_final`` it is not known what the warehouse has: the group can't go on.
    """

    error: BaseException
    job: int | None = None
    is_final: bool = False
    ticket: int | None = None


@dataclass(frozen=True)
class Committed:
    """The warehouse has the transaction of that number."""

    number: int


@dataclass(frozen=True)
class Noted:
    """The ledger says, or will say with its next entry, that the views have reached these positions."""

    reached: Positions
    is_durable: bool


@dataclass(frozen=True)
class Filled:
    """New views are in the warehouse, as they are given here."""

    views: Mapping[str, View]


@dataclass(frozen=True)
class ReadingDone:
    """What `ReadWhole` asked for is over; its cuts are closed."""


@dataclass(frozen=True)
class DecisionFound:
    """What somebody decided about the schema change at this position: approve, reject, or nothing yet."""

    change: SchemaChange
    decision: str | None


@dataclass(frozen=True)
class ReadWanted:
    """Somebody wants to read whole relations at the cut that the group stands at (an audit)."""

    reader: int


GroupEvent = (
    CutsOpened
    | ChangeComputed
    | Failed
    | Committed
    | Noted
    | Filled
    | ReadingDone
    | DecisionFound
    | ReadWanted
)
Event = FeedDelivered | TimePassed | NoteWanted | tuple[int, GroupEvent]


# -- actions ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OpenCuts:
    """Open one cut per source for these relations; then say so. ``weigh``: their sizes are wanted, too."""

    ticket: int
    relations: Mapping[str, tuple[str, ...]]
    weigh: tuple[RelationName, ...] = ()


@dataclass(frozen=True)
class ReleaseCuts:
    ticket: int


@dataclass(frozen=True)
class Prefetch:
    """The feeds need a while to pass these cuts: ask for what the batch will need already."""

    ticket: int
    batch: tuple[Arrival, ...]
    views: tuple[str, ...]


@dataclass(frozen=True)
class StartManagers:
    """New managers for these views, from what is committed; the former ones count for nothing.

    ``watched`` are relations of which changes are kept though no view reads them.
    """

    views: Mapping[str, View]
    sources: tuple[str, ...]
    watched: Mapping[RelationName, Schema]
    arrivals: tuple[Arrival, ...]


@dataclass(frozen=True)
class StopManagers:
    pass


@dataclass(frozen=True)
class TellManagers:
    """These transactions have arrived."""

    arrivals: tuple[Arrival, ...]


@dataclass(frozen=True)
class StartJob:
    """Compute what a batch changes, at the cuts of the ticket, and tell each view's part.

    ``keeps``: the cuts stay open for a job that follows, beside this one.
    """

    job: int
    batch: tuple[Arrival, ...]
    concerned: tuple[str, ...]
    told: tuple[str, ...]
    ticket: int
    reflected: Mapping[str, Reflected]
    # The last transaction of each source that is in this batch or an earlier one.
    settled: Mapping[str, int]
    keeps: bool


@dataclass(frozen=True)
class Commit:
    """Show these jobs together, as one epoch; then say so.

    The n-th transaction of the batch shows in the epoch's state ``states[n]``.
    """

    number: int
    jobs: tuple[int, ...]
    batch: tuple[Arrival, ...]
    states: Sequence[int]
    contents: tuple[Any, ...]
    positions: ViewPositions
    views: tuple[str, ...]
    # No job that is not committed needs changes up to this number any more.
    forget_upto: int


@dataclass(frozen=True)
class Note:
    """Have the ledger say what the views have reached: now, or with whatever is committed next."""

    reached: Positions
    positions: ViewPositions
    is_durable: bool


@dataclass(frozen=True)
class CommitDefinitions:
    """Views with the same rows under another definition, and views that came to their end.

    ``taken``: schema changes that the definitions of the group's views (``told``) are behind, though positions
    may be before them. A run that begins at such positions gives what it reads again the shape that it has now.
    """

    views: tuple[View, ...]
    ended: tuple[tuple[View, Effect, SchemaChange], ...]
    told: tuple[str, ...]
    taken: tuple[SchemaChange, ...]


@dataclass(frozen=True)
class FillViews:
    """Bring these views' rows in at the cuts of the ticket, less what is not applied yet, and commit them.

    Those of ``adaptations`` are adapted from the extents that they have; others are computed from their sources.
    ``definitions`` go into the same entry.
    """

    ticket: int
    views: Mapping[str, View]
    adaptations: Mapping[str, MapVA]
    reflected: Mapping[str, Reflected]
    waiting: tuple[Arrival, ...]
    positions: ViewPositions
    definitions: CommitDefinitions


@dataclass(frozen=True)
class ReadWhole:
    """Whole relations may be read at the cuts of the ticket, less what is not applied yet."""

    reader: int
    ticket: int
    reflected: Mapping[str, Reflected]
    waiting: tuple[Arrival, ...]


@dataclass(frozen=True)
class RefuseReading:
    """Whole relations can't be read now: a schema change is being taken, or its source failed (``error``)."""

    reader: int
    change: SchemaChange | None
    error: BaseException | None = None


@dataclass(frozen=True)
class FollowFeed:
    """Have a feed read these relations from a position on, known as they are there."""

    source: str
    relations: tuple[str, ...]
    position: Position
    known: Mapping[str, RelationSchema]
    generation: int


@dataclass(frozen=True)
class RenewFeed:
    source: str


@dataclass(frozen=True)
class LookForDecision:
    """Say that a schema change waits, and whether somebody has decided about it."""

    plan: Foreseen
    is_frozen: bool


@dataclass(frozen=True)
class TellChange:
    """A schema change is being taken (``is_applied`` false), or the views' rows are there."""

    plan: Foreseen
    is_applied: bool


@dataclass(frozen=True)
class TellEvolved:
    """A view has its rows under its new definition, or is kept at another level than before."""

    view: View
    is_short: bool = False


@dataclass(frozen=True)
class TieViews:
    """A transaction changes these views together: the ledger is to remember it."""

    views: frozenset[str]


@dataclass(frozen=True)
class Warned:
    code: str
    id: str
    message: str


@dataclass(frozen=True)
class ReportError:
    """Something went wrong; the group goes on by itself, or is over (``is_final``)."""

    error: BaseException
    is_final: bool


@dataclass(frozen=True)
class GroupLoaded:
    """The group's new views are filled."""


@dataclass(frozen=True)
class GroupEnded:
    """Another group keeps its views from here on, or there are none left."""


Action = (
    OpenCuts
    | ReleaseCuts
    | Prefetch
    | StartManagers
    | StopManagers
    | TellManagers
    | StartJob
    | Commit
    | Note
    | FillViews
    | ReadWhole
    | RefuseReading
    | CommitDefinitions
    | FollowFeed
    | RenewFeed
    | LookForDecision
    | TellChange
    | TellEvolved
    | TieViews
    | Warned
    | ReportError
    | GroupLoaded
    | GroupEnded
)
