"""Drives the adaptation of a view's extent on live relations."""

from __future__ import annotations

from typing import Any

from viewkeeper.evolution.adaptation import Task, adapted
from viewkeeper.evolution.map_va import NotApplicable, plan
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.live.reading.contents import Reading
from viewkeeper.timeline import Cut
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.pruning import pruned


def adapted_extent(
    old: ViewDefinition,
    new: ViewDefinition,
    mapping: EvolutionMapping,
    extent: Any,
    reading: Reading,
) -> Any | None:
    """The new view's rows, from the old ones and what was asked of the sources; None when it must be
    computed anew.

    All is read as of the state that the extent belongs to, so nothing has changed in between.
    """
    narrow_old, narrow_new = pruned(old), pruned(new)
    try:
        plan(narrow_old, narrow_new, mapping)
    except NotApplicable:
        return None
    cut = Cut.start({*old.sources, *new.sources})
    task = Task(narrow_old, narrow_new, mapping, extent, cut, cut, lambda occurrence: None)
    process = adapted(task)
    try:
        read = next(process)
        while True:
            if read.keys is None:
                rows = reading.whole(read.name, read.schema)
            else:
                rows = reading.matching(read.name, read.schema, read.key_columns, read.keys)
            read = process.send(rows)
    except StopIteration as end:
        return end.value.extent
