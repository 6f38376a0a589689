"""The SWEEP paper's worked examples and claims."""

from __future__ import annotations

import pytest

from paper.figure5 import R1, R2, R3, SCENARIO, STATES, columns
from viewkeeper.algebra import Bag
from viewkeeper.protocols.messages import AskSource
from viewkeeper.protocols.naive import Naive
from viewkeeper.protocols.nested_sweep import NestedSweep
from viewkeeper.protocols.parallel_sweep import ParallelSweep
from viewkeeper.protocols.sweep import Sweep
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.kernel.world import WAREHOUSE, Commit, Deliver
from viewkeeper.simulator.run import judged
from viewkeeper.simulator.world import World
from viewkeeper.views.level import Level

UPDATES = (R2, R3, R1)


def deliver_all_notifications(world: World) -> None:
    """Commit and deliver ΔR2, ΔR3, ΔR1, in this order, before any question is answered."""
    for name in UPDATES:
        world.take(Commit(name.source))
        world.take(Deliver(name.source, WAREHOUSE))


def answer_next(world: World) -> tuple[AskSource, object]:
    """Let the one open question be answered; give it and its raw answer."""
    (source,) = [name for name in world.sources if world.channels[WAREHOUSE, name]]
    (question,) = world.channels[WAREHOUSE, source]
    world.take(Deliver(WAREHOUSE, source))
    answer = world.channels[source, WAREHOUSE][-1].answer
    world.take(Deliver(source, WAREHOUSE))
    return question, answer.answers[0]


def bags(world: World) -> list[Bag]:
    return [state.to_bag() for state in world.states]


def test_figure_5_one_update_after_the_other(embody):
    world = World(SCENARIO, Sweep, embody=embody)
    for name in UPDATES:
        world.take(Commit(name.source))
        world.take(Deliver(name.source, WAREHOUSE))
        answer_next(world)
        answer_next(world)
    assert bags(world) == STATES


def test_section_5_2_three_concurrent_updates_with_every_intermediate_view_change(embody):
    world = World(SCENARIO, Sweep, embody=embody)
    deliver_all_notifications(world)

    # ΔR2: the left sweep asks R1 with {+(3,5)}; R1's deletion interferes and is compensated.
    question, answer = answer_next(world)
    assert question.source == R1.source
    assert columns(question.parts[0].given, "r2.c", "r2.d") == {(3, 5): 1}
    assert columns(answer, "r1.a", "r2.c", "r2.d") == {(1, 3, 5): 1}
    # The right sweep asks R3 with the compensated {(1,3,5), (2,3,5)}.
    question, answer = answer_next(world)
    assert question.source == R3.source
    assert columns(question.parts[0].given, "r1.a", "r1.b", "r2.d") == {
        (1, 3, 5): 1,
        (2, 3, 5): 1,
    }
    assert columns(answer, "r1.a", "r1.b", "r2.d", "r3.f") == {(1, 3, 5, 6): 1, (2, 3, 5, 6): 1}
    assert bags(world) == STATES[:2]

    # ΔR3: R2 answers rightly, since ΔR2 is not concurrent with it; R1's answer lacks (2,3).
    question, answer = answer_next(world)
    assert question.source == R2.source
    assert columns(answer, "r2.c", "r2.d", "r3.f") == {(3, 7, 8): -1}
    question, answer = answer_next(world)
    assert question.source == R1.source
    assert columns(answer, "r1.a", "r1.b", "r2.d", "r3.f") == {(1, 3, 7, 8): -1}
    # After compensation ΔV is {−(1,3,7,8), −(2,3,7,8)}: both copies of (7,8) leave the view.
    assert bags(world) == STATES[:3]

    # ΔR1: nothing is concurrent any more.
    question, answer = answer_next(world)
    assert question.source == R2.source
    assert columns(answer, "r1.a", "r2.c", "r2.d") == {(2, 3, 5): -1, (2, 3, 7): -1}
    question, answer = answer_next(world)
    assert columns(answer, "r1.a", "r1.b", "r2.d", "r3.f") == {(2, 3, 5, 6): -1}
    assert bags(world) == STATES
    assert judged(Sweep, 0, SCENARIO, world, search=True).verdict.level is Level.COMPLETE


