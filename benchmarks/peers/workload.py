"""The workload that all systems get: three tables, and streams of transactions of one row each.

Customers are a tenth of the orders, regions a thousandth, so that a region has a thousand orders and a
customer ten, whatever the size: a change costs the same at every size, and only the base grows. About
22 view rows change with every update, most of them because of the few regions that are renamed. These are
drawn from a thousand at most: a stream that renames a region twice is less work than one that renames two,
and on a larger base it would hardly ever do so.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from peers.task import RELATIONS

# Kinds of transactions and their shares. `moves` leaves the view's size as it is.
MIX = {
    "order_in": 0.78,
    "order_out": 0.10,
    "order_moves": 0.03,
    "customer_moves": 0.05,
    "customer_in": 0.03,
    "region_renamed": 0.01,
}
RENAMED_MAX = 1_000
MOVES = {"order_moves": 0.64, "customer_moves": 0.33, "region_renamed": 0.03}

Change = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How large the base is."""

    orders: int
    customers: int
    regions: int

    @classmethod
    def of(cls, orders: int) -> Sizes:
        return cls(orders, max(orders // 10, 10), max(orders // 1_000, 5))


class World:
    """The three tables as they are now; every change is made here before anybody hears of it."""

    def __init__(self, sizes: Sizes, seed: int) -> None:
        self._random = random.Random(seed)
        orders, customers, regions = sizes.orders, sizes.customers, sizes.regions
        self.cust_ids: list[int] = (np.arange(orders) % customers).tolist()
        self.quantities: list[int] = (np.arange(orders) % 9).tolist()
        self.is_there = bytearray(b"\x01" * orders)
        self.region_ids: list[int] = (np.arange(customers) % regions).tolist()
        self.region_names = [f"region {number}" for number in range(regions)]
        self._renamed = 0

    def changes(self, count: int, mix: Mapping[str, float]) -> Iterator[Change]:
        kinds, weights = list(mix), list(mix.values())
        for kind in self._random.choices(kinds, weights, k=count):
            yield getattr(self, f"_{kind}")()

    def tables(self) -> dict[str, pa.Table]:
        alive = np.frombuffer(bytes(self.is_there), np.uint8).astype(bool)
        numbers = np.arange(len(alive))
        columns: dict[str, Sequence[Any]] = {
            "orders": (
                numbers[alive],
                np.array(self.cust_ids)[alive],
                np.array(self.quantities)[alive],
            ),
            "customers": (
                np.arange(len(self.region_ids)),
                [_customer_name(number) for number in range(len(self.region_ids))],
                np.array(self.region_ids),
            ),
            "regions": (np.arange(len(self.region_names)), self.region_names),
        }
        return {
            name: pa.table(dict(zip(RELATIONS[name], map(pa.array, arrays), strict=True)))
            for name, arrays in columns.items()
        }

    # -- one transaction of each kind ---------------------------------------------------------------

    def _order(self, number: int) -> dict[str, Any]:
        return {"o_id": number, "cust_id": self.cust_ids[number], "qty": self.quantities[number]}

    def _customer(self, number: int) -> dict[str, Any]:
        return {
            "cust_id": number,
            "name": _customer_name(number),
            "region_id": self.region_ids[number],
        }

    def _region(self, number: int) -> dict[str, Any]:
        return {"region_id": number, "rname": self.region_names[number]}

    def _some_order(self) -> int:
        while True:
            number = self._random.randrange(len(self.is_there))
            if self.is_there[number]:
                return number

    def _order_in(self) -> Change:
        self.cust_ids.append(self._random.randrange(len(self.region_ids)))
        self.quantities.append(self._random.randrange(9))
        self.is_there.append(1)
        return {"relation": "orders", "before": None, "after": self._order(len(self.is_there) - 1)}

    def _order_out(self) -> Change:
        number = self._some_order()
        self.is_there[number] = 0
        return {"relation": "orders", "before": self._order(number), "after": None}

    def _order_moves(self) -> Change:
        number = self._some_order()
        before = self._order(number)
        self.cust_ids[number] = self._random.randrange(len(self.region_ids))
        return {"relation": "orders", "before": before, "after": self._order(number)}

    def _customer_moves(self) -> Change:
        number = self._random.randrange(len(self.region_ids))
        before = self._customer(number)
        self.region_ids[number] = self._random.randrange(len(self.region_names))
        return {"relation": "customers", "before": before, "after": self._customer(number)}

    def _customer_in(self) -> Change:
        self.region_ids.append(self._random.randrange(len(self.region_names)))
        number = len(self.region_ids) - 1
        return {"relation": "customers", "before": None, "after": self._customer(number)}

    def _region_renamed(self) -> Change:
        regions = len(self.region_names)
        often = min(regions, RENAMED_MAX)
        # All over the table, so that their orders are.
        number = self._random.randrange(often) * (regions // often)
        before = self._region(number)
        self._renamed += 1
        self.region_names[number] = f"region {number}, renamed {self._renamed}"
        return {"relation": "regions", "before": before, "after": self._region(number)}


def _customer_name(number: int) -> str:
    return f"customer {number}"


def write_workload(
    folder: Path, orders: int, streams: Sequence[tuple[str, int]], seed: int
) -> None:
    """Base, streams by name and length, and the tables after each; what is there already stays."""
    if (folder / "expected.json").exists():
        return
    world = World(Sizes.of(orders), seed)
    _write_tables(folder / "base", world.tables())
    expected = {}
    for name, count in streams:
        changes = list(world.changes(count, MIX))
        _write_changes(folder / f"{name}.jsonl", changes)
        tables = world.tables()
        _write_tables(folder / f"after-{name}", tables)
        expected[name] = {"updates": count, **_checks(tables)}
    (folder / "expected.json").write_text(json.dumps(expected))


def write_moves(folder: Path, orders: int, count: int, seed: int) -> None:
    """The stream in which no view row comes or goes without another one in its place."""
    if (folder / "expected.json").exists():
        return
    world = World(Sizes(orders, orders // 10, max(orders // 100, 5)), seed)
    _write_tables(folder / "base", world.tables())
    _write_changes(folder / "moves.jsonl", list(world.changes(count, MOVES)))
    tables = world.tables()
    _write_tables(folder / "after-moves", tables)
    expected = {"moves": {"updates": count, **_checks(tables)}}
    (folder / "expected.json").write_text(json.dumps(expected))


def _write_tables(folder: Path, tables: Mapping[str, pa.Table]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")


def _write_changes(path: Path, changes: Sequence[Change]) -> None:
    with path.open("w") as file:
        file.writelines(json.dumps(change) + "\n" for change in changes)


def _checks(tables: Mapping[str, pa.Table]) -> dict[str, list[int]]:
    """What `task.CHECKS` must give, computed by nobody who takes part."""
    regions = tables["regions"].column("rname").to_pylist()
    customers = tables["customers"]
    region_of = customers.column("region_id").to_numpy()
    lengths = pc.utf8_length(customers.column("name")).to_numpy()
    cust_ids = tables["orders"].column("cust_id").to_numpy()
    quantities = tables["orders"].column("qty").to_numpy()
    regions_of_orders = region_of[cust_ids]
    name_lengths = np.array([len(name) for name in regions])
    shown = np.unique(regions_of_orders)
    return {
        "join": [
            len(cust_ids),
            int(tables["orders"].column("o_id").to_numpy().sum()),
            int(quantities.sum()),
            int(lengths[cust_ids].sum()),
            int(name_lengths[regions_of_orders].sum()),
        ],
        "totals": [
            len(shown), int(quantities.sum()), len(cust_ids), int(name_lengths[shown].sum()),
        ],
    }  # fmt: skip
