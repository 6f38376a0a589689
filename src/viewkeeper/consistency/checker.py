"""Which level of consistency did this history of the warehouse reach?

Written from the definitions (DyDa section 2.3, MVC section 2, Rings section 3), for one view or a
vector of views at once. Nothing is claimed by whoever ran; where cuts are claimed, they are checked.

Two histories that differ only in repeating a state look the same to a reader, so repetitions are
collapsed: a transaction that does not change the views need not give a new state, and a warehouse that
installs an empty change shows nothing new. A claim is about one state alone, so every state is compared
with its claim, repeated or not. The level is what the states show: claims that hold find it without a
search, and never make it higher or lower; a claim that does not hold is told beside it.

| level | search |
|---|---|
| complete | a path of single transactions from the first cut to the last whose views, collapsed, are the states; of blocks of N, one on which no two neighbours are more than N transactions apart |
| consistent | for each state a cut with that view, not below the cut before it |
| weak | for each state a cut with that view |
| convergent | the last state is the view at the last cut |
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
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
    # The first state that is not the view at the cut which was claimed for it.
    wrong_claim: Violation | None = None

    @property
    def claims_hold(self) -> bool:
        """Whether every state is the view at its claim, and no claim is before an earlier one."""
        return self.wrong_claim is None

    @property
    def problem(self) -> str:
        """What to show of a history that falls short."""
        return "\n".join(str(v) for v in (self.wrong_claim, self.violation) if v is not None)

    def meets(self, level: Level) -> bool:
        """Whether the history has at least this level, and shows each state at the cut it claims."""
        reached = self.convergent if level is Level.CONVERGENT else self.level >= level
        return reached and self.claims_hold


def check(
    definitions: Sequence[ViewDefinition],
    histories: SourceHistories,
    states: Sequence[State],
    claims: Sequence[Cut] | None = None,
    block: int = 1,
) -> Verdict:
    """Decide the level of a history of states, the initial one first.

    ``block``: what counts as complete is a state for each of this many transactions, or fewer (MVC's complete-N).

    ``claims`` gives the cut of each state where the writer knows it: then nothing is searched, unless
    a claim is wrong or skips a transaction. Raises Undecided when a search would take too long; with
    claims it never does, and the level is then the highest that was shown.
    """
    checker = _Checker(definitions, histories, states, block)
    if claims is None:
        return checker.searched()
    wrong = checker.wrong_claim(states, claims)
    return checker.with_claims(claims) if wrong is None else checker.in_spite_of(wrong)


class _Checker:
    def __init__(
        self,
        definitions: Sequence[ViewDefinition],
        histories: SourceHistories,
        states: Sequence[State],
        block: int = 1,
    ) -> None:
        self.block = block
        self._unchanged: dict[Cut, set[Cut]] = {}
        self.names = [definition.name for definition in definitions]
        self.histories = histories
        self.views = ViewStates(definitions, histories)
        # The states without repetitions, each with its index in the original sequence.
        self.states: list[tuple[int, State]] = []
        for index, state in enumerate(states):
            if not self.states or self.states[-1][1] != state:
                self.states.append((index, state))

    # -- with claimed cuts -------------------------------------------------------------------------

    def wrong_claim(self, states: Sequence[State], claims: Sequence[Cut]) -> Violation | None:
        """The first claim that does not hold, with what its state should have shown."""
        before = self.histories.start
        for index, (state, claim) in enumerate(zip(states, claims, strict=True)):
            if not self.histories.has(claim):
                return Violation(None, index, f"state {index} claims {claim}, which is no cut here")
            if not claim.includes(before):
                reason = f"state {index} claims {claim}, after {before} was claimed"
                return Violation(None, index, reason)
            expected = self.views.at(claim)
            if expected != state:
                reason = f"state {index} is not the view at the cut that is claimed for it"
                shown = differences(self.names, state, expected)
                return Violation(None, index, reason, claim, shown)
            before = claim
        return None

    def with_claims(self, claims: Sequence[Cut]) -> Verdict:
        """The level of states that are all the view at their claims."""
        if not self._converges():
            return Verdict(Level.CONSISTENT, False, self._wrong_end(Level.STRONG))
        whole = claims[0] == self.histories.start and claims[-1] == self.histories.end
        steps = (later.total - earlier.total for earlier, later in itertools.pairwise(claims))
        if whole and all(step <= self.block for step in steps):
            # The claims are a path of single transactions, and each of its cuts was shown.
            return Verdict(Level.COMPLETE, True, None)
        # What the claims skip may change nothing, and other cuts might explain the states completely;
        # where that would take too long to find out, the claims have shown what they show.
        try:
            skipped = self._is_complete()
        except Undecided:
            return Verdict(Level.STRONG, True, None)
        return Verdict(Level.COMPLETE if skipped is None else Level.STRONG, True, skipped)

    def in_spite_of(self, wrong: Violation) -> Verdict:
        """The level that the states have, though a claim is wrong."""
        try:
            return replace(self.searched(), wrong_claim=wrong)
        except Undecided:
            # Too long to search is no way out for a claim that is known to be wrong.
            convergent = self._converges()
            level = Level.CONVERGENT if convergent else Level.NONE
            return Verdict(level, convergent, None, wrong)

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
        frontier = self._standing({start} if self.views.at(start) == first else set(), first)
        if not frontier:
            return self._violation(
                Level.COMPLETE, 0, "the first state is not the initial view", [start]
            )
        for index, state in rest:
            steps = self._steps_from(frontier)
            reached = {cut for cut in steps if self.views.at(cut) == state}
            if not reached:
                after = (
                    "one transaction" if self.block == 1 else f"{self.block} transactions or fewer"
                )
                reason = f"state {index} is not {after} after state {index - 1}"
                return self._violation(Level.COMPLETE, index, reason, list(steps) or [start])
            frontier = self._standing(reached, state)
        if self.histories.end not in frontier:
            index, _ = self.states[-1]
            reason = "the last state does not include every transaction"
            return self._violation(Level.COMPLETE, index, reason, [self.histories.end])
        return None

    def _standing(self, frontier: set[Cut], state: State) -> set[Cut]:
        """All cuts at which the views may be while they show one state: a block may take back what it does."""
        reached = self._closure(frontier, state)
        waiting = list(reached) if self.block > 1 else []
        while waiting:
            back = {c for c in self._steps_from([waiting.pop()]) if self.views.at(c) == state}
            new = self._closure(back, state) - reached
            reached |= new
            waiting += new
        return reached

    def _steps_from(self, cuts: Iterable[Cut]) -> dict[Cut, None]:
        """The cuts that a block of transactions leads to, or a part of one; those that change nothing do not count."""
        found: dict[Cut, None] = {}
        last = set(cuts)
        for _ in range(self.block):
            step = {c: None for cut in _sorted(last) for c in self.histories.successors(cut)}
            found |= step
            last = {c for cut in step for c in self._unchanged_from(cut)}
        return found

    def _unchanged_from(self, cut: Cut) -> set[Cut]:
        if cut not in self._unchanged:
            self._unchanged[cut] = self._closure({cut}, self.views.at(cut))
        return self._unchanged[cut]

    def _closure(self, frontier: set[Cut], state: State) -> set[Cut]:
        """All cuts reachable by transactions that do not change the views."""
        reached, waiting = set(frontier), list(frontier)
        while waiting:
            self._require_few(len(self.views))
            for cut in self.histories.successors(waiting.pop()):
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