def test_the_same_concurrent_updates_without_compensation_leave_a_state_that_never_existed():
    world = World(SCENARIO, Naive)
    deliver_all_notifications(world)
    run_to_end(world, SeededScheduler(0))
    outcome = judged(Naive, 0, SCENARIO, world, search=True)
    assert outcome.verdict.level is Level.NONE
    assert bags(world)[1] == Bag.signed(STATES[0].schema, [((5, 6), 1), ((7, 8), 2)])


def test_section_5_3_parallel_sweep_asks_both_sides_at_once_and_all_updates_at_once():
    world = World(SCENARIO, ParallelSweep)
    deliver_all_notifications(world)
    # Two questions for ΔR2 (its two sides), one each for ΔR3 and ΔR1 (they have one side).
    assert sum(len(world.channels[WAREHOUSE, name]) for name in world.sources) == 4
    run_to_end(world, SeededScheduler(0))
    assert bags(world) == STATES


def test_section_6_1_an_interfering_update_is_dovetailed_into_one_composite_change():
    world = World(SCENARIO, NestedSweep)
    deliver_all_notifications(world)
    # ΔR2 asks R1 and meets ΔR1: it is absorbed, and swept over R2 alone, with R2 new.
    question, _ = answer_next(world)
    assert question.source == R1.source
    question, answer = answer_next(world)
    assert question.source == R2.source
    assert columns(question.parts[0].given, "r1.a", "r1.b") == {(2, 3): -1}
    assert columns(answer, "r1.a", "r2.c", "r2.d") == {(2, 3, 5): -1, (2, 3, 7): -1}
    # The rest of the way is shared. The partial is the sum of the paper's three terms:
    # R1 ⊗ ΔR2 ⊕ ΔR1 ⊗ R2 ⊕ ΔR1 ⊗ ΔR2.
    question, _ = answer_next(world)
    assert question.source == R3.source
    r1_x_delta_r2 = {(1, 3, 5): 1, (2, 3, 5): 1}
    delta_r1_x_r2 = {(2, 3, 7): -1}
    delta_r1_x_delta_r2 = {(2, 3, 5): -1}
    expected: dict[tuple[int, ...], int] = {}
    for term in (r1_x_delta_r2, delta_r1_x_r2, delta_r1_x_delta_r2):
        for row, count in term.items():
            expected[row] = expected.get(row, 0) + count
    given = question.parts[0].given
    assert columns(given, "r1.a", "r2.c", "r2.d") == {r: c for r, c in expected.items() if c}
    run_to_end(world, SeededScheduler(0))
    # One composite change for all three updates: R3's deletion interfered too and was absorbed.
    assert bags(world) == [STATES[0], STATES[3]]
    assert world.claims[-1].total == 3


@pytest.mark.parametrize("sources", [2, 3, 4, 5, 6])
def test_table_1_sweep_asks_exactly_n_minus_1_questions_per_update(sources):
    from viewkeeper.simulator.generator import Shape, Size
    from viewkeeper.simulator.run import simulated

    for protocol in (Sweep, ParallelSweep):
        for seed in range(5):
            outcome = simulated(protocol, seed, Size(sources, 12, Shape.CHAIN))
            assert outcome.queries_per_transaction == sources - 1
            assert outcome.verdict.level is Level.COMPLETE


@pytest.mark.thorough
def test_table_1_nested_sweep_never_asks_more_than_sweep_on_a_chain_and_less_when_updates_meet():
    from viewkeeper.simulator.generator import Shape, Size
    from viewkeeper.simulator.run import simulated

    size = Size(4, 20, Shape.CHAIN)
    nested = [simulated(NestedSweep, seed, size).messages["queries"] for seed in range(40)]
    assert max(nested) <= 20 * 3
    assert sum(nested) < 0.9 * 40 * 20 * 3
