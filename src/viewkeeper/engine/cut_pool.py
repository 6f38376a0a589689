"""A group's cuts: those that are being opened and waited for, and those that the next job may use, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from viewkeeper.engine import cuts as cut_rules
from viewkeeper.engine import messages as out
from viewkeeper.engine.cuts import OpenCuts, Purpose, SharedCuts
from viewkeeper.engine.group_state import GroupState
from viewkeeper.engine.messages import CutsOpened, Snapshot
from viewkeeper.views.definition import RelationName

# Asks for what a batch will need, at cuts that the feeds have not passed.
Prefetch = Callable[[int, Mapping[str, Snapshot], float], None]


class CutPool:
    """At most one opening at a time, and at most one set of cuts that is kept for the next job."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self.opening: OpenCuts | None = None
        self.common: SharedCuts | None = None
        self._tickets = 0

    def open(self, purpose: Purpose, weigh: tuple[RelationName, ...]) -> None:
        self._tickets += 1
        self.opening = OpenCuts(self._tickets, purpose)
        scope = self._state.scope
        relations = {s: scope.read_of(s) for s in scope.sources if s in scope.read_sources}
        self._state.do(out.OpenCuts(self._tickets, relations, weigh))

    def take(self, event: CutsOpened, now: float) -> None:
        state, opening = self._state, self.opening
        if opening is None or not self.is_opening(event.ticket):
            state.do(out.ReleaseCuts(event.ticket))  # they were given up meanwhile
            return
        opening.snapshots = event.snapshots
        opening.opened_at = opening.moved_at = now
        opening.stood = dict(state.intake.fed)
        for name, snapshot in event.snapshots.items():
            if state.intake.compare(name, snapshot.bound, state.reached[name]) < 0:
                state.error = cut_rules.cut_behind(name)
                return

    def is_opening(self, ticket: int) -> bool:
        return self.opening is not None and self.opening.ticket == ticket

    def fail(self) -> None:
        """The cuts that were asked for could not be opened."""
        if self.opening is not None and self.opening.snapshots is None:
            self.opening = None

    def drop(self) -> None:
        """The cuts that are being opened or waited for are not needed any more."""
        opening, self.opening = self.opening, None
        if opening is not None and opening.snapshots is not None:
            self._state.do(out.ReleaseCuts(opening.ticket))

    @property
    def waits_for_bounds(self) -> bool:
        return self.opening is not None and self.opening.snapshots is not None

    # -- cuts that are kept ------------------------------------------------------------------------

    def release_common(self) -> None:
        common, self.common = self.common, None
        if common is not None:
            self._state.do(out.ReleaseCuts(common.ticket))

    def take_common(self) -> SharedCuts | None:
        """The cuts that were kept, if no source was restarted since."""
        common, self.common = self.common, None
        if common is None or cut_rules.are_of_this_life(common.snapshots, self._state.intake.life):
            return common
        self._state.do(out.ReleaseCuts(common.ticket))
        return None

    # -- waiting -----------------------------------------------------------------------------------

    def passed(self, now: float, prefetch: Prefetch) -> OpenCuts | None:
        """The cuts that were opened, once the feeds have passed them; else it waits, or there is an error."""
        state, opening = self._state, self.opening
        if opening is None or opening.snapshots is None:
            return None
        behind = cut_rules.behind(opening.snapshots, state.intake)
        if behind:
            self._keep_waiting(opening, opening.snapshots, behind, now, prefetch)
            return None
        life = state.intake.life
        if not cut_rules.are_of_this_life(opening.snapshots, life):
            other = [n for n, s in opening.snapshots.items() if s.life != life[n]]
            state.error = cut_rules.source_restarted(other[0])
            return None
        definitions = (view.definition for view in state.scope.views.values())
        state.error = cut_rules.other_type(opening.snapshots, definitions)
        if state.error is not None:
            return None
        self.opening = None
        return opening

    def _keep_waiting(
        self,
        opening: OpenCuts,
        snapshots: Mapping[str, Snapshot],
        behind: list[str],
        now: float,
        prefetch: Prefetch,
    ) -> None:
        state, limits = self._state, self._state.limits
        if opening.stood != state.intake.fed:
            opening.moved_at, opening.stood = now, dict(state.intake.fed)
        if now - opening.moved_at > limits.bound_wait_seconds:
            state.error = cut_rules.feed_behind(behind, limits.bound_wait_seconds)
            return
        state.wake(opening.moved_at + limits.bound_wait_seconds + 0.001)
        if opening.purpose is not Purpose.JOB or opening.is_prefetched:
            return
        soon = opening.opened_at + limits.soon_seconds
        if now < soon:
            state.wake(soon)
            return
        opening.is_prefetched = True
        prefetch(opening.ticket, snapshots, now)
