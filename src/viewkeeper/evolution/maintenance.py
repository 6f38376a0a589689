"""View maintenance (VM): the change of a view that one data update makes.

Paper: DyDa, section 5.2.2, with SWEEP as the algorithm. Because the query engine corrects every answer
to the cut that is wanted, no compensation is left to do here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewkeeper.evolution.reading import Process, swept
from viewkeeper.timeline import Cut
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import Occurrence, ViewDefinition

# What an occurrence's relation changed by, by the view's names; None when it did not.
ChangeOf = Callable[[Occurrence], Any | None]


def maintained(
    definition: ViewDefinition, change_of: ChangeOf, before: Cut, after: Cut
) -> Process[Any | None]:
    """The view's change between two cuts; None when there is none. Linear terms only."""
    total = None
    for term in definition.terms:
        assembly = Assembly(term)
        part = yield from swept(assembly, changes_at(assembly, change_of), before, after)
        if part is not None:
            total = part if total is None else total + part
    return total


def changes_at(assembly: Assembly, change_of: ChangeOf) -> dict[str, Any]:
    """The changes by alias, of those occurrences that have one."""
    found = {o.alias: change_of(o) for o in assembly.term.occurrences}
    return {alias: change for alias, change in found.items() if change is not None}
