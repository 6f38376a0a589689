"""The demo's story in events, as `viewkeeper.run_events` has them for a run; docs/reference/events.md lists both.

Some have a run event's name and other fields: the demo says what it has seen of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from viewkeeper.run_events import DashboardOpened, Document, Event


@dataclass(frozen=True)
class DemoBegan(Event):
    """The demo begins; its servers are starting."""

    name: ClassVar[str] = "began"
    seconds: float
    sources: tuple[str, ...]


@dataclass(frozen=True)
class AnomalyPlayed(Event):
    """The same updates under two protocols, state by state."""

    name: ClassVar[str] = "anomaly"
    view: str
    updates: tuple[str, ...]
    protocols: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class SourcesReady(Event):
    """The servers are there and filled."""

    name: ClassVar[str] = "sources_ready"
    sources: tuple[str, ...]


@dataclass(frozen=True)
class RunStarted(Event):
    """`viewkeeper run` was started, or started again after the kill."""

    name: ClassVar[str] = "run_started"
    pid: int


@dataclass(frozen=True)
class DemoLoadingStarted(Event):
    """The run fills the views; the writers have begun."""

    name: ClassVar[str] = "loading"
    views: tuple[str, ...]
    rows_expected: int


@dataclass(frozen=True)
class DemoRelationRead(Event):
    """The run has read a relation; `total`: rows of all relations so far."""

    name: ClassVar[str] = "relation_read"
    relation: str
    rows: int
    total: int


@dataclass(frozen=True)
class DemoLoaded(Event):
    """The views are there; `rows` by view."""

    name: ClassVar[str] = "loaded"
    seconds: float
    rows: Mapping[str, int]


@dataclass(frozen=True)
class _Figures(Event):
    committed: Mapping[str, int]
    transactions: int
    epochs: int
    rows: Mapping[str, int]
    queries: Mapping[str, int]
    rows_fetched: Mapping[str, int]
    freshness_seconds: float | None


@dataclass(frozen=True)
class FiguresChanged(_Figures):
    """Live figures after a batch. `freshness_seconds`: the median over the last batches."""

    name: ClassVar[str] = "figures"


@dataclass(frozen=True)
class RunKilled(Event):
    """The run and its JVM were killed, with `transactions` in the warehouse."""

    name: ClassVar[str] = "killed"
    pid: int
    signal: int
    transactions: int


@dataclass(frozen=True)
class RunResumed(Event):
    """The next run has committed its first batch, behind the last transaction of the ledger."""

    name: ClassVar[str] = "resumed"
    pid: int
    seconds: float
    goes_on_after: int
    transactions: int


@dataclass(frozen=True)
class WritersStopped(Event):
    """The writers have stopped, and say what they committed."""

    name: ClassVar[str] = "writers_stopped"
    committed: Mapping[str, int]
    total: int


@dataclass(frozen=True)
class DemoSettled(Event):
    """All is in; `ok`: as many states as transactions were committed."""

    name: ClassVar[str] = "settled"
    committed: int
    transactions: int
    ok: bool


@dataclass(frozen=True)
class AuditStarted(Event):
    """Every view is computed from the sources and compared."""

    name: ClassVar[str] = "auditing"
    views: tuple[str, ...]


@dataclass(frozen=True)
class ViewsAudited(Event):
    """What `viewkeeper audit` found; `ok`: all are equal."""

    name: ClassVar[str] = "audited"
    ok: bool
    views: tuple[Document, ...]


@dataclass(frozen=True)
class RunStopping(Event):
    """The run was asked to end in order."""

    name: ClassVar[str] = "stopping"
    pid: int


@dataclass(frozen=True)
class DemoSummarized(_Figures):
    """The last event. `ok` decides the exit code; `kept`: the folder of `--keep`; `next`: commands to go on with."""

    name: ClassVar[str] = "summary"
    ok: bool
    seconds: float
    seconds_to_resume: float
    audits: Mapping[str, str]
    kept: str | None
    next: tuple[str, ...] | None = None


DemoEvent = (
    DemoBegan
    | AnomalyPlayed
    | SourcesReady
    | DashboardOpened
    | RunStarted
    | DemoLoadingStarted
    | DemoRelationRead
    | DemoLoaded
    | FiguresChanged
    | RunKilled
    | RunResumed
    | WritersStopped
    | DemoSettled
    | AuditStarted
    | ViewsAudited
    | RunStopping
    | DemoSummarized
)

OnDemoEvent = Callable[[DemoEvent], None]

DEMO_EVENTS: tuple[type[DemoEvent], ...] = DemoEvent.__args__
