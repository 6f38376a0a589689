"""One simulated run with several views: a painting algorithm, a seed, a verdict for each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.consistency import Verdict, check
from viewkeeper.consistency.histories import ViewStates
from viewkeeper.consistency.violation import as_document
from viewkeeper.merging.algorithm import MergeAlgorithm
from viewkeeper.merging.commit_order import ORDERS
from viewkeeper.merging.complete_n import CompleteN, block_end
from viewkeeper.merging.merge_groups import MergeGroups
from viewkeeper.merging.mixtures import Promise, algorithm_for
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.simulator.kernel.scheduling import PhasedScheduler, run_to_end
from viewkeeper.simulator.kernel.world import Commit, Network
from viewkeeper.simulator.merging.channels import Choice, Deliver, Refresh
from viewkeeper.simulator.merging.scenario import (
    MergeScenario,
    MergeSize,
    Painting,
    random_merge_scenario,
)
from viewkeeper.simulator.merging.world import MergeWorld, Watch
from viewkeeper.timeline import CutVector
from viewkeeper.views.level import Level

Choose = Callable[[Iterable[Promise], ViewUpdateTable], MergeAlgorithm]


@dataclass(frozen=True)
class MergeOptions:
    """Everything that a run depends on besides its seed.

    ``declared``: the merge process knows from the start which views transactions will tie; otherwise
    it finds out.
    """

    painting: Painting = Painting.SPA
    size: MergeSize = field(default_factory=MergeSize)
    order: str = "dependent-only"
    network: Network = field(default_factory=Network)
    keep_source_order: bool = True
    declared: bool = True
    choose: Choose = algorithm_for


@dataclass(frozen=True)
class MergeOutcome:
    """What a run was, and what the checker found for each group of views.

    ``torn`` lists global transactions that some state showed in part; ``broken_blocks`` the states
    that end inside a block, where whole blocks were promised.
    """

    seed: int
    views: dict[str, str]
    groups: tuple[tuple[str, ...], ...]
    verdicts: tuple[Verdict, ...]
    expected_levels: tuple[Level, ...]
    torn: tuple[str, ...]
    broken_blocks: tuple[int, ...]
    transactions: int
    # How many of the transactions changed a view.
    changing: int
    states: int
    messages: int

    @property
    def is_good(self) -> bool:
        """Every group reaches its level, and shows whole transactions and whole blocks only."""
        met = all(
            v.meets(level)
            for v, level in zip(self.verdicts, self.expected_levels, strict=True)
            if level > Level.CONVERGENT
        )
        met &= all(v.convergent for v in self.verdicts)
        return met and not self.torn and not self.broken_blocks

    def as_dict(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "views": self.views,
            "groups": [
                {
                    "views": list(group),
                    "level": str(verdict.level),
                    "expected_level": str(level),
                    "claims_hold": verdict.claims_hold,
                    "wrong_claim": as_document(verdict.wrong_claim),
                    "violation": as_document(verdict.violation),
                }
                for group, verdict, level in zip(
                    self.groups, self.verdicts, self.expected_levels, strict=True
                )
            ],
            "torn": list(self.torn),
            "broken_blocks": list(self.broken_blocks),
            "transactions": self.transactions,
            "changing": self.changing,
            "states": self.states,
            "messages": self.messages,
        }

    def __str__(self) -> str:
        found = [
            f"{', '.join(g)}: {v.level}, expected {e}" + ("" if v.meets(e) else f"\n{v.problem}")
            for g, v, e in zip(self.groups, self.verdicts, self.expected_levels, strict=True)
        ]
        return "\n".join([*found, f"torn {self.torn}, broken blocks {self.broken_blocks}"])


class MergeScheduler(PhasedScheduler):
    """Chooses at random among what could happen; some runs have a slow process."""

    def __init__(self, seed: int, world: MergeWorld) -> None:
        super().__init__(f"merge schedule {seed}")
        processes = [*world.sources, *world.managers, "integrator", "warehouse"]
        self._slow = self.random.choice(processes) if self.random.random() < 0.5 else None

    def choose(self, world: MergeWorld) -> Choice | None:
        return self.picked(world.choices(), lambda choice: self._weight(world, choice))

    def _weight(self, world: MergeWorld, choice: Choice) -> float:
        match choice:
            case Commit():
                return 3 * self.phase.value
            case Refresh():
                return 0.2
            case Deliver(index):
                envelope = world.on_the_way[index]
                return 0.05 if self._slow in (envelope.sender, envelope.to) else 1.0
            case _:
                return 0.5


def simulated_merge(
    seed: int,
    options: MergeOptions = MergeOptions(),
    *,
    search: bool = False,
    watch: Watch = lambda event, groups, commits: None,
) -> MergeOutcome:
    """Run one seed to its end and judge it; ``search`` ignores the cuts that the run claims."""
    scenario = random_merge_scenario(seed, options.painting, options.size)
    world = merge_world(scenario, options, watch)
    groups = world.groups.groups
    run_to_end(world, MergeScheduler(seed, world))
    return judged_merge(seed, world, groups, options, search=search)


def merge_world(
    scenario: MergeScenario,
    options: MergeOptions,
    watch: Watch = lambda event, groups, commits: None,
) -> MergeWorld:
    """A world in which nothing has happened yet."""
    ties = tuple(scenario.views_tied()) if options.declared else ()
    every = options.size.every if options.painting is Painting.COMPLETE_N else 1
    groups = MergeGroups(ORDERS[options.order], options.choose, ties)
    return MergeWorld(
        scenario,
        groups,
        options.network,
        every=every,
        keep_source_order=options.keep_source_order,
        watch=watch,
    )


def judged_merge(
    seed: int,
    world: MergeWorld,
    groups: tuple[tuple[str, ...], ...],
    options: MergeOptions,
    *,
    search: bool = False,
) -> MergeOutcome:
    """The verdict on a run that is over, for each of these groups of views."""
    scenario = world.scenario
    return MergeOutcome(
        seed=seed,
        views={view.name: view.manager for view in scenario.views},
        groups=groups,
        verdicts=tuple(_verdict(world, group, search=search) for group in groups),
        expected_levels=tuple(_expected(world, group, options) for group in groups),
        torn=tuple(_torn(world)),
        broken_blocks=tuple(_broken_blocks(world, groups)),
        transactions=sum(len(script) for script in scenario.scripts.values()),
        changing=_changing(world),
        states=len(world.states),
        messages=world.messages,
    )


def _verdict(world: MergeWorld, group: tuple[str, ...], *, search: bool) -> Verdict:
    definitions = {view.name: view.definition for view in world.scenario.views}
    histories = world.scenario.histories_of(group)
    states = [tuple(state[view] for view in group) for state in world.states]
    claims = [_cut(world, group, shown, histories.start) for shown in world.shown]
    return check([definitions[v] for v in group], histories, states, None if search else claims)


def _changing(world: MergeWorld) -> int:
    views = tuple(view.name for view in world.scenario.views)
    histories = world.scenario.histories_of(views)
    claims = [_cut(world, views, shown, histories.start) for shown in world.shown]
    definitions = [view.definition for view in world.scenario.views]
    return ViewStates(definitions, histories).number_changing(claims)


def _cut(
    world: MergeWorld, group: tuple[str, ...], shown: frozenset[int], start: CutVector
) -> CutVector:
    """How many of each source's transactions that concern the group are shown."""
    numbers = dict(start)
    for row in shown:
        transaction, views = world.rows[row]
        if not set(views).isdisjoint(group):
            numbers[transaction.source] += 1
    return CutVector.of(numbers)


