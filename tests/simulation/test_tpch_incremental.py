"""TPC-H's queries kept from changes: refreshes as the benchmark has them, and changed master data.

`tests/unit/sql/test_tpch.py` compares what the whole queries mean with another engine. Here every
refresh must leave what the whole query gives, by the checker; and, at a larger scale, what DuckDB makes
of the query's own text.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from simulation.duckdb_oracle import duck_oracle
from simulation.rich_runs import NETWORKS, run
from simulation.tpch_refreshes import REFRESHES, refreshed, view
from unit.sql.test_tpch import require_close
from unit.sql.tpch import FOLDER, QUERIES
from viewkeeper.errors import UsageError
from viewkeeper.protocols.choice import choice_for
from viewkeeper.protocols.stores import SelfKeptView
from viewkeeper.simulator.run import judged
from viewkeeper.views.upkeep import Upkeep

SCALE = 5
TABLE = FOLDER / "maintenance.txt"


def outcome(path: Path) -> str:
    """One line of the table: the query, how it is kept, and why so."""
    try:
        choice = choice_for(view(path))
    except UsageError as error:
        return f"{path.stem}  refused      {error.message}"
    how = "incremental" if choice.is_incremental else "fallback   "
    kept = ", ".join(store.name for store in Upkeep(view(path)).stores) or "nothing"
    reason = f"keeps {kept}" if choice.is_incremental else "; ".join(choice.why)
    return f"{path.stem}  {how}  {reason}"


def test_every_query_is_incremental_or_the_table_says_why_not():
    table = "".join(f"{outcome(path)}\n" for path in QUERIES)
    sys.stdout.write(table)
    assert table == TABLE.read_text()
    assert table.count("  incremental  ") == 22


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_every_refresh_leaves_what_the_whole_query_gives(path):
    definition = view(path)
    assert Upkeep(definition).obstacles == ()
    different = 0
    for seed, network in enumerate(NETWORKS, 6):
        scenario = refreshed(definition, seed)
        world = run(scenario, seed, network)
        assert judged(SelfKeptView, seed, scenario, world).is_good
        different = max(different, len(set(world.states)))
    assert different > 1, "the refreshes change nothing, so this shows nothing"


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_every_refresh_leaves_what_duckdb_makes_of_the_text(path):
    scenario = refreshed(view(path), 3, SCALE)
    world = run(scenario, 3, NETWORKS[1])
    assert len(world.states) == REFRESHES + 1
    with duck_oracle(scenario, path) as oracle:
        before = world.claims[0]
        for cut, state in zip(world.claims, world.states, strict=True):
            for (source, number), (_, last) in zip(cut, before, strict=True):
                for transaction in scenario.scripts[source][last:number]:
                    oracle.commit(transaction)
            before = cut
            require_close(state.to_bag(), oracle.rows())
    assert len(set(world.states)) > 1, "the refreshes change nothing, so this shows nothing"


def test_a_refresh_that_is_missed_is_noticed():
    """The comparison fails where the view stays as it was."""
    path = QUERIES[0]
    scenario = refreshed(view(path), 3)
    world = run(scenario, 3, NETWORKS[0])
    with duck_oracle(scenario, path) as oracle:
        for script in scenario.scripts.values():
            for transaction in script:
                oracle.commit(transaction)
        require_close(world.states[-1].to_bag(), oracle.rows())
        with pytest.raises(AssertionError):
            require_close(world.states[0].to_bag(), oracle.rows())
