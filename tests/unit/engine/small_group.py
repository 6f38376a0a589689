"""The parts of a group over two simulated sources, put together as the machine does, for tests of one part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.engine import messages as out
from viewkeeper.engine.batches import Batches
from viewkeeper.engine.commits import Commits
from viewkeeper.engine.cut_pool import CutPool
from viewkeeper.engine.cuts import Purpose
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.evolving import Evolving
from viewkeeper.engine.failures import Failures
from viewkeeper.engine.group_state import GroupState
from viewkeeper.engine.limits import Limits
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.evolution.preferences import preferences_of
from viewkeeper.project.views_folder import parsed_views
from viewkeeper.simulator.engine.sources import SimulatedSource, compare, position
from viewkeeper.simulator.engine.updates import Table, Write
from viewkeeper.sources.interface import RelationSchema, SchemaChange
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

SCHEMA = Schema.of(k=INTEGER, name=STRING)
CATALOG = Catalog(tuple(CatalogRelation(RelationName(s, "r"), SCHEMA, ("k",)) for s in ("s", "t")))
TEXTS = {"A": "SELECT k FROM s.r", "B": "SELECT k FROM t.r"}


class SmallGroup:
    """A reads s.r and B reads t.r, unless other texts are given."""

    def __init__(self, texts: dict[str, str] = TEXTS, new: tuple[str, ...] = (), **limits: Any):
        self.sources = {
            name: SimulatedSource(name, {"r": Table(Bag(SCHEMA), ("k",))}) for name in ("s", "t")
        }
        parsed = parsed_views(texts, CATALOG)
        views = {n: replace(v, preferences=preferences_of(v.definition)) for n, v in parsed.items()}
        starts = dict.fromkeys(self.sources, position(0))
        self.state = GroupState(
            views, Evolution(CATALOG), starts, compare, self._follow, Limits(**limits), new, ()
        )
        self.cuts = CutPool(self.state)
        self.batches = Batches(self.state, self.cuts)
        self.commits = Commits(self.state)
        self.evolving = Evolving(self.state, self.batches)
        self.failures = Failures(self.state, self.cuts, self.batches, self.commits)
        self.batches.begin_again(())
        self.batches.begin_periods(0.0)
        for source in self.state.scope.sources:
            self.deliver(source)
        self.done()

    def _follow(self, source: str, at: Any) -> int:
        return self.state.intake.generation.get(source, 0) + 1

    def done(self, kind: type | None = None) -> list[Any]:
        """The actions since the last look, or those of one kind among them."""
        actions, self.state.actions = self.state.actions, []
        return [a for a in actions if kind is None or isinstance(a, kind)]

    def write(self, source: str, rows: int = 1, *, is_hidden: bool = False) -> None:
        """A transaction that puts rows in; its feed does not tell of it yet."""
        at = self.sources[source].end
        inserted = tuple((100 * at + n, "new") for n in range(rows))
        self.sources[source].commit(Write((("r", (), inserted),)), is_hidden=is_hidden)

    def deliver(self, source: str) -> None:
        """The feed brings all that is in the log."""
        it = self.sources[source]
        items, at = it.items(int(self.state.intake.fed[source]["n"]), it.end, ("r",))
        told = Delivery(source, tuple(items), position(at), it.life)
        self.state.intake.take(told, 0.0)
        self.batches.tell_managers(0.0)

    def snapshots(self) -> dict[str, Any]:
        """A cut of each source that the views read."""
        return {s: self.sources[s].cut(("r",)) for s in self.state.scope.sources}

    def open(self, purpose: Purpose = Purpose.JOB, now: float = 0.0) -> out.OpenCuts:
        """Cuts are asked for, and opened."""
        self.cuts.open(purpose, ())
        (action,) = self.done(out.OpenCuts)
        self.cuts.take(out.CutsOpened(action.ticket, self.snapshots()), now)
        return action

    def begin(self, now: float = 0.0) -> list[out.StartJob]:
        """What has arrived is begun as far as it may be; the jobs."""
        opened = self.open(now=now)
        self.cuts.opening = None
        snapshots = self.snapshots()
        self.commits.commit(self.batches.begin(opened.ticket, snapshots, now + 10.0, now))
        return self.done(out.StartJob)

    def compute(self, job: out.StartJob, *views: str) -> list[out.Commit]:
        """Some views, or all that it concerns, are done with a job; what is to be committed."""
        for view in views or job.concerned:
            self.commits.commit(self.state.jobs.computed(job.job, view, view))
        return self.done(out.Commit)

    def arrive(self, source: str, rows: int = 1) -> None:
        self.write(source, rows)
        self.deliver(source)


def renamed_column(source: str, at: int) -> SchemaChange:
    """The column name is called title from a position on."""
    before = RelationSchema("r", SCHEMA, ("k",), "")
    after = RelationSchema("r", SCHEMA.renamed(["k", "title"]), ("k",), "")
    return SchemaChange(source, position(at), "r", before, after, "…", False, {"name": "title"})
