"""Compensating queries: how a product of a source's relations differs when some of them differ.

Shared by protocols that ask for several relations of one source at once, where the error of an answer
can't be computed from changes alone. Works on any `Relation`; knows nothing of who asks or when.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from viewkeeper.protocols.messages import Part
from viewkeeper.timeline import Transaction, summed_changes
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import RelationName


def with_changes(
    assembly: Assembly, part: Part, change: Callable[[RelationName], Any]
) -> Iterator[Part]:
    """How a product differs when each relation it asks for has ``change`` added to it.

    (X ⊕ Δ_X) ⊗ (Y ⊕ Δ_Y) ⊖ X⊗Y: a product for each non-empty set of changed places.
    """
    changed = [a for a in part.asks if change(assembly.term.occurrence(a).name) is not None]
    for number in range(1, len(changed) + 1):
        for places in itertools.combinations(changed, number):
            given, covers = assembly.product(places, change, part.given, part.covers)
            asks = tuple(alias for alias in part.asks if alias not in places)
            yield Part(part.term, asks, given, covers)


def changes_of(transactions: Iterable[Transaction], sign: int = 1) -> Callable[[RelationName], Any]:
    """The sum of the transactions' changes by relation; None for those they do not touch."""
    total = summed_changes(transactions)
    return total.get if sign > 0 else {name: -rows for name, rows in total.items()}.get


def arranged(assembly: Assembly, rows: Any) -> Any:
    """The columns that the product has, in the order of the term."""
    present = set(rows.schema.names)
    names = [name for name in assembly.term.joined_schema.names if name in present]
    return rows.only(names)