def _expected(world: MergeWorld, group: tuple[str, ...], options: MergeOptions) -> Level:
    """The weakest manager decides, also of views that joined the group; blocks, batches and global
    transactions skip states."""
    members = world.groups.process_of(group[0]).table.columns
    promises = [v.promise for v in world.scenario.views if v.name in members]
    level = min(promise.level for promise in promises)
    skips = any(p.every > 1 for p in promises) or options.order == "batched"
    tied = any(
        (transaction.source, transaction.number) in world.scenario.ties
        for transaction, _ in world.rows.values()
    )
    return min(level, Level.STRONG) if skips or tied else level


def _torn(world: MergeWorld) -> list[str]:
    """Global transactions of which some state shows one part and not another."""
    rows: dict[str, set[int]] = {}
    for row, (transaction, views) in world.rows.items():
        tie = world.scenario.ties.get((transaction.source, transaction.number))
        if tie is not None and views:
            rows.setdefault(tie.id, set()).add(row)
    return [
        i for i, parts in rows.items() if any(0 < len(parts & s) < len(parts) for s in world.shown)
    ]


def _broken_blocks(world: MergeWorld, groups: tuple[tuple[str, ...], ...]) -> list[int]:
    """States that show a part of a block only, for the groups that step from block to block."""
    broken: set[int] = set()
    for group in groups:
        algorithm = world.groups.process_of(group[0]).algorithm
        if not isinstance(algorithm, CompleteN):
            continue
        blocks: dict[int, set[int]] = {}
        for row, (_, views) in world.rows.items():
            if not set(views).isdisjoint(group):
                blocks.setdefault(block_end(row, algorithm.every), set()).add(row)
        for index, shown in enumerate(world.shown):
            if any(0 < len(block & shown) < len(block) for block in blocks.values()):
                broken.add(index)
    return sorted(broken)
