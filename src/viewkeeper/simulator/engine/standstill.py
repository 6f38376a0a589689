"""Nothing can happen in a world any more: is everything shown, does it wait for people, or is it stuck?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.engine.machine import GroupMachine
from viewkeeper.simulator.engine.sources import position

if TYPE_CHECKING:
    from viewkeeper.simulator.engine.world import EngineWorld


def is_frozen(world: EngineWorld) -> bool:
    """Whether nothing moves before somebody has another mind about a schema change."""
    waiting = _unsettled(world)
    asked = [g for g in waiting if _waits_for_people(world, g)]
    # Groups that come to one end wait for each other, and their successor for all of them.
    others = [g for g in waiting if g not in asked]
    return bool(asked) and all(
        g.is_idle and (g.predecessors or g.intake.union is not None) for g in others
    )


def not_shown(world: EngineWorld) -> set[str]:
    """The views that wait, those included whose end waits for the filling of others."""
    moving = [g for g in world.engine.listening if g.is_over or _is_at_rest(g)]
    return {*world.ledger.views} - {view for group in moving for view in group.scope.views}


def _unsettled(world: EngineWorld) -> list[GroupMachine]:
    return [g for g in world.engine.listening if not (g.is_over or _is_at_rest(g))]


def _waits_for_people(world: EngineWorld, group: GroupMachine) -> bool:
    change = group.waits_for_decision
    return change is not None and world.people.has_rejected(change)


def is_over(world: EngineWorld) -> bool:
    """Whether everything is shown."""
    ends = {name: position(source.end) for name, source in world.sources.items()}
    return world.engine.has_applied(ends) and all(
        group.is_over or _is_at_rest(group) for group in world.engine.listening
    )


def _is_at_rest(group: GroupMachine) -> bool:
    return group.is_idle and group.is_settled and not group.predecessors


def described(world: EngineWorld) -> str:
    groups = [
        f"{g.number} {sorted(g.scope.views)} reached {g.reached} fed {g.intake.fed} "
        f"due {len(g.intake.due)} held {list(g.intake.held)} pending "
        f"{len(g.intake.integrator.pending)} jobs {list(g.jobs.by_row)} end {g.intake.end}"
        for g in world.engine.listening
    ]
    ends = {name: source.end for name, source in world.sources.items()}
    return f"sources at {ends}; groups: {'; '.join(groups)}"
