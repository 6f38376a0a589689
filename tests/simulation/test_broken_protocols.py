"""The checker catches a deliberately wrong variant of every protocol: a check that can't fail is none."""

from __future__ import annotations

import pytest

from paper.figure5 import SCENARIO as FIGURE_5
from simulation import broken
from simulation.rearranged import ChangesHeldBack, OneStateEarly, WholeBatchUnderItsLastNumber
from simulation.test_protocols import size_for
from viewkeeper.simulator.exploration import explore
from viewkeeper.simulator.generator import Shape, Size
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.run import simulated
from viewkeeper.views import Level

FIFO, LOOSE = Network(), Network(fifo=False)
INVERTED = Network(fifo=False, inversions=True)
VARIANTS = (WholeBatchUnderItsLastNumber, ChangesHeldBack, OneStateEarly)


@pytest.mark.parametrize(
    ("variant", "network"),
    [
        (broken.SweepThatTrustsPrefixes, INVERTED),
        (broken.SweepThatGuessesFromArrival, LOOSE),
        (broken.NestedSweepWithOldRelations, FIFO),
        (broken.ParallelSweepThatSquaresCounts, FIFO),
        (broken.BatchedSweepThatTrustsPrefixes, INVERTED),
        (broken.BatchedSweepWithoutNumbers, FIFO),
        (broken.BatchedSweepWithCancelledKeys, FIFO),
        (broken.RecomputeOfDifferentMoments, FIFO),
        (broken.RecomputeWithoutCorrection, INVERTED),
        (broken.ECAWithoutCompensation, FIFO),
        (broken.StrobeWithoutPendingDeletions, FIFO),
        (broken.StrobeWithDuplicates, FIFO),
        (broken.CStrobeWithoutCompensatingQueries, FIFO),
        (broken.CStrobeThatKeepsLaterInsertions, FIFO),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_wrong_variant_is_caught_with_a_witness(variant, network):
    for seed in range(600):
        outcome = simulated(variant, seed, size_for(variant), network)
        if not outcome.verdict.meets(variant.level):
            verdict = outcome.verdict
            violation = verdict.violation or verdict.wrong_claim
            assert violation is not None
            assert violation.reason in outcome.problem
            return
    pytest.fail(f"{variant.__name__} passed 600 seeds")


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.__name__)
def test_right_changes_under_wrong_numbers_are_caught_by_claims_and_by_search(variant):
    """Each is caught with claims; a search, which does not know the numbers, finds what was skipped."""
    found = {False: 0, True: 0}
    for seed in range(30):
        for search in found:
            outcome = simulated(variant, seed, Size(transactions=8), search=search)
            assert outcome.verdict.convergent
            found[search] += not outcome.is_good
    assert found[False] >= found[True] > 0


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.__name__)
def test_exploration_finds_right_changes_under_wrong_numbers(variant):
    result = explore(variant, FIGURE_5)
    assert result.violations > 0
    assert not result.first_violation.claims_hold


def test_another_order_than_that_of_delivery_is_caught_though_it_is_complete():
    outcomes = [simulated(broken.SweepInAnotherOrder, seed, Size()) for seed in range(60)]
    assert all(outcome.verdict.meets(Level.COMPLETE) for outcome in outcomes)
    caught = [outcome for outcome in outcomes if not outcome.is_good]
    assert len(caught) > 5
    assert all("not in the order of delivery" in outcome.problem for outcome in caught)
    by_search = [simulated(broken.SweepInAnotherOrder, o.seed, Size(), search=True) for o in caught]
    assert any(not outcome.is_good for outcome in by_search)


def test_exploration_finds_another_order_than_that_of_delivery():
    result = explore(broken.SweepInAnotherOrder, FIGURE_5)
    assert set(result.levels) == {"complete"}
    assert result.violations > 0


def test_sweep_on_a_fifo_channel_may_trust_prefixes():
    """The variant above is wrong only where the paper's assumption does not hold."""
    for seed in range(100):
        variant = broken.SweepThatTrustsPrefixes
        assert simulated(variant, seed, size_for(variant, Shape.CHAIN), FIFO).is_good
