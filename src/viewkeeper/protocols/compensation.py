"""Compensating queries: how a product of a source's relations differs when some of them differ.

Shared by protocols that ask for several relations of one source at once, where the error of an answer
can't be computed from changes alone. Works on any `Relation`; knows nothing of who asks or when.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.protocols.messages import Part
from viewkeeper.timeline import Transaction
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
            given, covers = part.given, part.covers
            for alias in places:
                rows = change(assembly.term.occurrence(alias).name)
                if given is None:
                    given = assembly.prepared(alias, rows)
                else:
                    given = assembly.extended(given, covers, alias, rows)
                covers |= {alias}
            asks = tuple(alias for alias in part.asks if alias not in places)
            yield Part(part.term, asks, given, covers)


def changes_of(transactions: Iterable[Transaction], sign: int = 1) -> Callable[[RelationName], Any]:
    """The sum of the transactions' changes by relation; None for those they do not touch."""
    total: dict[RelationName, Any] = {}
    for transaction in transactions:
        for name, rows in transaction.changes:
            signed = rows if sign > 0 else -rows
            total[name] = total[name] + signed if name in total else signed
    return total.get


def arranged(assembly: Assembly, rows: Any) -> Any:
    """The columns that the product has, in the order of the term."""
    present = set(rows.schema.names)
    names = [name for name in assembly.term.joined_schema.names if name in present]
    return rows.select(tuple(Output(name, Column(name)) for name in names))
