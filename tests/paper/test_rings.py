"""Rings (2002): the worked examples, the claims about cost, and what the printed figures get wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.consistency import check
from viewkeeper.errors import InvariantViolated, UsageError
from viewkeeper.protocols.messages import InstallChange
from viewkeeper.protocols.quiescent_ring import QuiescentRing, QuiescentWarehouse, Refresh
from viewkeeper.protocols.ring import Ring, RingWarehouse
from viewkeeper.protocols.ring_machines import RingSystem
from viewkeeper.protocols.ring_messages import (
    Action,
    Event,
    IncrementArrived,
    PassToken,
    TokenArrived,
    TokenRequested,
)
from viewkeeper.protocols.ring_terms import RingTerms, TermsNode, TermsWarehouse
from viewkeeper.protocols.tokens import Increment, LocalData, Token
from viewkeeper.simulator.generator import Shape, Size
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.kernel.world import Commit, Deliver
from viewkeeper.simulator.rings.costs import Lockstep, chain_scenario, ring_costs, ring_latencies
from viewkeeper.simulator.rings.run import (
    RingOptions,
    simulated_ring,
)
from viewkeeper.simulator.rings.world import MakeSystem, RingWorld, explored
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.level import Level

SCHEMA = Schema.of(a=INTEGER, b=INTEGER)
ROW = Bag.of(SCHEMA, [(0, 0)])


def scenario_with(*updates: int) -> Scenario:
    """A chain with one source for each number; each commits that many updates."""
    listed = [source for source, count in enumerate(updates) for _ in range(count)]
    return chain_scenario(len(updates), listed)


def only_token(world: RingWorld) -> Token:
    (token,) = world.tokens
    return token


def next_arrival(world: RingWorld, kind: type = object) -> Deliver:
    """The first message of that kind that could arrive."""
    return next(
        choice
        for choice in world.choices()
        if isinstance(choice, Deliver)
        and isinstance(world.channels[choice.sender, choice.to][choice.index], kind)
    )


# -- section 4.2, Figure 1 -----------------------------------------------------------------------


def test_without_concurrency_the_entry_meets_one_more_source_at_every_hop() -> None:
    world = RingWorld(scenario_with(1, 0, 0), RingOptions("ring").system)
    world.take(Commit("s01"))
    covered = []
    for _ in range(3):
        world.take(next_arrival(world))
        entry = only_token(world).entry("s01")
        assert entry is not None
        covered.append(sorted(entry.covers))
    assert covered == [["x1"], ["x1", "x2"], ["x1", "x2", "x3"]]
    world.take(next_arrival(world))  # back at its own node: now it is a change of the view
    assert world.counters["increments"] == 1
    assert only_token(world).is_empty


def test_concurrent_updates_give_the_common_error_term_to_exactly_one_of_them() -> None:
    world = RingWorld(scenario_with(1, 1), RingOptions("ring").system)
    world.take(Commit("s01"))
    world.take(Commit("s02"))
    run_to_end(world, SeededScheduler(0))
    counts = [state.count((0, 0)) for state in world.states]
    # x1 ⊗ x2 = 1, then δ1 ⊗ x2 = 1, then (x1 ⊕ δ1) ⊗ δ2 = 2: δ1 ⊗ δ2 is counted once.
    assert counts == [1, 2, 4]


def test_increments_that_overtake_each_other_are_installed_in_the_order_of_their_numbers() -> None:
    warehouse = RingWarehouse()
    first, second = (
        Increment(0, number, "s", number, ROW, CutVector.of({"s": number})) for number in (1, 2)
    )
    assert warehouse.step(IncrementArrived(second)) == ()
    installed = warehouse.step(IncrementArrived(first))
    assert [action.cut["s"] for action in installed if isinstance(action, InstallChange)] == [1, 2]


class PrintedNumbering(RingWarehouse):
    """Figure 1 with next_sn starting at 0, while the first increment is given number 1."""

    first_number = 0


def test_with_the_printed_start_of_next_sn_the_first_increment_waits_for_ever() -> None:
    def printed(*given: Any) -> RingSystem:
        return replace(Ring.system(*given), warehouse=PrintedNumbering())

    def run(make_system: MakeSystem) -> None:
        world = RingWorld(scenario_with(1, 1), make_system)
        world.take(Commit("s01"))
        clock = Lockstep(world)
        for _ in range(50):
            clock.tick()
        assert world.claims[-1]["s01"] == 1, "the update never reached the view"

    run(Ring.system)
    with pytest.raises(AssertionError, match="never reached"):
        run(printed)


class CountsTwice(LocalData):
    """Joins its data *with* the changes it puts in: the error term in both entries."""

    def advance(self, transactions: Any) -> None:
        pass

    def change(self, term: int, transactions: Any) -> Any:
        change = super().change(term, transactions)
        super().advance(transactions)
        return change


def test_the_invariants_catch_a_node_that_joins_its_changes_into_other_entries() -> None:
    def broken(definition: Any, extent: Any, contents: Any) -> RingSystem:
        system = Ring.system(definition, extent, contents)
        for source, node in system.nodes.items():
            node.data = CountsTwice(definition, source, contents)
        return system

    world = RingWorld(scenario_with(1, 1), broken)
    world.take(Commit("s01"))
    world.take(Commit("s02"))
    with pytest.raises(InvariantViolated, match="not what the serial order makes of its change"):
        run_to_end(world, SeededScheduler(0))


# -- latency ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sources", [2, 3, 5, 8])
def test_the_basic_ring_takes_two_turns_and_the_increment(sources: int) -> None:
    one, everything, _, _ = ring_costs([sources])
    # The paper's 2n are the two turns; the message that carries the increment is one more.
    assert one.delays_worst == one.paper_delays + 1 == 2 * sources + 1
    assert everything.delays_worst == one.delays_worst
    assert one.idle_messages_per_delay == 1
    # The token reaches the node after 1 to n hops, goes round once, and goes on beside the increment.
    assert one.messages_mean == (sources + 1) / 2 + sources + 2
    # All share the two turns, and each has its increment.
    assert everything.messages_mean == 2 * sources + 1 + sources


@pytest.mark.parametrize("sources", [2, 3, 5, 8])
def test_the_quiescent_ring_needs_n_visits_for_one_update_and_nothing_when_idle(
    sources: int,
) -> None:
    _, _, one, everything = ring_costs([sources])
    assert one.visits_worst == one.paper_delays == sources
    # In the star a visit is two messages, and the request is one: that is what a clock would see.
    assert one.delays_worst == one.messages_mean == 2 * sources + 1
    assert everything.visits_worst == 2 * sources - 1 <= everything.paper_delays
    # A request of each source, and two messages for each visit.
    assert everything.messages_mean == sources + 2 * everything.visits_worst
    assert one.idle_messages_per_delay == everything.idle_messages_per_delay == 0


def test_under_load_an_update_of_the_basic_ring_never_waits_longer_than_two_turns() -> None:
    busy = ring_latencies(RingOptions("ring"), 0, sources=4, updates=40, commits_per_delay=2)
    assert len(busy.delays) == 40
    assert max(busy.delays) <= 2 * 4 + 1
    # Gathering shares turns among updates: far fewer messages than turns of their own would take.
    assert busy.messages < 40 * 4


# -- section 4.4, Figure 2 as printed ------------------------------------------------------------

LOOPS_MAX = 100


class LoopsForEver(Exception):
    """A printed loop does not end."""


class PrintedStar(QuiescentWarehouse):
    """Figure 2 with its boolean pending; each slip is repaired unless it is asked for."""

    advances = True
    tests_pending_of_y = True
    finds_the_holder = True
    clears_on_return = False

    def __init__(self, definition: ViewDefinition) -> None:
        super().__init__(definition)
        self._pending = dict.fromkeys(self.ring, False)

    def _requested(self, source: str, upto: int) -> Iterator[Action]:
        if self._holder is None:
            yield from self._sent_on(Token.empty(0, self.ring, self._cut), source)
        else:
            self._pending[source] = True

    def _returned(self, token: Token) -> Iterator[Action]:
        if self.clears_on_return:
            self._pending[str(self._holder)] = False
        yield from super()._returned(token)

    def _sent_on(self, token: Token, to: str | None) -> Iterator[Action]:
        if to is not None and not self.clears_on_return:
            self._pending[to] = False  # line 27
        yield from super()._sent_on(token, to)

    def _next_holder(self, previous: str) -> str | None:
        candidate = previous
        for _ in range(LOOPS_MAX):
            candidate = self.succ(candidate if self.advances else previous)  # line 33
            waits = self._pending[candidate if self.tests_pending_of_y else previous]
            if candidate == previous or waits:
                break
        else:
            raise LoopsForEver
        if candidate == previous:
            return previous if self.finds_the_holder and self._pending[previous] else None
        return candidate


class NeverAdvances(PrintedStar):
    advances = False


class TestsAnotherNode(PrintedStar):
    __test__ = False
    tests_pending_of_y = False


class OverlooksTheHolder(PrintedStar):
    finds_the_holder = False


class ClearsOnReturn(PrintedStar):
    clears_on_return = True


def star(warehouse: Callable[[ViewDefinition], QuiescentWarehouse]) -> MakeSystem:
    def system(definition: ViewDefinition, extent: Any, contents: Any) -> RingSystem:
        return replace(
            QuiescentRing.system(definition, extent, contents), warehouse=warehouse(definition)
        )

    return system


EVERY_INTERLEAVING = [(1, 1), (2, 1), (2, 2)]


@pytest.mark.parametrize("updates", EVERY_INTERLEAVING)
@pytest.mark.parametrize("one_at_a_time", [False, True])
@pytest.mark.thorough
def test_in_every_interleaving_of_two_nodes_all_comes_to_rest_and_nothing_is_left_out(
    updates: tuple[int, int], one_at_a_time: bool
) -> None:
    options = RingOptions("quiescent-ring", one_at_a_time)
    exploration = explored(RingWorld(scenario_with(*updates), options.system))
    assert exploration.worlds > 50
    assert exploration.ends >= 1


def test_line_33_as_printed_does_not_end_when_the_successor_does_not_wait() -> None:
    scenario = scenario_with(1, 0, 1)
    with pytest.raises(LoopsForEver):
        explored(RingWorld(scenario, star(NeverAdvances)))
    explored(RingWorld(scenario, star(PrintedStar)))
    explored(RingWorld(scenario, star(QuiescentWarehouse)))


def test_line_33_that_tests_pending_of_another_node_leaves_a_change_out_for_ever() -> None:
    scenario = scenario_with(1, 1)
    with pytest.raises(InvariantViolated, match="somebody waits for ever"):
        explored(RingWorld(scenario, star(TestsAnotherNode)))
    explored(RingWorld(scenario, star(QuiescentWarehouse)))


def test_line_34_as_printed_leaves_the_change_of_the_last_holder_out_for_ever() -> None:
    scenario = scenario_with(1, 1)
    with pytest.raises(InvariantViolated, match="somebody waits for ever"):
        explored(RingWorld(scenario, star(OverlooksTheHolder)))
    explored(RingWorld(scenario, star(QuiescentWarehouse)))


def test_a_request_that_is_forgotten_when_the_token_returns_leaves_a_change_out_for_ever() -> None:
    scenario = scenario_with(2, 1)
    with pytest.raises(InvariantViolated, match="somebody waits for ever"):
        explored(RingWorld(scenario, star(ClearsOnReturn)))
    explored(RingWorld(scenario, star(QuiescentWarehouse)))


def test_a_request_overtaken_by_the_token_brings_it_out_again_only_with_the_printed_flag() -> None:
    def visits(make_system: MakeSystem) -> int:
        world = RingWorld(scenario_with(1, 1), make_system)
        world.take(Commit("s01"))
        world.take(next_arrival(world))  # its request; the token is created and sent to s01
        world.take(Commit("s02"))  # its request is slow ...
        while any(isinstance(event, TokenArrived) for event in world.on_the_way):
            # ... the token has been at s02 meanwhile
            world.take(next_arrival(world, TokenArrived))
        assert [type(event) for event in world.on_the_way] == [TokenRequested]
        before = world.counters["visits"]
        run_to_end(world, SeededScheduler(0))
        return world.counters["visits"] - before

    assert visits(star(PrintedStar)) == 1
    assert visits(star(QuiescentWarehouse)) == 0


# -- section 5 --------------------------------------------------------------------------------------


def term_over(*numbers: int) -> Term:
    """x_i ⊗ x_j ⊗ …, one row meeting every row."""
    occurrences = tuple(Occurrence(f"x{n}", RelationName(f"s{n}", "r"), SCHEMA) for n in numbers)
    predicates = tuple(
        Comparison("=", Column(left.qualified("b")), Column(right.qualified("a")))
        for left, right in itertools.pairwise(occurrences)
    )
    outputs = (
        Output("a", Column(f"x{numbers[0]}.a")),
        Output("b", Column(f"x{numbers[-1]}.b")),
    )
    return Term(occurrences, predicates, outputs)


def section_5() -> Scenario:
    """(x1 ⊗ x2 ⊗ x3 ⊗ x5) ⊕ (x1 ⊗ x2 ⊗ x4) ⊕ (x3 ⊗ x4), of which x4 alone is updated."""
    definition = ViewDefinition("f", (term_over(1, 2, 3, 5), term_over(1, 2, 4), term_over(3, 4)))
    initial = dict.fromkeys(definition.relations, ROW)
    scripts: dict[str, tuple[Transaction, ...]] = dict.fromkeys(definition.sources, ())
    scripts["s4"] = (Transaction("s4", 1, ((RelationName("s4", "r"), ROW),)),)
    return Scenario(definition, initial, scripts)


class AddsSeparately(TermsWarehouse):
    """The literal variant that section 5 warns of: each increment as soon as its turn has come."""

    def _next_change(self) -> tuple[Increment, ...] | None:
        heads = (self._early.get((term, number)) for term, number in self._next.items())
        return next(((head,) for head in heads if head is not None), None)


def terms(
    warehouse: type[TermsWarehouse] = TermsWarehouse, node: type[TermsNode] = TermsNode
) -> MakeSystem:
    def system(definition: ViewDefinition, extent: Any, contents: Any) -> RingSystem:
        made = RingTerms.system(definition, extent, contents)
        nodes = {source: node(definition, source, contents) for source in made.nodes}
        nothing = extent - extent
        return replace(made, nodes=nodes, warehouse=warehouse(definition, nothing))

    return system


def level_of(scenario: Scenario, world: RingWorld) -> Level:
    states = [(state,) for state in world.states]
    return check([scenario.definition], scenario.histories, states).level


@pytest.mark.parametrize("seed", range(5))
def test_a_change_in_two_terms_becomes_visible_in_both_at_once(seed: int) -> None:
    scenario = section_5()
    world = RingWorld(scenario, RingTerms.system)
    run_to_end(world, SeededScheduler(seed))
    assert [state.count((0, 0)) for state in world.states] == [3, 5]
    assert level_of(scenario, world) is Level.COMPLETE


@pytest.mark.parametrize("seed", range(5))
def test_adding_the_increments_separately_shows_a_state_that_never_was(seed: int) -> None:
    scenario = section_5()
    world = RingWorld(scenario, terms(AddsSeparately))
    run_to_end(world, SeededScheduler(seed))
    assert [state.count((0, 0)) for state in world.states] == [3, 4, 5]
    assert level_of(scenario, world) is Level.CONVERGENT


class KeepsEveryToken(TermsNode):
    """Keeps any token it can use, in no particular order."""

    def _token_arrived(self, token: Token) -> Iterator[Action]:
        if not self._queue:
            yield from self._visited(token, ())
            return
        self._kept[token.term] = token
        if len(self._kept) == len(self.data.assemblies):
            taken = self._taken()
            for term in sorted(self._kept):
                yield from self._visited(self._kept.pop(term), taken)
            self.data.advance(taken)


def test_two_nodes_that_keep_any_token_wait_for_each_other_for_ever() -> None:
    definition = ViewDefinition("f", (term_over(1, 2), term_over(2, 1)))
    scripts = {
        source: (Transaction(source, 1, ((RelationName(source, "r"), ROW),)),)
        for source in ("s1", "s2")
    }
    scenario = Scenario(definition, dict.fromkeys(definition.relations, ROW), scripts)

    def run(make_system: MakeSystem) -> RingWorld:
        world = RingWorld(scenario, make_system)
        world.take(Commit("s1"))
        world.take(Commit("s2"))
        run_to_end(world, SeededScheduler(1))
        return world

    with pytest.raises(InvariantViolated, match="somebody waits for ever"):
        run(terms(node=KeepsEveryToken))
    assert level_of(scenario, run(terms())) >= Level.STRONG


# -- what a ring refuses, and events it has no business with ------------------------------------


@pytest.mark.parametrize("protocol", [Ring, QuiescentRing])
def test_a_ring_for_one_term_refuses_a_view_of_several(protocol: Any) -> None:
    scenario = section_5()
    with pytest.raises(UsageError, match="3 terms") as refusal:
        protocol.system(scenario.definition, scenario.extent, scenario.initial)
    assert "ring-terms" in refusal.value.hint


def test_one_update_at_a_time_is_refused_where_the_warehouse_drives_the_refresh() -> None:
    options = RingOptions("quiescent-ring", one_at_a_time=True, refresh=Refresh.PERIODIC)
    with pytest.raises(UsageError, match="can't show every update"):
        RingWorld(scenario_with(1, 1), options.system)


def test_a_view_that_removes_duplicates_is_refused() -> None:
    scenario = section_5()
    distinct = replace(scenario.definition.terms[0], distinct=True)
    definition = ViewDefinition("f", (distinct,))
    with pytest.raises(UsageError, match="groups or removes duplicates"):
        RingTerms.system(definition, scenario.extent, scenario.initial)


@pytest.mark.parametrize("event", [TokenRequested("s01", 1), IncrementArrived(None)])  # type: ignore[arg-type]
def test_a_node_that_gets_a_message_for_the_warehouse_says_so(event: Event) -> None:
    scenario = scenario_with(1, 1)
    for system in (Ring.system, QuiescentRing.system, RingTerms.system):
        made = system(scenario.definition, scenario.extent, scenario.initial)
        with pytest.raises(InvariantViolated, match="got"):
            made.nodes["s01"].step(event)


def test_the_token_of_a_quiescent_ring_is_created_on_request_and_destroyed_afterwards() -> None:
    world = RingWorld(scenario_with(1, 0, 0), RingOptions("quiescent-ring").system)
    assert world.tokens == ()
    world.take(Commit("s01"))
    world.take(next_arrival(world))
    assert isinstance(only_token(world), Token)
    run_to_end(world, SeededScheduler(0))
    assert world.tokens == ()
    assert world.on_the_way == []


def test_a_node_may_wait_until_several_updates_have_gathered() -> None:
    def patient(definition: ViewDefinition, extent: Any, contents: Any) -> RingSystem:
        return QuiescentRing.system(definition, extent, contents, updates_per_request=2)

    world = RingWorld(scenario_with(2, 0), patient)
    world.take(Commit("s01"))
    assert world.on_the_way == []
    world.take(Commit("s01"))
    run_to_end(world, SeededScheduler(0))
    assert world.counters["requests"] == 1
    assert [state.count((0, 0)) for state in world.states] == [1, 3]


def test_one_update_at_a_time_reaches_every_state_where_gathering_skips_some() -> None:
    size = Size(sources=3, transactions=8, shape=Shape.CHAIN)
    gathered = [simulated_ring(RingOptions("ring"), seed, size, search=True) for seed in range(12)]
    single = [
        simulated_ring(RingOptions("ring", one_at_a_time=True), seed, size, search=True)
        for seed in range(12)
    ]
    assert {outcome.verdict.level for outcome in single} == {Level.COMPLETE}
    assert Level.STRONG in {outcome.verdict.level for outcome in gathered}


def test_a_pass_of_the_token_names_the_next_source_on_the_ring() -> None:
    scenario = scenario_with(0, 0, 0)
    system = Ring.system(scenario.definition, scenario.extent, scenario.initial)
    (start,) = system.tokens
    stops = [start.to]
    token = start.token
    for _ in range(3):
        (action,) = system.nodes[stops[-1]].step(TokenArrived(token))
        assert isinstance(action, PassToken)
        stops.append(action.to)
        token = action.token
    assert stops == ["s01", "s02", "s03", "s01"]
