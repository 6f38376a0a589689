"""The families of worlds in which the engine is tried, and one run in one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from viewkeeper.engine.machine import GroupMachine
from viewkeeper.errors import ViewkeeperError
from viewkeeper.simulator.engine.alterations import HARD
from viewkeeper.simulator.engine.generator import Mix, scenario
from viewkeeper.simulator.engine.judging import EngineVerdict, judged
from viewkeeper.simulator.engine.world import EngineWorld, Stuck

# What a run with a wrong engine may end with. A mistake in the wrong engine's own code is none of them.
FINDINGS = (ViewkeeperError, Stuck, LookupError, ValueError)
ALL = Mix(schema_changes=3, global_transactions=2, kills=3, failures=2, audits=2)
FAMILIES = {
    "plain": Mix(),
    "kills": Mix(kills=3, failures=3, audits=3),
    "global": Mix(global_transactions=4, kills=3, failures=2, audits=2),
    "schema": Mix(schema_changes=3, has_survivor=True, closing=6),
    "all": replace(ALL, has_survivor=True, closing=6),
    "keys": Mix(
        schema_changes=4, has_survivor=True, has_keys=True, kinds=HARD, audits=2, closing=6
    ),
    "bursts": Mix(
        schema_changes=3,
        has_survivor=True,
        has_keys=True,
        kinds=HARD,
        kills=3,
        comes_in_bursts=True,
        closing=6,
    ),
    "approvals": Mix(
        schema_changes=3, has_approvals=True, kinds=HARD, has_keys=True, kills=2, closing=6
    ),
    "replacements": Mix(
        schema_changes=4, has_survivor=True, has_replacements=True, kills=3, audits=2, closing=6
    ),
    "adaptations": Mix(
        views_max=6,
        has_survivor=True,
        schema_changes=4,
        has_replacements=True,
        has_keys=True,
        shows_keys=True,
        kinds=("drop", "drop", "drop", "rename", "drop column", "type", "rewrite"),
        kills=2,
        audits=2,
        closing=6,
    ),
    # What the knowledge file names is renamed, the run is killed, then it goes.
    "lineage": Mix(
        transactions=8,
        schema_changes=3,
        has_replacements=True,
        sequence=(("a", "rename"), ("a", "drop now")),
        kills=6,
        is_restless=True,
        closing=4,
    ),
    # What may stand for a relation gets other rows, then that one goes.
    "rewritten": Mix(
        transactions=8,
        schema_changes=2,
        has_replacements=True,
        sequence=(("c", "rewrite"), ("a", "drop now")),
        kills=2,
        audits=2,
        closing=4,
    ),
    "statements": Mix(
        schema_changes=4, has_keys=True, kinds=("several", "several", "rename"), kills=2, closing=4
    ),
    "outer joins": Mix(schema_changes=3, has_levels=True, kinds=("drop column",), closing=4),
    "periodic": Mix(transactions=24, views_max=6, is_periodic=True, is_calm=True),
    "blocks": Mix(transactions=20, views_max=3, kills=2, failures=2, has_blocks=True),
    "blocks and changes": Mix(
        transactions=20,
        schema_changes=2,
        global_transactions=3,
        kills=2,
        has_blocks=True,
        closing=6,
    ),
    "conditions": Mix(
        transactions=24, views_max=6, is_periodic=True, is_calm=True, has_conditions=True
    ),
    "conditions and changes": Mix(
        transactions=20, schema_changes=2, kills=3, failures=2, has_conditions=True, closing=6
    ),
    "slow": Mix(transactions=24, views_max=6, is_slow=True),
    "periods": Mix(
        transactions=20,
        views_max=6,
        schema_changes=2,
        global_transactions=2,
        kills=3,
        failures=2,
        audits=4,
        is_periodic=True,
        is_slow=True,
    ),
    "levels": Mix(global_transactions=2, kills=3, has_levels=True, has_keys=True, restarts=2),
    "new views": Mix(kills=3, failures=2, has_new_views=True, transactions=18),
    "everything": Mix(
        schema_changes=3,
        global_transactions=2,
        kills=3,
        failures=2,
        audits=2,
        restarts=2,
        kinds=HARD,
        has_keys=True,
        has_levels=True,
        has_approvals=True,
        has_replacements=True,
        has_new_views=True,
        comes_in_bursts=True,
        closing=6,
    ),
}


def played(
    family: str, seed: int, make: Callable[..., GroupMachine] = GroupMachine, world=EngineWorld
) -> EngineVerdict:
    """The verdict on one run; raises what the engine raised, or `Stuck`."""
    return played_in(FAMILIES[family], seed, make, world)


def played_in(
    mix: Mix, seed: int, make: Callable[..., GroupMachine] = GroupMachine, world=EngineWorld
) -> EngineVerdict:
    it = world(scenario(seed, mix), seed, make)
    it.run()
    return judged(it)


def is_found_out(family: str, seed: int, make=GroupMachine, world=EngineWorld) -> bool:
    """Whether the judge, or the engine itself, finds something wrong; a wrong engine that can't even run raises."""
    try:
        return bool(played(family, seed, make, world).problems)
    except FINDINGS:
        return True


def seeds_until_found(family: str, seeds: int, make=GroupMachine, world=EngineWorld) -> int | None:
    """How many seeds it takes to find out a wrong engine; None if none of them does."""
    found = (seed for seed in range(seeds) if is_found_out(family, seed, make, world))
    first = next(found, None)
    return None if first is None else first + 1
