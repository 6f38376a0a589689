"""Several batches at the same cuts: every state is what it would be at cuts of its own."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from types import SimpleNamespace

from slices import seeds
from unit.live.live_world import LiveWorld
from viewkeeper.engine.integrator import Arrival
from viewkeeper.live.questions.shared_cuts import SharedCuts
from viewkeeper.live.questions.source_queries import Questions
from viewkeeper.protocols.messages import Reflected
from viewkeeper.simulator.generator import Size, random_scenario
from viewkeeper.spark.staged import Staging

SEEDS = seeds(120, least=20)


@dataclass
class Sharing(LiveWorld):
    """Begins a job at the cuts of the one before it, if they show its transactions; or whenever it likes."""

    heeds_visibility: bool = True
    shared: int = 0
    remembered: int = 0
    _last: Questions | None = None
    # Of each source the numbers that its cut shows.
    _shown_there: dict[str, set[int]] = field(default_factory=dict)

    def _job(self, batch: tuple[Arrival, ...], told: int, staging: Staging) -> SimpleNamespace:
        job = super()._job(batch, told, staging)
        is_visible = all(
            a.transaction.number in self._shown_there.get(a.transaction.source, ()) for a in batch
        )
        may_share = is_visible or not self.heeds_visibility
        if self._last is None or not may_share or self.rng.random() < 0.2:
            fresh = job.questions
            self._last = Questions.in_advance(fresh.cuts, staging, fresh.paces)
            self._shown_there = {
                source: {*range(1, shown.upto + 1), *shown.also}
                for source, shown in fresh.reflected.items()
            }
        else:
            self.shared += 1
            self._last = self._last.of_another_batch()
        applied = self._numbers(batch[-1].number)
        reflected = {
            source: Reflected(
                applied[source], also=frozenset(n for n in shown if n > applied[source])
            )
            for source, shown in self._shown_there.items()
        }
        self.remembered += len(self._last._remembered)
        keeps = self.rng.random() < 0.8
        questions = self._last.in_earnest(reflected, staging, remembers=keeps)
        job.questions, job.asking = questions, lambda: contextlib.nullcontext(questions)
        return job


def sharing(seed: int, *, heeds_visibility: bool = True) -> Sharing:
    scenario = random_scenario(seed, Size(transactions=14))
    return Sharing(scenario, scenario.definition, seed, heeds_visibility=heeds_visibility)


def test_every_state_is_the_same_at_cuts_that_batches_share():
    shared = remembered = 0
    for seed in range(SEEDS):
        world = sharing(seed)
        assert world.run(3) == world.states, seed
        shared += world.shared
        remembered += world.remembered
    assert shared > SEEDS
    assert remembered > SEEDS


def test_whoever_shares_cuts_that_do_not_show_the_batch_is_found_out():
    """Shows that the worlds above can tell."""
    wrong = 0
    for seed in range(SEEDS):
        world = sharing(seed, heeds_visibility=False)
        with contextlib.suppress(Exception):
            wrong += world.run(3) != world.states
    assert wrong


# -- who holds them --------------------------------------------------------------------------------


def held() -> tuple[SharedCuts, list[str]]:
    closed: list[str] = []
    stack = contextlib.ExitStack()
    stack.callback(closed.append, "closed")
    return SharedCuts(SimpleNamespace(cuts={}), stack), closed  # type: ignore[arg-type]


def test_cuts_are_closed_when_the_last_one_lets_go():
    cuts, closed = held()
    assert cuts.hold() is cuts
    cuts.let_go()
    assert not closed
    cuts.let_go()
    assert closed == ["closed"]
