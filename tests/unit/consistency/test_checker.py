"""The checker against histories made by hand, one for each level and for each way to miss it."""

from __future__ import annotations

import itertools

import pytest

from simulation.rearranged import REARRANGED
from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.consistency import SourceHistories, check
from viewkeeper.consistency import checker as checker_module
from viewkeeper.consistency.checker import Undecided
from viewkeeper.consistency.histories import ViewStates
from viewkeeper.timeline import Cut, Transaction
from viewkeeper.views import Level, Occurrence, RelationName, Term, ViewDefinition

ROWS = Schema.of(k=INTEGER)
P, Q = RelationName("p", "r"), RelationName("q", "r")


def pair_view(name: str = "v") -> ViewDefinition:
    """Equal rows of p.r and q.r."""
    occurrences = (Occurrence("p", P, ROWS), Occurrence("q", Q, ROWS))
    same = Comparison("=", Column("p.k"), Column("q.k"))
    return ViewDefinition(name, (Term(occurrences, (same,), (Output("k", Column("p.k")),)),))


def copy_view(name: str, relation: RelationName) -> ViewDefinition:
    occurrence = Occurrence("x", relation, ROWS)
    return ViewDefinition(name, (Term((occurrence,), (), (Output("k", Column("x.k")),)),))


def inserts(relation: RelationName, *values: int) -> list[Transaction]:
    return [
        Transaction(relation.source, number, ((relation, Bag.of(ROWS, [(value,)])),))
        for number, value in enumerate(values, 1)
    ]


# p inserts 1, 2; q inserts 1, 2: every cut has a view of its own but for the one-sided ones.
HISTORIES = SourceHistories(
    {P: Bag(ROWS), Q: Bag(ROWS)}, {"p": inserts(P, 1, 2), "q": inserts(Q, 1, 2)}
)


def bag(*values: int) -> Bag:
    return Bag.of(ROWS, [(value,) for value in values])


def states(*contents: Bag) -> list[tuple[Bag]]:
    return [(one,) for one in contents]


def verdict(*contents: Bag):
    return check([pair_view()], HISTORIES, states(*contents))


def test_a_history_that_shows_every_step_is_complete():
    result = verdict(bag(), bag(1), bag(1, 2))
    assert result.level is Level.COMPLETE
    assert result.violation is None


def test_repeated_states_change_nothing():
    assert verdict(bag(), bag(), bag(1), bag(1), bag(1, 2)).level is Level.COMPLETE


def test_a_skipped_state_leaves_it_strong_and_the_witness_names_it():
    result = verdict(bag(), bag(1, 2))
    assert result.level is Level.STRONG
    assert result.violation is not None
    assert result.violation.level is Level.COMPLETE
    assert result.violation.state == 1


def test_a_history_that_never_catches_up_is_consistent():
    result = verdict(bag(), bag(1))
    assert result.level is Level.CONSISTENT
    assert not result.convergent
    assert result.violation.differences[0].too_few == (((2,), 1),)


def test_states_out_of_order_are_weak():
    # With 1 shown at ⟨p 1, q 1⟩, the empty view comes back: right at ⟨0, 0⟩, but that is earlier.
    result = verdict(bag(), bag(1), bag(), bag(1, 2))
    assert result.level is Level.WEAK
    assert result.convergent
    assert result.violation.level is Level.CONSISTENT
    assert result.violation.state == 2


def test_a_state_that_never_was_but_a_right_end_is_convergent():
    result = verdict(bag(), bag(1, 1), bag(1, 2))
    assert result.level is Level.CONVERGENT
    assert result.violation.level is Level.WEAK
    assert result.violation.nearest == Cut.of({"p": 1, "q": 1})
    assert result.violation.differences[0].too_many == (((1,), 1),)
    assert "too many (1,) × 1" in str(result.violation)


def test_wrong_in_the_middle_and_at_the_end_is_no_level_at_all():
    result = verdict(bag(), bag(1, 1), bag(2, 2))
    assert result.level is Level.NONE
    assert not result.meets(Level.CONVERGENT)


