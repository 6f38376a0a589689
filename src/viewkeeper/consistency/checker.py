"""Which level of consistency did this history of the warehouse reach?

Written from the definitions (DyDa section 2.3, MVC section 2, Rings section 3), for one view or a
vector of views at once. Nothing is claimed by whoever ran; where cuts are claimed, they are checked.

Two histories that differ only in repeating a state look the same to a reader, so repetitions are
collapsed: a transaction that does not change the views need not give a new state, and a warehouse that
installs an empty change shows nothing new.

| level | search |
|---|---|
| complete | a path of single transactions from the first cut to the last whose views, collapsed, are the states |
| consistent | for each state a cut with that view, not below the cut before it |
| weak | for each state a cut with that view |
| convergent | the last state is the view at the last cut |
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from viewkeeper.consistency.histories import SourceHistories, State, ViewStates
from viewkeeper.consistency.violation import Violation, differences, nearest_cut
from viewkeeper.errors import ViewkeeperError
from viewkeeper.timeline import Cut
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.level import Level

# Every cut costs an evaluation of the views from scratch.
CUTS_SEARCHED_MAX = 50_000


class Undecided(ViewkeeperError):
    """There are too many cuts to search, and none were claimed."""


@dataclass(frozen=True)
class Verdict:
    """The highest level that holds, and what kept the history from the next one."""

    level: Level
    convergent: bool
    violation: Violation | None
    # False when cuts were claimed and one of them does not explain its state.
    claims_hold: bool = True

    def meets(self, level: Level) -> bool:
        """Whether the history has at least this level."""
        return self.convergent if level is Level.CONVERGENT else self.level >= level


def check(
    definitions: Sequence[ViewDefinition],
    histories: SourceHistories,
    states: Sequence[State],
    claims: Sequence[Cut] | None = None,
) -> Verdict:
    """Decide the level of a history of states, the initial one first.

    ``claims`` gives the cut of each state where the writer knows it: then nothing is searched, unless
    a claim is wrong. Raises Undecided when a search would take too long.
    """
    checker = _Checker(definitions, histories, states)
    if claims is not None:
        verdict = checker.with_claims(claims)
        return verdict or replace(checker.searched(), claims_hold=False)
    return checker.searched()


class _Checker:
    def __init__(
        self,
        definitions: Sequence[ViewDefinition],
        histories: SourceHistories,
        states: Sequence[State],
    ) -> None:
        self.names = [definition.name for definition in definitions]
        self.histories = histories
        self.views = ViewStates(definitions, histories)
        # The states without repetitions, each with its index in the original sequence.
        self.states: list[tuple[int, State]] = []
        for index, state in enumerate(states):
            if not self.states or self.states[-1][1] != state:
                self.states.append((index, state))

    # -- with claimed cuts -------------------------------------------------------------------------

    def with_claims(self, claims: Sequence[Cut]) -> Verdict | None:
        """The level by the claims, if they hold; None when one is wrong and a search must decide."""
        for index, state in self.states:
            if self.views.at(claims[index]) != state:
                return None
        pairs = list(itertools.pairwise(claims))
        if not all(later.includes(earlier) for earlier, later in pairs):
            return None
        if not self._converges():
            return Verdict(Level.CONSISTENT, False, self._wrong_end(Level.STRONG))
        whole = claims[0] == self.histories.start and claims[-1] == self.histories.end
        if whole and all(later.total - earlier.total <= 1 for earlier, later in pairs):
            return Verdict(Level.COMPLETE, True, None)
        # Other cuts than the claimed ones might still explain the states completely; where that would
        # take too long to find out, the claims have shown what they show.
        try:
            skipped = self._is_complete()
        except Undecided:
            return Verdict(Level.STRONG, True, None)
        return Verdict(Level.COMPLETE if skipped is None else Level.STRONG, True, skipped)

    # -- without -----------------------------------------------------------------------------------

    def searched(self) -> Verdict:
        skipped = self._is_complete()
        if skipped is None:
            return Verdict(Level.COMPLETE, True, None)
        convergent = self._converges()
        inconsistent = self._is_consistent()
        if inconsistent is None:
            if convergent:
                return Verdict(Level.STRONG, True, skipped)
            return Verdict(Level.CONSISTENT, False, self._wrong_end(Level.STRONG))
        if inconsistent.level is Level.CONSISTENT:
            return Verdict(Level.WEAK, convergent, inconsistent)
        if convergent:
            return Verdict(Level.CONVERGENT, True, inconsistent)
        return Verdict(Level.NONE, False, inconsistent)

    def _converges(self) -> bool:
        return self.states[-1][1] == self.views.at(self.histories.end)

    def _is_complete(self) -> Violation | None:
        """None if some path of single transactions shows exactly these states."""
        start = self.histories.start
        (_, first), *rest = self.states
        frontier = self._closure({start} if self.views.at(start) == first else set(), first)
        if not frontier:
            return self._violation(
                Level.COMPLETE, 0, "the first state is not the initial view", [start]
            )
        lengths = self.histories.lengths
        for index, state in rest:
            steps = {c: None for cut in _sorted(frontier) for c in cut.successors(lengths)}
            reached = {cut for cut in steps if self.views.at(cut) == state}
            if not reached:
                reason = f"state {index} is not one transaction after state {index - 1}"
                return self._violation(Level.COMPLETE, index, reason, list(steps) or [start])
            frontier = self._closure(reached, state)
        if self.histories.end not in frontier:
            index, _ = self.states[-1]
            reason = "the last state does not include every transaction"
            return self._violation(Level.COMPLETE, index, reason, [self.histories.end])
        return None

    def _closure(self, frontier: set[Cut], state: State) -> set[Cut]:
        """All cuts reachable by transactions that do not change the views."""
        lengths = self.histories.lengths
        reached, waiting = set(frontier), list(frontier)
        while waiting:
            self._require_few(len(self.views))
            for cut in waiting.pop().successors(lengths):
                if cut not in reached and self.views.at(cut) == state:
                    reached.add(cut)
                    waiting.append(cut)
        return reached

    def _is_consistent(self) -> Violation | None:
        """None if non-decreasing cuts explain all states; else what failed, WEAK or CONSISTENT."""
        cuts_of = self._cuts_by_state()
        for index, state in self.states:
            if state not in cuts_of:
                reason = f"state {index} is the view at no cut"
                everywhere = list(self.histories.all_cuts())
                return self._violation(Level.WEAK, index, reason, everywhere)
        lowest: list[Cut] = [self.histories.start]
        for index, state in self.states:
            above = [c for c in cuts_of[state] if any(c.includes(low) for low in lowest)]
            if not above:
                reason = f"state {index} is the view only at cuts before that of an earlier state"
                return self._violation(Level.CONSISTENT, index, reason, cuts_of[state])
            # The lowest cuts leave the most room for the states to come.
            lowest = [c for c in above if not any(c != o and c.includes(o) for o in above)]
        return None

    def _cuts_by_state(self) -> dict[State, list[Cut]]:
        self._require_few(self.histories.number_of_cuts)
        wanted = {state for _, state in self.states}
        cuts_of: defaultdict[State, list[Cut]] = defaultdict(list)
        for cut in self.histories.all_cuts():
            state = self.views.at(cut)
            if state in wanted:
                cuts_of[state].append(cut)
        return cuts_of

    def _require_few(self, cuts: int) -> None:
        if cuts > CUTS_SEARCHED_MAX:
            raise Undecided(
                "too-many-cuts",
                "the level can't be decided by search",
                detail=f"{cuts} cuts or more, at most {CUTS_SEARCHED_MAX} are searched",
                hint="give the cut of each state, or check a shorter run",
            )

    # -- witnesses ---------------------------------------------------------------------------------

    def _wrong_end(self, level: Level) -> Violation:
        index, _ = self.states[-1]
        reason = "the last state is not the view after all transactions"
        return self._violation(level, index, reason, [self.histories.end])

    def _violation(self, level: Level, index: int, reason: str, candidates: list[Cut]) -> Violation:
        state = next(state for number, state in self.states if number == index)
        nearest = nearest_cut(self.views, state, candidates)
        shown = () if nearest is None else differences(self.names, state, self.views.at(nearest))
        return Violation(level, index, reason, nearest, shown)


def _sorted(cuts: set[Cut]) -> list[Cut]:
    return sorted(cuts, key=lambda cut: cut.numbers)
