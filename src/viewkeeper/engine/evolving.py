"""How a group takes schema changes: one after the other, when nothing is on its way; and fills the views that need it.

What is not committed when a change is taken is given its new shape. Views whose rows are others after it are filled
before anything else is shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from viewkeeper.algebra.types import Type
from viewkeeper.engine import cuts as cut_rules
from viewkeeper.engine import messages as out
from viewkeeper.engine.batches import Batches
from viewkeeper.engine.group_state import GroupState
from viewkeeper.engine.messages import Snapshot
from viewkeeper.engine.schema_changes import Foreseen, as_after, changes_rows, foreseen
from viewkeeper.engine.scope import Scope
from viewkeeper.engine.view import View
from viewkeeper.errors import invariant
from viewkeeper.evolution.effects import Decision
from viewkeeper.merging.groups import partition
from viewkeeper.sources.interface import SchemaChange
from viewkeeper.sources.transaction_block import transactions_of
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import Upkeep


class Evolving:
    """The schema change that is next, and what it takes."""

    def __init__(self, state: GroupState, batches: Batches) -> None:
        self._state = state
        self._batches = batches
        self._plan: Foreseen | None = None
        self._decision: str | None = None
        self._asked_at = -math.inf

    def decide(self, change: SchemaChange, decision: str | None) -> None:
        """Somebody has decided about a change, or not yet."""
        if self._plan is not None and self._plan.reported is change:
            self._decision = decision

    def fill(self, ticket: int, snapshots: Mapping[str, Snapshot]) -> None:
        """Fill the new views, all at the cut that the group stands at."""
        state = self._state
        pending = state.pending
        state.reaching = state.reaching | pending.jumps
        state.do(
            out.FillViews(
                ticket,
                {name: state.scope.views[name] for name in pending.new},
                pending.adaptations(state.scope.views),
                cut_rules.reflected(snapshots, state.intake, state.applied),
                tuple(state.uncommitted),
                # All of the group stand there: the next run finds them together, and so do readers.
                state.scope.cuts_of(state.reaching),
                self._definitions(),
            )
        )

    def take_filling(self, views: Mapping[str, View], now: float) -> None:
        state = self._state
        state.is_exclusive = False
        state.reached = dict(state.reaching)
        state.notes.note(state.reached, now)
        adapted = [name for name in state.pending.new if name in state.pending.outdated]
        state.scope = replace(state.scope, views=dict(state.scope.views) | dict(views))
        for plan in state.pending.done():
            state.do(out.TellChange(plan, is_applied=True))
        for name in adapted:
            state.do(out.TellEvolved(state.scope.views[name]))
        uncommitted = self._batches.give_up()
        self._batches.begin_again(uncommitted)

    # -- schema changes ----------------------------------------------------------------------------

    @property
    def waits_for_decision(self) -> SchemaChange | None:
        """The schema change that somebody must decide on before the group can go on."""
        state = self._state
        waits = self._plan is not None and self._plan.must_wait and self._decision != "approve"
        return state.change_due if waits and state.is_free else None

    def take_next(self, now: float) -> bool:
        """Take the next schema change: everything before it is applied, or waits in its new shape."""
        state = self._state
        change = state.intake.due[0]
        if self._plan is None or self._plan.reported is not change:
            self._plan = foreseen(change, state.scope.views, state.scope.evolution)
            self._decision, self._asked_at = None, -math.inf
        plan = self._plan
        if plan.must_wait and self._decision != "approve":
            if now >= self._asked_at + state.limits.decision_seconds:
                self._asked_at = now
                is_frozen = any(e.decision is Decision.FREEZE for e in plan.must_wait)
                state.do(out.LookForDecision(plan, is_frozen))
            state.wake(self._asked_at + state.limits.decision_seconds)
            return False
        self._plan = None
        state.intake.due.popleft()
        state.intake.due_since.pop(change.source, None)
        self._take_change(plan, change)
        if change.renamed_to in state.scope.names_of(change.source):
            # By its new name, what follows must be read again.
            state.intake.go_back(change.source)
        if change.source in state.intake.held:
            state.intake.let_go(change.source, now)
        self._batches.tell_managers(now)
        return True

    def _take_change(self, plan: Foreseen, change: SchemaChange) -> None:
        state = self._state
        before = state.scope.views
        is_cut_off = change.skips or (plan.rewrites and self._holds_rows_of(change.source))
        jumped = self._rewritten_replacements(plan) | ({change.source} if is_cut_off else set())
        uncommitted = [
            arrival._replace(origin=as_after(origin, change))
            for arrival in self._batches.give_up()
            if arrival.origin.source not in jumped
            for origin in transactions_of(arrival.origin)
        ]
        state.pending.take(plan, before)
        state.scope = Scope(plan.views(before), plan.evolution)
        self._follow_sources()
        self._stay_together()
        refilled = self._refilled(plan, before, jumped)
        for source in jumped | ({change.source} if plan.rewrites and refilled else set()):
            self._move_to(source)
        state.pending.new = tuple(name for name in state.scope.views if name in refilled)
        # A view whose rows stay the same is another one from here on, without a new extent.
        pending = state.pending
        pending.same |= {n: v for n, v in state.scope.views.items() if v != before[n]}
        pending.ended += [
            (plan.with_lineage(before[n]), effect, change) for n, effect in plan.ended.items()
        ]
        state.intake.take_change(change)
        if not pending.new and (pending.same or pending.ended):
            state.do(self._definitions())
        self._batches.begin_again(uncommitted)
        # The change has no rows: else a process that begins now would meet it once more.
        state.notes.is_soon = True
        if state.pending.new:
            state.do(out.TellChange(plan, is_applied=False))
        else:
            for each in state.pending.done():
                state.do(out.TellChange(each, is_applied=True))
        for name, view in state.scope.views.items():
            if view.shortfall is not None and before[name].shortfall is None:
                state.do(out.TellEvolved(view, is_short=True))

    def _stay_together(self) -> None:
        """Have the ledger tie the views, if no relation holds them together any more: the next run, too, is to
        show them at one cut."""
        views = self._state.scope.views.items()
        strict = {
            n: v.definition.relations
            for n, v in views
            if v.definition.level is not Level.CONVERGENT
        }
        if len(tuple(partition(strict))) > 1:
            self._state.do(out.TieViews(frozenset(strict)))

    def _definitions(self) -> out.CommitDefinitions:
        """What the ledger is to say of the changes that were taken, in one entry: all views or none."""
        state = self._state
        pending, views = state.pending, state.scope.views
        same = [views[n] for n in pending.same if n in views and n not in pending.new]
        taken = state.intake.not_passed(state.reaching)
        return out.CommitDefinitions(tuple(same), tuple(pending.ended), tuple(views), taken)

    def _refilled(self, plan: Foreseen, before: Mapping[str, View], jumped: set[str]) -> set[str]:
        """The views whose rows are not those of their extents."""
        state = self._state
        views = state.scope.views
        refilled = {*state.pending.new, *plan.mappings()}
        # What is kept beside a view has the types that its relations had.
        refilled |= {n for n, v in views.items() if _stored_types(v) != _stored_types(before[n])}
        refilled |= {n for n, v in views.items() if jumped.intersection(v.definition.sources)}
        return refilled

    def _rewritten_replacements(self, plan: Foreseen) -> set[str]:
        """Sources of which a relation comes to be read that was only watched, and whose rows became others
        since the position that the views stand at: they can be read only as they are after that."""
        state = self._state
        before = state.scope
        newly = {*Scope(plan.views(before.views), plan.evolution).relations} - {*before.relations}
        sources = {name.source for name in newly}
        return {
            c.source
            for c in state.intake.taken
            if c.source in sources
            and changes_rows(c)
            and state.intake.compare(c.source, c.position, state.reaching[c.source]) > 0
        }

    def _move_to(self, source: str) -> None:
        """The rows that are read next are those of the present: so are the positions that go with them."""
        state = self._state
        fed = state.pending.jumps[source] = state.intake.fed[source]
        if state.intake.is_parting and state.intake.end is not None:
            state.intake.end[source] = fed

    def _follow_sources(self) -> None:
        """The views may read a source now that was only watched, or none of one any more."""
        state = self._state
        for name in state.scope.sources:
            invariant(name in state.intake.fed, f"{name} was followed by no feed")

    def _holds_rows_of(self, source: str) -> bool:
        """Whether changes of the source have arrived that are not applied.

        Also of other relations: the one that was rewritten can be read only as it is after that, and beside
        it a row that was committed before would be missing.
        """
        return any(arrival.origin.source == source for arrival in self._state.uncommitted)


def _stored_types(view: View) -> list[tuple[Type, ...]]:
    """The types of the columns of everything that is kept beside a view."""
    stores = Upkeep(pruned(view.definition)).stores
    return [tuple(field.type for field in store.schema) for store in stores]
