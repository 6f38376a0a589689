"""The engine over the paper's relations, in a world where the test says what happens next.

Nothing of it stands in for the engine or for adaptation: it is `EngineWorld` without its random choices. A source always
refuses to answer at a cut once a relation of it has another schema (assumption 2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.engine import messages as m
from viewkeeper.engine.cuts import Purpose
from viewkeeper.engine.failures import BROKEN
from viewkeeper.engine.limits import Limits
from viewkeeper.engine.machine import GroupMachine
from viewkeeper.engine.view import View
from viewkeeper.errors import SourceError
from viewkeeper.evolution.preferences import preferences_of
from viewkeeper.simulator.engine.beginnings import EngineScenario
from viewkeeper.simulator.engine.sources import position
from viewkeeper.simulator.engine.updates import Table, Update, Write
from viewkeeper.simulator.engine.world import EngineWorld
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

Rows = list[tuple[Any, ...]]


def insert(relation: str, *rows: tuple[Any, ...]) -> Write:
    return Write(((relation, (), rows),))


class PaperWorld(EngineWorld):
    """One view V; it is loaded. ``path`` says, in the words of Figures 3 and 4, what its group has passed through."""

    def __init__(
        self,
        text: str,
        relations: Mapping[str, Bag],
        scripts: Mapping[str, tuple[Update, ...]] = {},
        replacements: tuple[Mapping[str, Any], ...] = (),
    ) -> None:
        """``relations``: by source and name; all columns are the key."""
        initial: dict[str, dict[str, Table]] = {}
        for name, rows in relations.items():
            source, _, relation = name.partition(".")
            initial.setdefault(source, {})[relation] = Table(rows, rows.schema.names)
        definition = parse_view("V", text, catalog_of(relations))
        view = View(definition, text, preferences=preferences_of(definition))
        self.path: list[str] = []
        self.fills: list[m.FillViews] = []
        scenario = EngineScenario(
            initial,
            {source: scripts.get(source, ()) for source in initial},
            {"V": view},
            knowledge={"replacements": list(replacements)} if replacements else {},
            limits=Limits(jobs_max=1),
        )
        super().__init__(scenario, 0)
        self.random = SimpleNamespace(randrange=lambda n: 0)
        self.settle()
        self.path.clear()
        self.fills.clear()

    # -- what the test has happen ------------------------------------------------------------------

    def commit(self, source: str) -> None:
        """The next update of the source; its feed brings it at once."""
        self.sources[source].commit(self._left[source].popleft())
        self.deliver(source)

    def deliver(self, source: str) -> None:
        feed, it = self._feeds[source], self.sources[source]
        items, feed.at = it.items(feed.at, it.end, feed.relations)
        told = m.Delivery(source, tuple(items), position(feed.at), it.life, feed.generation)
        self._step(m.FeedDelivered(told))

    def carry_out(self) -> None:
        """All that the group wants done."""
        for group, queue in list(self._queues.items()):
            while queue:
                self._next_action(group)

    def up_to(self, *kinds: type) -> m.Action:
        """Everything before the next action of these kinds; that one is next."""
        for _ in range(20):
            for group, queue in list(self._queues.items()):
                while queue and not isinstance(queue[0], kinds):
                    self._next_action(group)
                if queue:
                    return queue[0]
            self.pass_time()
        raise AssertionError(f"none of {kinds} comes")

    def ask(self, source: str) -> None:
        """The next update of a source is handled as far as its first question, which is on its way."""
        self.commit(source)
        self.ask_again()

    def ask_again(self) -> None:
        if isinstance(self.up_to(m.StartJob, m.FillViews), m.StartJob):
            self.carry_out()

    def compute(self) -> bool:
        """The view managers are done; whether one had something to do."""
        found = [
            (g, v) for g, all_of in self._managers.items() for v, t in all_of.todo.items() if t
        ]
        for group, view in found:
            self._manager_done(group, view)
        return bool(found)

    def pass_time(self) -> None:
        for source in self.sources:
            self.deliver(source)
        at = self.engine.wake_at
        self.now = max(self.now + 0.001, at if at < math.inf else 0.0)
        self._step(m.TimePassed())

    def settle(self) -> None:
        """All that was committed is shown, or the view has ended."""
        for _ in range(50):
            self.carry_out()
            if not self.compute() and self._is_over() and not any(self._queues.values()):
                return
            self.pass_time()
        raise AssertionError(self._described())

    # -- what the test asks ------------------------------------------------------------------------

    @property
    def extent(self) -> list[tuple[tuple[Any, ...], int]]:
        return self.ledger.extents["V"].sorted()

    @property
    def states(self) -> list[Rows]:
        """What readers could see, state by state."""
        return [
            [row for row, n in shown.rows["V"].sorted() for _ in range(n)]
            for shown in self.ledger.shown
            if "V" in shown.rows
        ]

    @property
    def group(self) -> GroupMachine:
        return self.engine.listening[0]

    # -- Figures 3 and 4 ---------------------------------------------------------------------------

    def _step(self, event: Any) -> None:
        before = self._state()
        actions = self.engine.step(event, self.now)
        self._follow(before, event, [action for _, action in actions])
        self._take(actions)

    def _fill(self, group: int, fill: m.FillViews) -> None:
        self.path.append("asks")
        self.fills.append(fill)
        super()._fill(group, fill)

    def _start_job(self, group: int, job: m.StartJob) -> None:
        self.path.append("asks")
        super()._start_job(group, job)

    def _state(self) -> str:
        """Table 4: what the group does. An adaptation and a job begin with the opening of their cuts."""
        if not self.engine.listening:
            return "Wait"
        state, opening = self.group._state, self.group._cuts.opening
        if state.is_exclusive or (opening is not None and opening.purpose is Purpose.FILL):
            return "VA"
        is_at_work = state.jobs.by_row or opening is not None
        return "VM" if is_at_work else "Wait"

    def _follow(self, before: str, event: Any, actions: list[m.Action]) -> None:
        """The arcs that a step took."""
        event = event[1] if isinstance(event, tuple) else event
        is_done = isinstance(event, m.Committed | m.Filled)
        is_broken = isinstance(event, m.Failed) and is_broken_query(event.error)
        if is_done:
            self.path.append("installs")
        if before != "Wait" and is_broken:
            self.path += ["CSCd", "Wait"]
        elif before != "Wait" and is_done:
            # Reset-VM: managers are stopped, and begin for what the view is now.
            restarts = [m.StopManagers, m.StartManagers]
            found = [type(a) for a in actions if type(a) in restarts]
            assert found[:2] == (restarts if before == "VA" else [])
            self.path += [*(["Done", "Reset-VM"] if before == "VA" else []), "Done", "Wait"]
            before = "Wait"
        taken = [a for a in actions if isinstance(a, m.TellChange) and not a.is_applied]
        after = self._state()
        for _ in taken:
            self.path += ["SCr", "VS"]
        if taken:
            self.path += ["Done", "VA"]
        elif before == "Wait" and after == "VM":
            self.path += ["DUr", "VM"]


def is_broken_query(error: BaseException) -> bool:
    return isinstance(error, SourceError) and error.code in BROKEN


def catalog_of(relations: Mapping[str, Bag]) -> Catalog:
    return Catalog(
        tuple(
            CatalogRelation(RelationName(*name.split(".")), rows.schema, rows.schema.names)
            for name, rows in relations.items()
        )
    )
