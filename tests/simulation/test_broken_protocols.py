"""The checker catches a deliberately wrong variant of every protocol: a check that can't fail is none."""

from __future__ import annotations

import pytest

from simulation import broken
from simulation.test_protocols import size_for
from viewkeeper.simulator.generator import Shape
from viewkeeper.simulator.run import simulated
from viewkeeper.simulator.scenario import Network

FIFO, LOOSE = Network(), Network(fifo=False)
INVERTED = Network(fifo=False, inversions=True)


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
            violation = outcome.verdict.violation
            assert violation is not None
            assert violation.reason in str(violation)
            return
    pytest.fail(f"{variant.__name__} passed 600 seeds")


def test_sweep_on_a_fifo_channel_may_trust_prefixes():
    """The variant above is wrong only where the paper's assumption does not hold."""
    for seed in range(100):
        variant = broken.SweepThatTrustsPrefixes
        assert simulated(variant, seed, size_for(variant, Shape.CHAIN), FIFO).is_good
