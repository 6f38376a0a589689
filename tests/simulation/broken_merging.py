"""Deliberately wrong merge processes. Each must be caught by the checker."""

from __future__ import annotations

from collections.abc import Iterator

from viewkeeper.merging.commit_order import CommitOrder
from viewkeeper.merging.messages import WarehouseTransaction
from viewkeeper.merging.painting import Painting


class PaintingThatKeepsApplyRows(Painting):
    """PA's slip: rows of a failed attempt stay in ApplyRows, and the next success applies them."""

    def forget_attempt(self) -> None:
        self.apply_rows = {row for row in self.apply_rows if not self.table.is_gray(row)}


class PaintingAsPrinted(Painting):
    """PA's other slip: a recursive call applies rows whose caller is still being checked."""

    def process_row(self, row: int) -> Iterator[WarehouseTransaction]:
        self.apply_rows = set()
        applied: list[WarehouseTransaction] = []
        self._printed(row, applied)
        yield from applied

    def _printed(self, row: int, applied: list[WarehouseTransaction]) -> bool:
        table = self.table
        if row in self.apply_rows:
            return True
        if table.is_incomplete(row):
            return False
        self.apply_rows.add(row)
        covered = list(table.covered_with(row))
        above = [*(j for j in covered if j < row), *table.earlier(row)]
        if not all(self._printed(j, applied) for j in above):
            return False
        later = [j for j in covered if j > row]
        if not all(self._printed(j, applied) for j in later):
            return False
        if self.apply_rows:
            transaction, followers = table.apply(self.apply_rows)
            applied.append(transaction)
            for follower in followers:
                self.apply_rows = set()
                self._printed(follower, applied)
            self.apply_rows = set()
        return True


class SimplePaintingForStrongManagers(Painting):
    """Example 4: SPA paints all covered rows red, and applies them one by one all the same."""

    def process_row(self, row: int) -> Iterator[WarehouseTransaction]:
        rows = self.table.rows
        for i in sorted(rows):
            if rows[i].is_white or not rows[i].red:
                continue
            above = [j for j in rows if j < i for view in rows[i].red if view in rows[j].red]
            if not above:
                transaction, _ = self.table.apply((i,))
                yield transaction


class AnyOrder(CommitOrder):
    """Gives everything to the warehouse at once, whatever depends on it."""

    name = "any"

    def _due(self) -> Iterator[tuple[WarehouseTransaction, ...]]:
        ready, self.waiting = self.waiting, []
        yield from ((t,) for t in ready)


class AsTheyCome(Painting):
    """Every list goes on as it comes, whatever else its rows wait for."""

    def process_row(self, row: int) -> Iterator[WarehouseTransaction]:
        rows = self.table.rows
        ready = [i for i in sorted(rows) if rows[i].red and not rows[i].is_white]
        yield from (self.table.apply((i,))[0] for i in ready)