def test_a_wrong_first_state_is_not_complete():
    assert verdict(bag(1), bag(1, 2)).level is Level.STRONG


def test_claims_that_hold_are_believed_after_they_are_checked():
    cuts = [Cut.of({"p": p, "q": q}) for p, q in ((0, 0), (1, 0), (1, 1), (1, 2), (2, 2))]
    contents = [bag(), bag(), bag(1), bag(1), bag(1, 2)]
    result = check([pair_view()], HISTORIES, states(*contents), cuts)
    assert (result.level, result.claims_hold) == (Level.COMPLETE, True)


@pytest.mark.parametrize(
    "wrong",
    [
        [(0, 0), (1, 0), (2, 2)],  # the second state is not the view there
        [(0, 0), (2, 1), (1, 2)],  # not monotone: and the last one is wrong too
    ],
)
def test_a_wrong_claim_is_told_and_the_level_is_searched_for(wrong):
    cuts = [Cut.of({"p": p, "q": q}) for p, q in wrong]
    result = check([pair_view()], HISTORIES, states(bag(), bag(1), bag(1, 2)), cuts)
    assert (result.level, result.claims_hold) == (Level.COMPLETE, False)


# One source inserts three rows, and a view copies them: every transaction changes the view.
THREE = SourceHistories({P: Bag(ROWS)}, {"p": inserts(P, 1, 2, 3)})
ONE_EACH = [Cut.of({"p": n}) for n in (0, 1, 2, 3)]


def claimed(contents: list[Bag], cuts: list[Cut], histories: SourceHistories = THREE):
    return check([copy_view("v", P)], histories, states(*contents), cuts)


@pytest.mark.parametrize(
    ("shown", "level", "state"),
    [
        # A whole batch under its last number: nothing, nothing, then three at once.
        ([bag(), bag(), bag(), bag(1, 2, 3)], Level.STRONG, 1),
        # Two of three under the number of the second.
        ([bag(), bag(), bag(1, 2), bag(1, 2, 3)], Level.STRONG, 1),
        # Held back, and shown with the transaction after it.
        ([bag(), bag(1), bag(1), bag(1, 2, 3)], Level.STRONG, 2),
        # One state early.
        ([bag(), bag(1, 2), bag(1, 2), bag(1, 2, 3)], Level.STRONG, 1),
        # One state early throughout: a reader sees every step, but not where it is said to be.
        ([bag(1), bag(1, 2), bag(1, 2, 3), bag(1, 2, 3)], Level.STRONG, 0),
        # Held back for ever.
        ([bag(), bag(), bag(), bag()], Level.CONSISTENT, 1),
    ],
)
def test_a_step_that_is_claimed_must_have_been_shown(shown, level, state):
    result = claimed(shown, ONE_EACH)
    assert (result.level, result.claims_hold, result.wrong_claim.state) == (level, False, state)
    assert not result.meets(Level.CONVERGENT)
    assert result.problem.startswith("wrong claim: ")


@pytest.mark.parametrize("rearrange", REARRANGED.values(), ids=REARRANGED)
def test_right_changes_under_wrong_numbers_are_not_complete(rearrange):
    """The wrong variants that are tried wherever a run is judged, here on three inserted rows."""
    changes = [bag(1), bag(2), bag(3)]
    right = list(itertools.accumulate(changes, initial=bag()))
    wrong = list(itertools.accumulate(rearrange(changes), initial=bag()))
    assert claimed(right, ONE_EACH).meets(Level.COMPLETE)
    assert claimed(wrong, ONE_EACH).level is Level.STRONG
    assert not claimed(wrong, ONE_EACH).claims_hold
    assert check([copy_view("v", P)], THREE, states(*wrong)).level is Level.STRONG


