"""The order of delivery as a verdict of its own, by hand and against brute force."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slices import seeds
from viewkeeper.consistency import SourceHistories, check, check_order
from viewkeeper.errors import InvariantViolated
from viewkeeper.timeline import CutVector
from viewkeeper.views import Level

from .test_agreement import VIEWS, Brute, as_states, histories_of, never_back, runs, without_repeats
from .test_checker import P, Q, bag, copy_view, inserts

VIEW = [copy_view("of_p", P), copy_view("of_q", Q)]
ONE_EACH = SourceHistories({P: bag(), Q: bag()}, {"p": inserts(P, 1), "q": inserts(Q, 1)})
P_FIRST = [(bag(), bag()), (bag(1), bag()), (bag(1), bag(1))]
Q_FIRST = [(bag(), bag()), (bag(), bag(1)), (bag(1), bag(1))]


@pytest.mark.parametrize("states", [P_FIRST, Q_FIRST], ids=["p first", "q first"])
@pytest.mark.parametrize("delivered", ["pq", "qp"])
def test_either_order_is_complete_and_only_one_is_that_of_delivery(states, delivered):
    assert check(VIEW, ONE_EACH, states).level is Level.COMPLETE
    in_order = (states is P_FIRST) == (delivered == "pq")
    verdict = check_order(VIEW, ONE_EACH, delivered, states)
    assert (verdict.level is Level.COMPLETE) is in_order
    if not in_order:
        assert verdict.level is Level.CONVERGENT
        assert verdict.violation.state == 1


def test_a_claim_of_what_was_delivered_later_is_wrong():
    cuts = [CutVector.of({"p": p, "q": q}) for p, q in ((0, 0), (0, 1), (1, 1))]
    assert check(VIEW, ONE_EACH, Q_FIRST, cuts).meets(Level.COMPLETE)
    verdict = check_order(VIEW, ONE_EACH, "pq", Q_FIRST, cuts)
    assert verdict.wrong_claim.state == 1
    assert "no cut" in verdict.problem


def test_several_delivered_transactions_in_one_state_are_in_order_and_strong():
    together = [(bag(), bag()), (bag(1), bag(1))]
    assert check_order(VIEW, ONE_EACH, "pq", together).level is Level.STRONG


def test_what_was_not_delivered_is_no_order():
    with pytest.raises(InvariantViolated, match="not every transaction"):
        check_order(VIEW, ONE_EACH, "p", P_FIRST)


@settings(max_examples=seeds(500, least=20), deadline=None)
@given(runs(), st.randoms(use_true_random=False))
def test_order_and_brute_force_agree_with_claims_and_without(run, random):
    brute, claims, shown = run
    delivered = list("p" * brute.ends[0] + "q" * brute.ends[1])
    random.shuffle(delivered)
    prefixes = [
        (delivered[:n].count("p"), delivered[:n].count("q")) for n in range(len(delivered) + 1)
    ]
    views = [VIEWS[name] for name in brute.views]
    states, cuts = as_states(shown), [CutVector.of({"p": p, "q": q}) for p, q in claims]
    histories = histories_of(brute)
    expected = _level(brute, prefixes, shown)
    assert check_order(views, histories, delivered, states).level is expected
    verdict = check_order(views, histories, delivered, states, cuts)
    assert verdict.level is expected
    assert verdict.claims_hold is (
        brute.claims_hold(shown, claims) and all(claim in prefixes for claim in claims)
    )


def _level(brute: Brute, prefixes: list, shown: list) -> Level:
    """The definitions, where the prefixes are the only moments there are."""
    views = [brute.at[prefix] for prefix in prefixes]
    if without_repeats(views) == without_repeats(shown):
        return Level.COMPLETE
    convergent = shown[-1] == views[-1]
    choices = [[prefix for prefix in prefixes if brute.at[prefix] == state] for state in shown]
    if any(never_back(chosen) for chosen in itertools.product(*choices)):
        return Level.STRONG if convergent else Level.CONSISTENT
    if all(choices):
        return Level.WEAK
    return Level.CONVERGENT if convergent else Level.NONE
