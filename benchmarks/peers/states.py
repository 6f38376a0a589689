"""Whether the states that a system showed are states that the sources went through.

The view at every cut of the three sources is known: any number of the orders' transactions, with any of
the customers' and any of the regions'. A state that is none of these was never true. In this workload the
view's size stays the same all the time, so that a state of another size is seen to be wrong at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow.parquet as pq

from peers.task import KEYS, RELATIONS, Task

Row = tuple[Any, ...]
Contents = dict[int, Row]
_MODULUS = 1 << 64


@dataclass(frozen=True)
class Verdict:
    """``shown`` states, and of those how many had another size and how many were never true."""

    shown: int
    other_size: int
    never_true: int
    ends_right: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Judge:
    """Knows all states that may be shown; make one for a workload and ask it about each system."""

    def __init__(self, base: Mapping[str, Contents], changes: Sequence[Mapping[str, Any]]) -> None:
        self._base = base
        by_relation: dict[str, list[Mapping[str, Any]]] = {name: [] for name in RELATIONS}
        for change in changes:
            by_relation[change["relation"]].append(change)
        self._histories = {
            name: list(_history(base[name], by_relation[name], name)) for name in RELATIONS
        }
        self._possible = set(self._all_cuts())
        self._last = self._at(*(self._histories[name][-1] for name in RELATIONS))

    @classmethod
    def of(cls, task: Task) -> Judge:
        base = {}
        for name in RELATIONS:
            rows = (tuple(row.values()) for row in pq.read_table(task.base(name)).to_pylist())
            base[name] = {row[0]: row for row in rows}
        changes = [c for stream in task.streams for c in task.changes(stream)]
        return cls(base, changes)

    def verdict(self, states: Sequence[Sequence[Sequence[Any]]]) -> Verdict:
        """What to say of signed rows, state by state, that follow the view over the base."""
        digest = self._at(*(self._base[name] for name in RELATIONS))
        size = expected = len(self._base["orders"])
        other_size = never_true = 0
        for signed_rows in states:
            for count, row in signed_rows:
                digest = (digest + count * _digest(tuple(row))) % _MODULUS
                size += count
            other_size += size != expected
            never_true += digest not in self._possible
        return Verdict(len(states), other_size, never_true, digest == self._last)

    def _all_cuts(self) -> Iterator[int]:
        orders = self._histories["orders"]
        for customers, regions in itertools.product(
            self._histories["customers"], self._histories["regions"]
        ):
            digest = self._at(orders[0], customers, regions)
            yield digest
            for before, after in itertools.pairwise(orders):
                for number in _changed(before, after):
                    for contents, sign in ((before, -1), (after, 1)):
                        if number in contents:
                            row = _view_row(contents[number], customers, regions)
                            digest = (digest + sign * _digest(row)) % _MODULUS
                yield digest

    @staticmethod
    def _at(orders: Contents, customers: Contents, regions: Contents) -> int:
        rows = (_view_row(order, customers, regions) for order in orders.values())
        return sum(map(_digest, rows)) % _MODULUS


class _Version(dict[int, Row]):
    """Contents after a transaction, with the one key that it changed."""

    changed: int


def _history(
    base: Contents, changes: Sequence[Mapping[str, Any]], relation: str
) -> Iterator[Contents]:
    """The contents after each number of transactions."""
    current = dict(base)
    yield current
    for change in changes:
        following = _Version(current)
        following.changed = (change["before"] or change["after"])[KEYS[relation]]
        if change["after"] is None:
            del following[following.changed]
        else:
            following[following.changed] = tuple(change["after"].values())
        yield following
        current = following


def _changed(before: Contents, after: Contents) -> tuple[int, ...]:
    return (after.changed,) if isinstance(after, _Version) else ()


def _view_row(order: Row, customers: Contents, regions: Contents) -> Row:
    o_id, cust_id, qty = order
    _, name, region_id = customers[cust_id]
    return (o_id, qty, name, regions[region_id][1])


def _digest(row: Row) -> int:
    """Rows that are equal have equal digests, in this process; a sum of them stands for a bag."""
    return hash(row) * 0x9E3779B97F4A7C15 % _MODULUS