def test_a_state_one_step_late_is_complete_to_a_reader_and_a_wrong_claim_all_the_same():
    """Four transactions' claims, the last twice: every step was shown, each under the next number."""
    result = claimed([bag(), bag(), bag(1), bag(1, 2), bag(1, 2, 3)], [*ONE_EACH, ONE_EACH[-1]])
    assert (result.level, result.claims_hold) == (Level.COMPLETE, False)
    assert result.wrong_claim.differences[0].too_few == (((1,), 1),)
    assert not result.meets(Level.COMPLETE)


def test_a_state_that_is_shown_twice_under_one_claim_changes_nothing():
    shown = [bag(), bag(1), bag(1), bag(1, 2), bag(1, 2, 3)]
    result = claimed(shown, [*ONE_EACH[:2], *ONE_EACH[1:]])
    assert (result.level, result.claims_hold) == (Level.COMPLETE, True)


@pytest.mark.parametrize("number", [4, -1])
def test_a_claim_of_what_never_was_is_wrong(number):
    result = claimed([bag(1, 2, 3)], [Cut.of({"p": number})])
    assert not result.claims_hold
    assert "is no cut" in str(result.wrong_claim)


def test_a_claim_is_needed_for_every_state():
    with pytest.raises(ValueError, match="shorter"):
        claimed([bag(), bag(1)], ONE_EACH[:1])


def test_a_claim_that_skips_what_changes_nothing_leaves_it_complete():
    """A transaction that no view shows needs no state: with claims as without."""
    invisible = SourceHistories(
        {P: Bag(ROWS), Q: Bag(ROWS)}, {"p": inserts(P, 1, 2), "q": inserts(Q, 7)}
    )
    cuts = [Cut.of({"p": p, "q": q}) for p, q in ((0, 0), (1, 1), (2, 1))]
    result = claimed([bag(), bag(1), bag(1, 2)], cuts, invisible)
    assert (result.level, result.claims_hold) == (Level.COMPLETE, True)


def test_a_wrong_claim_is_told_where_a_search_would_not_end(monkeypatch):
    monkeypatch.setattr(checker_module, "CUTS_SEARCHED_MAX", 0)
    result = claimed([bag(), bag(), bag(), bag(1, 2, 3)], ONE_EACH)
    assert (result.level, result.claims_hold) == (Level.CONVERGENT, False)
    assert claimed([bag(), bag(), bag(), bag()], ONE_EACH).level is Level.NONE


def test_claims_that_jump_are_strong_unless_nothing_visible_was_skipped():
    def level(*numbers: tuple[int, int]) -> Level:
        cuts = [Cut.of({"p": p, "q": q}) for p, q in numbers]
        contents = [ViewStates([pair_view()], HISTORIES).at(cut) for cut in cuts]
        return check([pair_view()], HISTORIES, contents, cuts).level

    assert level((0, 0), (2, 2)) is Level.STRONG
    assert level((0, 0), (1, 1), (2, 2)) is Level.COMPLETE


def test_two_views_must_agree_on_one_cut():
    views = [copy_view("a", P), copy_view("b", P)]
    histories = SourceHistories({P: Bag(ROWS)}, {"p": inserts(P, 1)})
    together = [(bag(), bag()), (bag(1), bag(1))]
    apart = [(bag(), bag()), (bag(1), bag()), (bag(1), bag(1))]
    assert check(views, histories, together).level is Level.COMPLETE
    # Each view alone is complete; the pair shows a moment that never was.
    for index, view in enumerate(views):
        alone = [(state[index],) for state in apart]
        assert check([view], histories, alone).level is Level.COMPLETE
    result = check(views, histories, apart)
    assert result.level is Level.CONVERGENT
    assert result.violation.state == 1
    assert [d.view for d in result.violation.differences] in (["a"], ["b"])


def test_too_many_cuts_without_claims_are_undecided(monkeypatch):
    monkeypatch.setattr(checker_module, "CUTS_SEARCHED_MAX", 5)
    with pytest.raises(Undecided, match="can't be decided"):
        verdict(bag(), bag(1), bag(), bag(1, 2))


