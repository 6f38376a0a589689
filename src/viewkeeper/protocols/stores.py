"""A view's own stores, held as relations: for the simulator, and wherever they are small."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from viewkeeper.algebra.expressions import Column, Comparison, IsNull, Not, conjunction
from viewkeeper.protocols.incremental import IncrementalView
from viewkeeper.protocols.messages import (
    TXN,
    Action,
    AskStores,
    Event,
    InstallBatch,
    StoredPart,
    StoresRead,
)
from viewkeeper.views.definition import ViewDefinition


class HeldStores:
    """Stores by name: rows are looked up in them, and batches change them."""

    def __init__(self, contents: Mapping[str, Any]) -> None:
        self.contents = dict(contents)

    def rows(self, part: StoredPart) -> Any:
        """The rows that are asked for."""
        rows = self.contents[part.store]
        return rows if part.keys is None else matching(rows, part)

    def change(self, changes: Mapping[str, Any]) -> None:
        """What a batch makes of them; the numbers of its transactions don't matter here."""
        for name, change in changes.items():
            unnumbered = change.only(c for c in change.schema.names if c != TXN)
            self.contents[name] = self.contents[name] + unnumbered


def matching(rows: Any, part: StoredPart) -> Any:
    """The rows whose key columns are among the keys; NULL equals NULL."""
    names = tuple(f"wanted {name}" for name in part.key_columns)
    pairs = tuple(zip(part.key_columns, names, strict=True))
    present = conjunction(tuple(Not(IsNull(Column(name))) for name in names))
    same = tuple(Comparison("<=>", Column(mine), Column(wanted)) for mine, wanted in pairs)
    keys = part.keys.renamed(names)
    # A join by hash never finds a NULL, and the few keys that have one are compared.
    found = rows.join(keys.where(present), pairs)
    found = found + rows.join(keys.where(Not(present)), (), conjunction(same))
    return found.only(rows.schema.names)


class SelfKeptView(IncrementalView):
    """An incremental view that holds its stores itself, and so asks nobody but the sources."""

    def __init__(
        self,
        definition: ViewDefinition,
        extent: Any,
        stores: Mapping[str, Any],
        sources: tuple[str, ...] = (),
    ) -> None:
        super().__init__(definition, extent, sources)
        self.held = HeldStores(stores)

    def step(self, event: Event) -> tuple[Action, ...]:
        todo = deque(super().step(event))
        done: list[Action] = []
        while todo:
            match todo.popleft():
                case AskStores(question, parts):
                    read = StoresRead(question, tuple(map(self.held.rows, parts)))
                    todo.extend(super().step(read))
                case InstallBatch(stores=changes) as install:
                    self.held.change(changes)
                    done.append(install)
                case action:
                    done.append(action)
        return tuple(done)
