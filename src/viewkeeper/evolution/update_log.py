"""The updates that a view has received, by source: what answers are corrected and names mapped by.

A view's definition uses the names that relations have after the schema changes it has been synchronized
with; ``position`` says for each source up to where that is. Data changes from before and after that
place come in other names and are brought to those of the view.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from viewkeeper.algebra.expressions import Cast, Column, Output
from viewkeeper.algebra.types import Schema
from viewkeeper.evolution.changes import SchemaChange, SchemaChanged, Update
from viewkeeper.evolution.naming import Names, after, after_all, before_all
from viewkeeper.evolution.reading import Read
from viewkeeper.protocols.messages import Reflected
from viewkeeper.timeline import Cut, Transaction


class UpdateLog:
    """Updates by source and number, and the place in the source's order that the view's names are of."""

    def __init__(self, start: Cut) -> None:
        self.position = dict(start)
        self.received = start
        self._transactions: dict[str, dict[int, Transaction]] = {s: {} for s, _ in start}
        self._changes: dict[str, list[SchemaChanged]] = {s: [] for s, _ in start}

    def add(self, update: Update) -> None:
        self.received = self.received.advanced(update.source, update.number)
        if isinstance(update, SchemaChanged):
            self._changes[update.source].append(update)
        else:
            self._transactions[update.source][update.number] = update

    def synchronized(self, change: SchemaChanged) -> None:
        """From now on the view's names are those after this change."""
        self.position[change.source] = change.number

    def forget(self, applied: Cut, settled: Cut) -> None:
        """Drop data changes that are in the view, and in every answer from now on.

        Schema changes stay: there are few, and names are traced through them.
        """
        for source, known in self._transactions.items():
            bound = min(applied[source], settled[source])
            for old in [number for number in known if number <= bound]:
                del known[old]

    def __len__(self) -> int:
        return sum(len(known) for known in self._transactions.values())

    # -- names -------------------------------------------------------------------------------------

    def names_now(self, names: Names) -> Names | None:
        """What the view's names are called at the source, by all that is known; None when lost."""
        return after_all(names, self._pending(names.relation.source))

    def losing(self, names: Names) -> SchemaChanged | None:
        """The first schema change, not yet in the view, that takes something of this away."""
        current: Names | None = names
        for changed in self._changes[names.relation.source]:
            if changed.number > self.position[changed.source] and current is not None:
                current = after(current, changed.change)
                if current is None:
                    return changed
        return None

    def latest_change(self, source: str) -> int:
        """The number of the last schema change received from the source."""
        return max((c.number for c in self._changes[source]), default=0)

    def changes_reflected(
        self, source: str, since: int, reflects: Reflected
    ) -> Iterator[SchemaChange]:
        """Schema changes with higher numbers than ``since`` that an answer reflects."""
        for changed in self._changes[source]:
            if changed.number > since and reflects.includes(changed.number):
                yield changed.change

    def _pending(self, source: str) -> Iterator[SchemaChange]:
        for changed in self._changes[source]:
            if changed.number > self.position[source]:
                yield changed.change

    def _names_at(self, names: Names, number: int) -> Names | None:
        """What the view's names were called just before update ``number`` of the source."""
        source = names.relation.source
        position = self.position[source]
        known = self._changes[source]
        if number > position:
            return after_all(names, (c.change for c in known if position < c.number < number))
        return before_all(
            names, (c.change for c in reversed(known) if number < c.number <= position)
        )

    # -- data changes ------------------------------------------------------------------------------

    def change(self, names: Names, schema: Schema, since: int, upto: int) -> Any | None:
        """What the relation changed by after ``since`` and up to ``upto``; None when it did not."""
        return self._summed(
            names, schema, {n: 1 for n in self._numbers(names) if since < n <= upto}
        )

    def correction(self, read: Read, reflects: Reflected) -> Any | None:
        """What must be added to an answer so that it is as wanted; None when nothing must.

        wanted = answer ⊕ changes up to the wanted one that it misses ⊖ later ones that it has
        """
        names = Names(read.name, read.schema.names)
        signs = {
            number: 1 if number <= read.wanted else -1
            for number in self._numbers(names)
            if reflects.includes(number) != (number <= read.wanted)
        }
        return self._summed(names, read.schema, signs)

    def _numbers(self, names: Names) -> tuple[int, ...]:
        return tuple(self._transactions[names.relation.source])

    def _summed(self, names: Names, schema: Schema, signs: dict[int, int]) -> Any | None:
        total = None
        for number, sign in signs.items():
            rows = self._translated(names, schema, number)
            if rows is not None:
                signed = rows if sign > 0 else -rows
                total = signed if total is None else total + signed
        return total

    def _translated(self, names: Names, schema: Schema, number: int) -> Any | None:
        """One transaction's change of the relation, by the view's names and in its types."""
        then = self._names_at(names, number)
        if then is None:
            # Not there yet, or not any more: then nothing of it is in an answer either.
            return None
        rows = self._transactions[names.relation.source][number].change(then.relation)
        if rows is None:
            return None
        return rows.select(
            tuple(
                Output(
                    field.name,
                    Column(column)
                    if rows.schema.type_of(column) == field.type
                    else Cast(Column(column), field.type),
                )
                for field, column in zip(schema, then.columns, strict=True)
            )
        )
