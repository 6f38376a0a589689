"""How much a changed row may do to a view, from about how large relations are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from viewkeeper.views.definition import RelationName


def fan_outs(
    views: Iterable[Collection[RelationName]], sizes: Mapping[RelationName, int]
) -> dict[RelationName, float]:
    """About how many rows of a view a row of each relation that it reads is in; at least one.

    As if the largest relation of a view met each of the others once per row, as a fact table does.
    """
    found: dict[RelationName, float] = {}
    for relations in views:
        known = {name: max(sizes[name], 1) for name in relations if name in sizes}
        largest = max(known.values(), default=1)
        for name, rows in known.items():
            found[name] = max(found.get(name, 1.0), largest / rows)
    return found
