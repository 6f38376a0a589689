"""What a run says while it goes: one frozen class per event, in the closed union `RunEvent`.

Every listener (terminal, ``--json``, log, file of the run's state, metrics, a caller of `Keeper.run`) gets the same
objects and takes them apart with ``match``. `as_dict` is the form that programs read: an object with ``event`` and the
class's fields. That form is an interface; the names of classes are not. Nested values are plain data, as they are written.

The docstrings and fields below are the table of docs/reference/events.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Self

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """What all events can do. A field whose default is None is left out of the document while it is None."""

    name: ClassVar[str]

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.name} | self.as_fields()

    def as_fields(self) -> dict[str, Any]:
        found = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is MISSING:
                found[field.name] = list(value) if isinstance(value, tuple) else value
        return found

    @classmethod
    def of(cls, document: Document) -> Self:
        """From a document, which may be another version's: fields that are not known here are passed over.

        Raises TypeError where one is missing.
        """
        known = {field.name for field in fields(cls)} & document.keys()
        values = {name: document[name] for name in known}
        return cls(**{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()})


# -- loading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadingStarted(Event):
    """New views, or views with another text, are being filled from their sources."""

    name: ClassVar[str] = "loading"
    views: tuple[str, ...]


@dataclass(frozen=True)
class RelationRead(Event):
    """Progress of a relation that is read as a whole; `rows_expected` and `percent` are null where they are not known."""

    name: ClassVar[str] = "relation_read"
    relation: str
    rows: int
    rows_expected: int | None
    percent: int | None
    rows_per_second: int


@dataclass(frozen=True)
class ViewsLoaded(Event):
    """The views are filled, and kept from here on."""

    name: ClassVar[str] = "loaded"
    views: tuple[str, ...]
    txn: int
    seconds: float


@dataclass(frozen=True)
class ViewsResumed(Event):
    """Nothing had to be loaded, the views are being kept; not with `--until-caught-up`."""

    name: ClassVar[str] = "ready"
    views: tuple[str, ...]
    txn: int


# -- keeping --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BatchCommitted(Event):
    """An epoch is visible. `freshness_seconds`: how old its newest transaction was then. `asked` is by source, `changes` by relation, `changed` by view."""

    name: ClassVar[str] = "batch"
    epoch: int
    txn: int
    transactions: int
    rows: int
    freshness_seconds: float
    seconds: Mapping[str, float]
    asked: Mapping[str, Mapping[str, Any]]
    changes: Mapping[str, int]
    changed: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class SourceWentAway(Event):
    """A source can't be read now, and is waited for."""

    name: ClassVar[str] = "source_waiting"
    error: Document


@dataclass(frozen=True)
class SourceCameBack(Event):
    """It can be read again."""

    name: ClassVar[str] = "source_back"
    source: str


@dataclass(frozen=True)
class ViewsStopped(Event):
    """Their source can't go on, or their text is wrong or does not fit; the other views go on ([rebuilding](../rebuilding.md))."""

    name: ClassVar[str] = "views_stopped"
    views: tuple[str, ...]
    error: Document


@dataclass(frozen=True)
class ViewAudited(Event):
    """The run checked a view itself ([auditing](../auditing.md)). `verdict`: `equal`, `different` or `unknown`; `error` says why there are no rows to compare."""

    name: ClassVar[str] = "audited"
    view: str
    verdict: str
    incarnation: int
    seconds: float
    txn: int | None = None
    rows: int | None = None
    checked: str | None = None
    how: str | None = None
    missing: tuple[Document, ...] | None = None
    extra: tuple[Document, ...] | None = None
    stores: tuple[str, ...] | None = None
    error: Document | None = None


@dataclass(frozen=True)
class ViewsRebuilt(Event):
    """A request to fill views again was carried out."""

    name: ClassVar[str] = "rebuilt"
    views: tuple[str, ...]
    epoch: int
    txn: int
    seconds: float


@dataclass(frozen=True)
class ViewsReloaded(Event):
    """A request to take the views as they are written now was carried out; `stopped`: those that are not kept."""

    name: ClassVar[str] = "reloaded"
    views: tuple[str, ...]
    stopped: tuple[str, ...]
    epoch: int
    txn: int
    seconds: float