def test_a_search_for_a_complete_path_is_bounded_too(monkeypatch):
    """Many transactions that change nothing leave many paths open."""
    invisible = SourceHistories(
        {P: Bag(ROWS), Q: Bag(ROWS)},
        {"p": inserts(P, *range(10)), "q": inserts(Q, *range(20, 30))},
    )
    monkeypatch.setattr(checker_module, "CUTS_SEARCHED_MAX", 50)
    with pytest.raises(Undecided):
        check([pair_view()], invisible, states(bag()))


def test_claims_that_hold_decide_where_a_search_would_not_end(monkeypatch):
    cuts = [Cut.of({"p": 0, "q": 0}), Cut.of({"p": 2, "q": 2})]
    contents = [ViewStates([pair_view()], HISTORIES).at(cut) for cut in cuts]
    monkeypatch.setattr(checker_module, "CUTS_SEARCHED_MAX", 1)
    assert check([pair_view()], HISTORIES, contents, cuts).level is Level.STRONG


def test_search_and_brute_force_agree_on_every_short_history():
    """All histories of up to three states over a few contents, against the definitions word by word."""
    view = ViewStates([pair_view()], HISTORIES)
    cuts = list(HISTORIES.all_cuts())
    contents = [(bag(),), (bag(1),), (bag(2),), (bag(1, 2),), (bag(1, 1),)]
    paths = list(_paths(HISTORIES.start))
    for length in (1, 2, 3):
        for history in itertools.product(contents, repeat=length):
            assert check([pair_view()], HISTORIES, history).level is _level(
                history, view, cuts, paths
            )


def _paths(cut: Cut):
    """Every order of single transactions from a cut to the end."""
    following = list(cut.successors(HISTORIES.lengths))
    if not following:
        yield [cut]
    for successor in following:
        for path in _paths(successor):
            yield [cut, *path]


def _collapsed(sequence: list) -> list:
    return [key for key, _ in itertools.groupby(sequence)]


def _level(history, view: ViewStates, cuts: list[Cut], paths: list[list[Cut]]) -> Level:
    convergent = history[-1] == view.at(HISTORIES.end)
    seen = _collapsed(list(history))
    if any(_collapsed([view.at(cut) for cut in path]) == seen for path in paths):
        return Level.COMPLETE
    explained = any(
        all(view.at(c) == s for c, s in zip(chosen, history, strict=True))
        and all(b.includes(a) for a, b in itertools.pairwise(chosen))
        for chosen in itertools.product(cuts, repeat=len(history))
    )
    if explained:
        return Level.STRONG if convergent else Level.CONSISTENT
    if all(any(view.at(cut) == state for cut in cuts) for state in history):
        return Level.WEAK
    return Level.CONVERGENT if convergent else Level.NONE


def test_a_block_may_skip_the_states_inside_it_and_no_more():
    histories = SourceHistories({P: Bag(ROWS)}, {"p": inserts(P, 1, 2, 3, 4)})
    by_two = states(bag(), bag(1, 2), bag(1, 2, 3, 4))
    view = [copy_view("v", P)]
    assert check(view, histories, by_two, block=2).level is Level.COMPLETE
    assert check(view, histories, by_two).level is Level.STRONG
    by_three = check(view, histories, states(bag(), bag(1), bag(1, 2, 3, 4)), block=2)
    assert by_three.level is Level.STRONG
    assert "2 transactions or fewer" in by_three.problem
    claims = [Cut.of({"p": n}) for n in (0, 2, 4)]
    assert check(view, histories, by_two, claims, block=2).level is Level.COMPLETE
    assert check(view, histories, by_two, claims).level is Level.STRONG


def test_a_block_that_takes_back_what_it_does_shows_nothing_new():
    out = Transaction("p", 2, ((P, -bag(1)),))
    (first,), (third, fourth) = inserts(P, 1), inserts(P, 3, 4)
    later = [Transaction("p", n, t.changes) for n, t in ((3, third), (4, fourth))]
    histories = SourceHistories({P: Bag(ROWS)}, {"p": [first, out, *later]})
    shown = states(bag(), bag(3, 4))
    assert check([copy_view("v", P)], histories, shown, block=2).level is Level.COMPLETE
