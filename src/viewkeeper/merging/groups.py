"""Views that have nothing to do with each other, told apart.

Paper: MVC (1997), section 6.1. Views that share no relation can't contradict each other, so each such
group has a merge process of its own, and a slow view delays only its group. Section 6.2 adds: a
transaction that writes relations of two groups makes them one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping


def partition(
    views: Mapping[str, Iterable[Hashable]], ties: Iterable[Iterable[str]] = ()
) -> tuple[tuple[str, ...], ...]:
    """Views in groups: two are together if they share a relation or a tie, directly or by others.

    ``views`` gives the relations that each view reads, ``ties`` sets of views that transactions have
    been seen to change together. Groups and their views are in the order of ``views``.
    """
    root = {view: view for view in views}

    def find(view: str) -> str:
        while root[view] != view:
            root[view] = root[root[view]]
            view = root[view]
        return view

    reader: dict[Hashable, str] = {}
    for view, relations in views.items():
        for relation in relations:
            root[find(view)] = find(reader.setdefault(relation, view))
    for tie in ties:
        known = [view for view in tie if view in root]
        for view in known[1:]:
            root[find(view)] = find(known[0])
    groups: dict[str, list[str]] = {}
    for view in views:
        groups.setdefault(find(view), []).append(view)
    return tuple(tuple(group) for group in groups.values())
