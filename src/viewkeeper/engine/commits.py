"""A group's commits: what the merge process has released, with the positions that go with it.

Only what is in the warehouse counts as reached; positions that bring no rows are noted now and then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from viewkeeper.engine import messages as out
from viewkeeper.engine.group_state import GroupState
from viewkeeper.engine.integrator import Arrival, last_positions, numbers_of, states_of
from viewkeeper.merging.messages import CommitTransaction
from viewkeeper.sources.interface import Position
from viewkeeper.views.level import Level


class Commits:
    """What goes to the warehouse, and where the views stand then."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self.is_noting = False

    def commit(self, commits: Iterable[CommitTransaction]) -> None:
        """Have committed what the merge process has released."""
        state = self._state
        for commit in commits:
            rows = [state.jobs.by_row[row] for row in commit.rows]
            batch = tuple(arrival for row in rows for arrival in row.batch)
            state.reaching = self._reached_with(set(commit.rows), batch)
            numbers = numbers_of(batch)
            # Unless every manager shows every transaction, what lies between is no state of all views.
            is_complete = state.jobs.level is Level.COMPLETE
            states = states_of(batch) if is_complete else [0] * len(numbers)
            state.commits[commit.number] = commit.rows
            state.do(
                out.Commit(
                    commit.number,
                    state.jobs.shown_with(commit.rows),
                    batch,
                    states,
                    tuple(each.contents for each in commit.lists),
                    state.scope.cuts_of(state.reaching),
                    tuple(state.scope.views),
                    self._forgettable(commit.rows, batch),
                )
            )

    def _forgettable(self, rows: tuple[int, ...], batch: tuple[Arrival, ...]) -> int:
        """The last number of which no change is needed any more when these rows are committed.

        Of rows that are committed later, all views still need what lies between them.
        """
        others = (r.batch[0].number for n, r in self._state.jobs.by_row.items() if n not in rows)
        return min([batch[-1].last_number + 1, *others]) - 1

    def _reached_with(self, rows: set[int], batch: Iterable[Arrival]) -> dict[str, Position]:
        """Where each source stands for the views when these rows are applied."""
        state = self._state
        reached = state.reaching | last_positions(batch)
        waiting = {arrival.origin.source for arrival in state.intake.integrator.pending}
        # A schema change that is next has not been taken: a run that begins here must meet it.
        waiting |= {change.source for change in state.intake.due} | state.intake.held.keys()
        on_their_way = {row for some in state.commits.values() for row in some}
        for number, row in state.jobs.by_row.items():
            if number not in rows and number not in on_their_way:
                waiting.update(row.sources)
        passed = state.intake.passed
        return reached | {n: passed[n] for n in state.scope.sources if n not in waiting}

    def take(self, number: int, now: float) -> None:
        state = self._state
        rows = state.commits.pop(number)
        state.backlog_rows -= sum(state.jobs.by_row[row].rows for row in rows)
        if not state.commits:
            state.reached = dict(state.reaching)
            state.intake.not_passed(state.reached)
            state.notes.note(state.reached, now)
            state.forget_unshown()
        self.commit(state.jobs.committed(rows, number))

    # -- positions ---------------------------------------------------------------------------------

    def note_positions(self, now: float) -> None:
        """Nothing is on its way: what the feeds have passed is applied, was nothing for us, or waits."""
        state = self._state
        if state.intake.due or state.intake.end is not None or self.is_noting:
            return
        passed = self._reached_with(set(), ())
        is_durable = state.notes.is_due(passed, now, state.limits.idle_seconds)
        if passed == state.notes.noted and passed == state.reached:
            state.notes.note(passed, now) if is_durable else None
        elif is_durable or passed != state.reached:
            self.note(passed, is_durable=is_durable)

    def note(self, reached: Mapping[str, Position], *, is_durable: bool) -> None:
        state = self._state
        self.is_noting = True
        state.do(out.Note(dict(reached), state.scope.cuts_of(reached), is_durable))

    def take_note(self, reached: Mapping[str, Position], now: float, *, is_durable: bool) -> None:
        state = self._state
        self.is_noting = False
        if is_durable:
            state.notes.note(reached, now)
        if not state.jobs.by_row:
            state.reached = state.reaching = dict(reached)
        for mine in (state.reached, state.reaching):
            for name, position in reached.items():
                if state.intake.compare(name, position, mine[name]) > 0:
                    mine[name] = position
        state.forget_unshown()
