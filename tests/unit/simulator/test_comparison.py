"""What Table 1 of the SWEEP paper says, counted."""

from __future__ import annotations

import itertools

import pytest

from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.comparison import CLAIMS, COMPARED, Interference, cost, reached_level

INSERTIONS, DELETIONS = Interference.INSERTIONS, Interference.DELETIONS


@pytest.mark.parametrize("interference", list(Interference))
@pytest.mark.parametrize("concurrent", [0, 1, 3, 6])
@pytest.mark.parametrize("sources", [2, 4, 6])
def test_sweep_asks_every_other_source_once_per_update_whatever_interferes(
    sources: int, concurrent: int, interference: Interference
) -> None:
    measured = cost(PROTOCOLS["sweep"], sources, concurrent, interference)
    assert measured.updates == concurrent + 1
    assert measured.queries_per_update == sources - 1
    assert measured.states == measured.updates


def test_c_strobe_asks_factorially_many_queries_when_rows_it_needs_are_deleted() -> None:
    # With k relations left to ask and a deletion in each: k messages, and for each of the k a query
    # with its deleted rows in their place, over the other k − 1.
    expected, measured, total = [], [], 0
    for k in range(1, 6):
        total = k * (1 + total)
        expected.append(total)
        measured.append(cost(PROTOCOLS["c-strobe"], k + 1, k, DELETIONS).queries)
    assert measured == expected == [1, 4, 15, 64, 325]


def test_c_strobe_handles_concurrent_insertions_by_their_keys() -> None:
    assert cost(PROTOCOLS["c-strobe"], 4, 3, INSERTIONS).queries_per_update == 3


def test_strobe_asks_nobody_about_deletions() -> None:
    assert cost(PROTOCOLS["strobe"], 4, 3, DELETIONS).queries == 3


@pytest.mark.parametrize("concurrent", [1, 2, 3, 6])
def test_nested_sweep_shares_the_way_among_interfering_updates(concurrent: int) -> None:
    nested = cost(PROTOCOLS["nested-sweep"], 5, concurrent, INSERTIONS)
    assert nested.queries < cost(PROTOCOLS["sweep"], 5, concurrent, INSERTIONS).queries
    assert nested.states == 1


def test_nested_sweep_costs_what_sweep_does_when_nothing_interferes() -> None:
    assert cost(PROTOCOLS["nested-sweep"], 5, 0, INSERTIONS).queries == 4


def test_the_size_of_ecas_queries_grows_quadratically_with_what_interferes() -> None:
    sizes = [
        cost(PROTOCOLS["eca"], 3, c, INSERTIONS, relations_changed=2).parts for c in range(0, 12, 2)
    ]
    steps = [later - earlier for earlier, later in itertools.pairwise(sizes)]
    # Each pair of updates adds a constant more than the pair before it.
    growth = {later - earlier for earlier, later in itertools.pairwise(steps)}
    assert growth == {2}


def test_eca_sends_one_query_per_update() -> None:
    assert cost(PROTOCOLS["eca"], 5, 6, DELETIONS).queries_per_update == 1


@pytest.mark.parametrize("name", COMPARED)
def test_each_protocol_reaches_its_papers_level_and_no_more(name: str) -> None:
    expected = CLAIMS[name].level if name in CLAIMS else PROTOCOLS[name].level
    assert reached_level(PROTOCOLS[name], range(1, 13)) == expected