@dataclass(frozen=True)
class Warned(Event):
    """A global transaction of which a part is missing, with its `id`; `level-not-reached`: a `view` that is kept at a lower level than it declares, and why; `message-ignored`, `tie-ignored`, `note-unclear`: something in a source's log that was passed over (reported at the 1st, the 10th, the 100th …), with `source`; `dashboard-ended`: the dashboard of `--ui` ended and is started again."""

    name: ClassVar[str] = "warning"
    message: str
    code: str | None = None
    id: str | None = None
    source: str | None = None
    view: str | None = None
    error: Document | None = None


# -- schema changes -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _SchemaChange(Event):
    id: str
    at: str
    source: str
    relation: str
    statement: str
    changes: tuple[str, ...]
    effects: tuple[Document, ...]
    status: str


@dataclass(frozen=True)
class SchemaChangeApplied(_SchemaChange):
    """A schema change is applied, and the views' rows are there; `effects` by view."""

    name: ClassVar[str] = "schema_changed"
    txn: int


@dataclass(frozen=True)
class SchemaChangeHeld(_SchemaChange):
    """A change that waits for `viewkeeper evolve --approve`."""

    name: ClassVar[str] = "schema_waits"


@dataclass(frozen=True)
class ViewEvolved(Event):
    """A view's rows were brought over after a schema change: by which `method`, and what it cost."""

    name: ClassVar[str] = "evolved"
    view: str
    source: str
    relation: str
    statement: str
    effect: str
    reason: str
    mapping: tuple[str, ...]
    quality: Document | None
    others: tuple[str, ...]
    method: str
    method_reason: str
    before: str
    seconds: float | None = None
    rows_read: int | None = None


# -- the end --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ended(Event):
    transactions: int
    rows: int
    epochs: int
    queries: int
    rows_fetched: int
    seconds: float
    busy_seconds: float
    transactions_per_second: float


@dataclass(frozen=True)
class RunCaughtUp(_Ended):
    """All that was committed when the run began is in; the last event."""

    name: ClassVar[str] = "caught_up"


@dataclass(frozen=True)
class RunStopped(_Ended):
    """The run ended in order; the last event."""

    name: ClassVar[str] = "stopped"


@dataclass(frozen=True)
class RunInterrupted(Event):
    """It had to leave before it could end in order; the last event."""

    name: ClassVar[str] = "interrupted"


# -- for some listeners only ----------------------------------------------------------------------


@dataclass(frozen=True)
class DashboardOpened(Event):
    """The dashboard of `viewkeeper ui` or of `--ui` is served there; `--json` only."""

    name: ClassVar[str] = "dashboard"
    url: str


@dataclass(frozen=True)
class RunFailed(Event):
    """The error that ended the run; in the log only."""

    name: ClassVar[str] = "run_failed"
    error: Document
    traceback: str | None = None


@dataclass(frozen=True)
class Noted(Event):
    """What a part of Viewkeeper has to say, like housekeeping that will be tried again; in the log only."""

    name: ClassVar[str] = "note"
    logger: str
    message: str
    traceback: str | None = None


@dataclass(frozen=True)
class StandingChanged(Event):
    """Since when the oldest that a view, or a source, has and does not show is committed; in the file of the run's state only."""

    name: ClassVar[str] = "standing"
    views: Mapping[str, str | None]
    sources: Mapping[str, str]
    approvals: tuple[Document, ...]


@dataclass(frozen=True)
class PaintingChanged(Event):
    """Every group's view update table; in the file of the run's state only."""

    name: ClassVar[str] = "merge"
    groups: tuple[Document, ...]


RunEvent = (
    LoadingStarted
    | RelationRead
    | ViewsLoaded
    | ViewsResumed
    | BatchCommitted
    | SourceWentAway
    | SourceCameBack
    | ViewsStopped
    | ViewAudited
    | ViewsRebuilt
    | ViewsReloaded
    | SchemaChangeApplied
    | SchemaChangeHeld
    | ViewEvolved
    | Warned
    | RunCaughtUp
    | RunStopped
    | RunInterrupted
    | DashboardOpened
    | RunFailed
    | Noted
    | StandingChanged
    | PaintingChanged
)

OnEvent = Callable[[RunEvent], None]

RUN_EVENTS: tuple[type[RunEvent], ...] = RunEvent.__args__

_BY_NAME: Mapping[str, type[RunEvent]] = {each.name: each for each in RUN_EVENTS}


def ignore(event: RunEvent) -> None:
    """For callers that do not listen."""


def event_from_dict(document: Any) -> RunEvent | None:
    """What `as_dict` gave, read back from a file or from another process; None for anything else."""
    try:
        return _BY_NAME[document["event"]].of(document)
    except (KeyError, TypeError, AttributeError):
        return None
