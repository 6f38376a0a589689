"""Which views a protocol refuses, and how it says so; that it forgets what it need not remember."""

import pytest

from paper.figure5 import DEFINITION, SCENARIO
from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Aggregate, Column, Output
from viewkeeper.algebra.types import DOUBLE
from viewkeeper.errors import UsageError
from viewkeeper.protocols.incremental import IncrementalView
from viewkeeper.protocols.registry import PROTOCOLS, protocol_named
from viewkeeper.simulator.generator import Size, random_scenario
from viewkeeper.simulator.kernel.scheduling import SeededScheduler
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.world import World
from viewkeeper.views import Grouping, Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.definition import LOCAL, Step


@pytest.mark.parametrize("name", ["strobe", "c-strobe"])
def test_protocols_that_need_keys_refuse_views_without_them(name):
    with pytest.raises(UsageError) as caught:
        PROTOCOLS[name](DEFINITION, SCENARIO.extent)
    assert caught.value.code == "protocol-not-applicable"
    assert "r1 has no key" in caught.value.detail
    assert "sweep" in caught.value.hint


def test_eca_refuses_several_sources():
    with pytest.raises(UsageError, match="reads 3 sources"):
        PROTOCOLS["eca"](DEFINITION, SCENARIO.extent)


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name != "recompute"])
def test_every_protocol_but_recompute_refuses_a_view_that_groups(name):
    term = random_scenario(1, Size(keyed=True, one_source=True)).definition.terms[0]
    grouped = Term(term.occurrences, term.predicates, (), Grouping((), (Aggregate("n", "count"),)))
    keyed = Term(term.occurrences, term.predicates, term.outputs, grouped.grouping)
    with pytest.raises(UsageError, match="groups or removes duplicates"):
        PROTOCOLS[name](ViewDefinition("v", (keyed,)), SCENARIO.extent)


def test_an_unknown_protocol_is_answered_with_the_nearest_name():
    with pytest.raises(UsageError) as caught:
        protocol_named("swep")
    assert "did you mean sweep?" in caught.value.hint


@pytest.mark.parametrize("name", ["sweep", "nested-sweep", "parallel-sweep", "recompute"])
def test_a_protocol_at_rest_remembers_no_transactions(name):
    for seed in range(20):
        scenario = random_scenario(seed, Size(transactions=12))
        world = World(scenario, PROTOCOLS[name], Network(fifo=False, inversions=True))
        scheduler = SeededScheduler(seed)
        while (choice := scheduler.choose(world)) is not None:
            world.take(choice)
        assert len(world.protocol.recent) == 0


@pytest.mark.thorough
def test_nested_sweep_falls_back_to_sweep_when_it_has_absorbed_enough(monkeypatch):
    from viewkeeper.protocols.nested_sweep import NestedSweep
    from viewkeeper.simulator.run import judged

    def widest(limit: int) -> int:
        monkeypatch.setattr(NestedSweep, "absorbed_max", limit)
        widest = 0
        for seed in range(30):
            scenario = random_scenario(seed, Size(transactions=12))
            world = World(scenario, NestedSweep)
            scheduler = SeededScheduler(seed)
            while (choice := scheduler.choose(world)) is not None:
                world.take(choice)
            steps = zip(world.claims, world.claims[1:], strict=False)
            widest = max(widest, *(b.total - a.total for a, b in steps))
            assert judged(NestedSweep, seed, scenario, world).is_good
        return widest

    assert widest(16) > 3
    assert widest(3) == 3
    assert widest(1) == 1


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name != "recompute"])
def test_every_protocol_but_recompute_refuses_a_view_with_steps(name):
    term = random_scenario(1, Size(keyed=True, one_source=True)).definition.terms[0]
    step = Step(RelationName(LOCAL, "step"), (term,))
    with pytest.raises(UsageError) as refused:
        PROTOCOLS[name](ViewDefinition("v", (term,), steps=(step,)), Bag(term.schema))
    assert refused.value.code == "view-not-linear"


def test_the_incremental_view_refuses_sums_of_doubles_and_says_why():
    schema = Schema.of(x=DOUBLE)
    rows = Occurrence("o", RelationName("s", "r"), schema)
    grouping = Grouping((), (Aggregate("total", "sum", Column("o.x")),))
    term = Term((rows,), (), (Output("total", Column("total")),), grouping)
    with pytest.raises(UsageError, match="over doubles") as refused:
        IncrementalView(ViewDefinition("v", (term,)), Bag(term.schema))
    assert refused.value.code == "not-incremental"
