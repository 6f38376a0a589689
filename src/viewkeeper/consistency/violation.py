"""A violation: which state broke which level, and the rows that show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from viewkeeper.algebra import Bag
from viewkeeper.algebra.bag import SignedRow
from viewkeeper.consistency.histories import State, ViewStates
from viewkeeper.timeline import CutVector
from viewkeeper.views.level import Level

ROWS_SHOWN_MAX = 10


@dataclass(frozen=True)
class Difference:
    """How one view's state differs from what it should be."""

    view: str
    too_many: tuple[SignedRow, ...]
    too_few: tuple[SignedRow, ...]


@dataclass(frozen=True)
class Violation:
    """The first thing that kept a history from a level, or the first claim that does not hold.

    ``level`` is None for a claim. ``state`` is the index of the offending state (0 is the initial
    one); ``nearest`` is the cut whose view differs least from it, or the one that was claimed.
    """

    level: Level | None
    state: int
    reason: str
    nearest: CutVector | None = None
    differences: tuple[Difference, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.label}: {self.reason}"]
        if self.nearest is not None and self.differences:
            which = "claimed" if self.level is None else "nearest"
            lines.append(f"  {which} cut {self.nearest}; compared with the view there:")
        for difference in self.differences:
            lines += [f"    {difference.view}: too many {_row(r)}" for r in difference.too_many]
            lines += [f"    {difference.view}: too few  {_row(r)}" for r in difference.too_few]
        return "\n".join(lines)

    @property
    def label(self) -> str:
        return "wrong claim" if self.level is None else f"not {self.level}"

    def as_dict(self) -> dict[str, object]:
        return {
            "level": None if self.level is None else str(self.level),
            "state": self.state,
            "reason": self.reason,
            "nearest_cut": None if self.nearest is None else dict(self.nearest),
            "views": [
                {
                    "view": d.view,
                    "too_many": [_json_row(r) for r in d.too_many],
                    "too_few": [_json_row(r) for r in d.too_few],
                }
                for d in self.differences
            ],
        }


def as_document(violation: Violation | None) -> dict[str, object] | None:
    return None if violation is None else violation.as_dict()


def _row(signed: SignedRow) -> str:
    row, count = signed
    return f"{row!r} × {count}"


def _json_row(signed: SignedRow) -> dict[str, object]:
    row, count = signed
    return {"row": [_json_value(value) for value in row], "count": count}


def _json_value(value: object) -> object:
    return value if isinstance(value, int | float | bool | str) or value is None else str(value)


def differences(names: Sequence[str], found: State, expected: State) -> tuple[Difference, ...]:
    """The rows by which ``found`` differs from ``expected``, at most a few of each kind."""
    result = []
    for name, is_bag, should in zip(names, found, expected, strict=True):
        delta = is_bag - should
        if not delta.is_empty():
            too_many = [(row, n) for row, n in delta.sorted() if n > 0]
            too_few = [(row, -n) for row, n in delta.sorted() if n < 0]
            result.append(
                Difference(name, tuple(too_many[:ROWS_SHOWN_MAX]), tuple(too_few[:ROWS_SHOWN_MAX]))
            )
    return tuple(result)


def nearest_cut(
    views: ViewStates, found: State, candidates: Iterable[CutVector]
) -> CutVector | None:
    """The candidate whose views differ from ``found`` by the fewest rows; the first of equals."""
    best: tuple[int, CutVector] | None = None
    for cut in candidates:
        distance = sum(map(_distance, found, views.at(cut)))
        if best is None or distance < best[0]:
            best = (distance, cut)
    return None if best is None else best[1]


def _distance(left: Bag, right: Bag) -> int:
    return (left - right).total
