"""Small contents for TPC-H's tables, drawn so that the queries' conditions are met now and then."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path

from unit.sql.corpus import catalog
from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.types import Row
from viewkeeper.views.definition import RelationName

FOLDER = Path(__file__).parents[2] / "corpus" / "tpch"
QUERIES = sorted(FOLDER.glob("q*.sql"))
CATALOG = catalog(FOLDER)

_NATIONS = {"FRANCE": 0, "GERMANY": 0, "BRAZIL": 1, "CANADA": 1, "SAUDI ARABIA": 2, "INDIA": 2}
_REGIONS = ("EUROPE", "AMERICA", "ASIA")
_TYPES = ("ECONOMY ANODIZED STEEL", "PROMO PLATED BRASS", "MEDIUM POLISHED TIN")
_BRANDS = ("Brand#12", "Brand#23", "Brand#34", "Brand#45")
_CONTAINERS = ("SM BOX", "MED BOX", "LG CASE")
_NAMES = ("forest green", "green lace", "forest pink")
_SUPPLIERS, _CUSTOMERS, _PARTS, _ORDERS = 6, 12, 9, 45


class _Chance(random.Random):
    # How many times as many rows; nations and regions stay as they are.
    scale = 1

    def money(self, least: int, most: int) -> Decimal:
        return Decimal(self.randint(100 * least, 100 * most)).scaleb(-2)

    def day(self, first: dt.date, days: int) -> dt.date:
        return first + dt.timedelta(days=self.randrange(days))


def contents(seed: int, scale: int = 1) -> dict[RelationName, Bag]:
    """All eight tables; the seed and the scale alone decide."""
    chance = _Chance(seed)
    chance.scale = scale
    orders = [_order(chance, key) for key in range(1, _ORDERS * scale + 1)]
    tables = {
        "crm.region": [(key, name, "") for key, name in enumerate(_REGIONS)],
        "crm.nation": [(k, n, r, "") for k, (n, r) in enumerate(_NATIONS.items())],
        "supply.supplier": [_supplier(chance, key) for key in range(1, _SUPPLIERS * scale + 1)],
        "supply.part": [_part(chance, key) for key in range(1, _PARTS * scale + 1)],
        "supply.partsupp": _offers(chance),
        "crm.customer": [_customer(chance, key) for key in range(1, _CUSTOMERS * scale + 1)],
        "sales.orders": orders,
        "sales.lineitem": [line for order in orders for line in _lines(chance, order)],
    }
    return {r.name: Bag.of(r.schema, tables[str(r.name)]) for r in CATALOG.relations}


def _supplier(chance: _Chance, key: int) -> Row:
    comment = chance.choice(("fine", "Customer had Complaints", "quick"))
    nation = chance.randrange(len(_NATIONS))
    return (key, f"Supplier {key}", "street", nation, "11-22", chance.money(-10, 900), comment)


def _part(chance: _Chance, key: int) -> Row:
    name, brand = chance.choice(_NAMES), chance.choice(_BRANDS)
    kind, size = chance.choice(_TYPES), chance.choice((3, 5, 15, 15))
    return (key, name, "Maker", brand, kind, size, chance.choice(_CONTAINERS), Decimal(9), "")


def _offers(chance: _Chance) -> list[Row]:
    parts, suppliers = _PARTS * chance.scale, _SUPPLIERS * chance.scale
    pairs = [(p, s) for p in range(1, parts + 1) for s in range(1, suppliers + 1)]
    return [
        (part, supplier, chance.randint(1, 200), chance.money(1, 30), "")
        for part, supplier in chance.sample(pairs, 30 * chance.scale)
    ]


def _customer(chance: _Chance, key: int) -> Row:
    phone = f"{chance.choice((13, 31, 23, 77))}-555"
    segment = chance.choice(("BUILDING", "MACHINERY"))
    nation, balance = chance.randrange(len(_NATIONS)), chance.money(-50, 900)
    return (key, f"Customer {key}", "road", nation, phone, balance, segment, "")


def _order(chance: _Chance, key: int) -> Row:
    # Some customers never order anything.
    customer = chance.randint(1, (_CUSTOMERS - 4) * chance.scale)
    placed = chance.day(dt.date(1993, 6, 1), 1100)
    priority = chance.choice(("1-URGENT", "2-HIGH", "5-LOW"))
    comment = chance.choice(("nothing", "special packing requests"))
    status, price = chance.choice("FO"), chance.money(50, 9000)
    return (key, customer, status, price, placed, priority, "Clerk", 0, comment)


def _lines(chance: _Chance, order: Row) -> list[Row]:
    return [_line(chance, order, number) for number in range(1, chance.randint(2, 8))]


def _line(chance: _Chance, order: Row, number: int) -> Row:
    placed = order[4]
    assert isinstance(placed, dt.date)
    dates = [chance.day(placed, 120) for _ in range(3)]
    if chance.random() < 0.1:
        dates[0] = chance.day(dt.date(1995, 9, 1), 30)
    quantity = Decimal(chance.choice((1, 2, 12, 25, 48, 90)))
    part = chance.randint(1, _PARTS * chance.scale)
    supplier = chance.randint(1, _SUPPLIERS * chance.scale)
    return (
        order[0], part, supplier, number, quantity,
        chance.money(10, 900), Decimal(chance.randint(0, 8)).scaleb(-2), Decimal("0.05"),
        chance.choice("RAN"), chance.choice("OF"), *dates, "DELIVER IN PERSON",
        chance.choice(("MAIL", "SHIP", "AIR")), "",
    )  # fmt: skip
