"""The checker against brute force, in both modes: by search, and with claims, true ones and false ones.

What is compared with is written from the definitions alone: views are loops over lists of numbers, a path
is any order of the transactions, and an explanation is any choice of cuts. None of it is shared with the
checker, not even the evaluation of a view.
"""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slices import seeds
from viewkeeper.algebra import Bag
from viewkeeper.consistency import SourceHistories, check
from viewkeeper.consistency import checker as checker_module
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views import Level

from .test_checker import ROWS, P, Q, copy_view, pair_view

VIEWS = {"pairs": pair_view("pairs"), "of_p": copy_view("of_p", P), "of_q": copy_view("of_q", Q)}

# A step of a source: the number inserted, or deleted where it is there (as -1 - number).
Script = list[int]


class Brute:
    """Two sources' scripts, and everything about them by enumeration."""

    def __init__(self, scripts: tuple[Script, Script], views: tuple[str, ...]) -> None:
        self.views = views
        self.contents = [self._all_contents(script) for script in scripts]
        self.ends = (len(scripts[0]), len(scripts[1]))
        self.cuts = list(itertools.product(*(range(end + 1) for end in self.ends)))
        self.at = {cut: tuple(self._view(name, cut) for name in views) for cut in self.cuts}

    @staticmethod
    def _all_contents(script: Script) -> list[Counter[int]]:
        contents = [Counter[int]()]
        for step in script:
            now = Counter(contents[-1])
            if step >= 0:
                now[step] += 1
            elif now[-1 - step]:
                now[-1 - step] -= 1
            contents.append(+now)
        return contents

    def _view(self, name: str, cut: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        p, q = (self.contents[source][number] for source, number in enumerate(cut))
        if name == "of_p":
            rows = list(p.elements())
        elif name == "of_q":
            rows = list(q.elements())
        else:
            rows = [x for x in p.elements() for y in q.elements() if x == y]
        return tuple(sorted(Counter(rows).items()))

    def level(self, states: list) -> Level:
        if self._is_complete(states):
            return Level.COMPLETE
        convergent = states[-1] == self.at[self.ends]
        if self._is_consistent(states):
            return Level.STRONG if convergent else Level.CONSISTENT
        if all(state in self.at.values() for state in states):
            return Level.WEAK
        return Level.CONVERGENT if convergent else Level.NONE

    def _is_complete(self, states: list) -> bool:
        """Whether some order of the transactions, one by one, shows these states and no others."""
        orders = set(itertools.permutations("p" * self.ends[0] + "q" * self.ends[1]))
        return any(
            without_repeats(self._shown(order)) == without_repeats(states) for order in orders
        )

    def _shown(self, order: tuple[str, ...]) -> list:
        numbers = [(order[:n].count("p"), order[:n].count("q")) for n in range(len(order) + 1)]
        return [self.at[cut] for cut in numbers]

    def _is_consistent(self, states: list) -> bool:
        """Whether each state has a cut with its view, none before an earlier one's."""
        choices = [[cut for cut in self.cuts if self.at[cut] == state] for state in states]
        return any(never_back(chosen) for chosen in itertools.product(*choices))

    def claims_hold(self, states: list, claims: list[tuple[int, int]]) -> bool:
        return never_back(claims) and all(
            self.at[claim] == state for state, claim in zip(states, claims, strict=True)
        )


def never_back(cuts) -> bool:
    return all(a[0] <= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(cuts))


def without_repeats(states: list) -> list:
    return [state for n, state in enumerate(states) if n == 0 or states[n - 1] != state]


# -- both speak of the same thing ---------------------------------------------------------------------


def histories_of(brute: Brute) -> SourceHistories:
    scripts = {}
    for (source, relation), contents in zip((("p", P), ("q", Q)), brute.contents, strict=True):
        scripts[source] = [
            Transaction(source, number, ((relation, _bag(after) - _bag(before)),))
            for number, (before, after) in enumerate(itertools.pairwise(contents), 1)
        ]
    return SourceHistories({P: Bag(ROWS), Q: Bag(ROWS)}, scripts)


def _bag(counted) -> Bag:
    return Bag.signed(ROWS, [((value,), count) for value, count in dict(counted).items()])


def _cut(numbers: tuple[int, int]) -> CutVector:
    return CutVector.of({"p": numbers[0], "q": numbers[1]})


# -- worlds and histories at random -------------------------------------------------------------------

STEPS = st.sampled_from([0, 0, 1, 1, -1, -2])
SOME_VIEWS = st.sampled_from([("pairs",), ("of_p",), ("of_p", "of_q"), ("pairs", "of_q")])


@st.composite
def runs(draw):
    """A world, the cuts that a warehouse claims, and what it showed: right, or wrong in several ways."""
    scripts = draw(st.lists(STEPS, max_size=3)), draw(st.lists(STEPS, max_size=2))
    brute = Brute(scripts, draw(SOME_VIEWS))
    order = draw(st.permutations("p" * brute.ends[0] + "q" * brute.ends[1]))
    path = [(order[:n].count("p"), order[:n].count("q")) for n in range(len(order) + 1)]
    # How often each cut is claimed: some are skipped, some stand for two states.
    often = draw(st.sampled_from([st.just(1), st.sampled_from([0, 1, 1, 2])]))
    claims = [cut for cut in path for _ in range(draw(often))] or [path[-1]]
    if draw(st.integers(0, 9)) == 0:
        claims = draw(st.permutations(claims))
    is_right = draw(st.booleans())
    shown = [
        brute.at[claims[n]] if is_right else draw(_shown(brute, claims, n))
        for n in range(len(claims))
    ]
    return brute, claims, shown


def _shown(brute: Brute, claims: list, index: int):
    """The state that belongs there, or another: a neighbour's, any, or one that never was."""
    right = brute.at[claims[index]]
    near = [brute.at[claim] for claim in claims[max(0, index - 2) : index + 3]]
    never = tuple(((7, 1),) for _ in right)
    return st.sampled_from([right] * 6 + near * 2 + [brute.at[brute.ends], never])


def as_states(shown: list) -> list:
    return [tuple(_bag(view) for view in state) for state in shown]


def checked(brute: Brute, shown: list, claims: list | None):
    states = as_states(shown)
    cuts = None if claims is None else [_cut(claim) for claim in claims]
    return check([VIEWS[name] for name in brute.views], histories_of(brute), states, cuts)


@settings(max_examples=seeds(500, least=20), deadline=None)
@given(runs())
def test_search_and_brute_force_agree(run):
    brute, _, shown = run
    assert checked(brute, shown, None).level is brute.level(shown)


@settings(max_examples=seeds(1000, least=20), deadline=None)
@given(runs())
def test_with_claims_the_level_is_that_of_brute_force_and_a_false_claim_is_told(run):
    brute, claims, shown = run
    verdict = checked(brute, shown, claims)
    assert verdict.level is brute.level(shown)
    assert verdict.claims_hold is brute.claims_hold(shown, claims)
    assert verdict.meets(verdict.level) is verdict.claims_hold


@settings(max_examples=seeds(300, least=20), deadline=None)
@given(runs())
def test_where_no_search_ends_claims_never_give_more_than_the_states_show(run):
    brute, claims, shown = run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checker_module, "CUTS_SEARCHED_MAX", 0)
        verdict = checked(brute, shown, claims)
    assert verdict.level <= brute.level(shown)
    assert verdict.claims_hold is brute.claims_hold(shown, claims)


def test_every_way_to_show_three_transactions_with_one_claim_each():
    """All histories of four states out of the four contents of a copied relation, exhaustively."""
    brute = Brute(([0, 1, 0], []), ("of_p",))
    claims = [(n, 0) for n in range(4)]
    levels = Counter()
    for shown in itertools.product(brute.at.values(), repeat=4):
        verdict = checked(brute, list(shown), claims)
        assert verdict.level is brute.level(list(shown))
        assert verdict.claims_hold is brute.claims_hold(list(shown), claims)
        levels[verdict.level, verdict.claims_hold] += 1
    assert levels[Level.COMPLETE, True] == 1
    assert {hold for _, hold in levels} == {True, False}
