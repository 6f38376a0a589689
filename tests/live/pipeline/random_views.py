"""Random view texts over the tables of `traffic`: every class, two to four relations, one to three sources."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

COLUMNS = {
    "shop.orders": ("o_id", "cust_id", "qty"),
    "shop.notes": ("o_id", "note"),
    "crm.customers": ("cust_id", "name", "region_id"),
    "geo.regions": ("region_id", "rname"),
}
TEXTS = ("note", "name", "rname")
# By which columns tables are joined; a table may also meet itself.
LINKS = (
    ("shop.orders", "shop.notes", "o_id"),
    ("shop.orders", "crm.customers", "cust_id"),
    ("crm.customers", "geo.regions", "region_id"),
    ("shop.orders", "shop.orders", "cust_id"),
    ("crm.customers", "crm.customers", "region_id"),
)


@dataclass(frozen=True)
class Joined:
    """FROM and WHERE, and the columns to choose from."""

    tables: str
    conditions: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        return tuple(c for c in self.columns if c.split(".")[1] not in TEXTS)

    @property
    def text(self) -> str:
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return f"FROM {self.tables}{where}"


class Texts:
    """Draws views; the seed alone decides."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"live view {seed}")

    def joined(self, size: int, joins: tuple[str, ...] = ("JOIN",)) -> Joined:
        """A walk along the links, with a condition on one table now and then."""
        rng = self.rng
        first = rng.choice(tuple(COLUMNS))
        tables, text = [first], f"{first} t0"
        for number in range(1, size):
            options = [
                (owner, other, column)
                for owner, name in enumerate(tables)
                for left, right, column in LINKS
                for other in (right if name == left else left,)
                if name in (left, right)
            ]
            # Mostly to a table that is not there yet, so that sources meet.
            new = [option for option in options if option[1] not in tables]
            owner, other, column = rng.choice(new if new and rng.random() < 0.8 else options)
            on = f"t{owner}.{column} = t{number}.{column}"
            if other == tables[owner] and rng.random() < 0.7:
                key = COLUMNS[other][0]
                on += f" AND t{owner}.{key} < t{number}.{key}"
            text += f" {rng.choice(joins)} {other} t{number} ON {on}"
            tables.append(other)
        columns = tuple(f"t{n}.{c}" for n, name in enumerate(tables) for c in COLUMNS[name])
        found = Joined(text, (), columns)
        condition = (self.condition(found),) if rng.random() < 0.4 else ()
        return Joined(text, condition, columns)

    def condition(self, joined: Joined) -> str:
        operator = self.rng.choice(("<", ">=", "<>"))
        return f"{self.rng.choice(joined.numbers)} {operator} {self.rng.randrange(2, 20)}"

    def outputs(self, columns: tuple[str, ...], most: int = 3) -> str:
        chosen = self.rng.sample(columns, min(len(columns), self.rng.randint(1, most)))
        return ", ".join(f"{column} AS c{n}" for n, column in enumerate(chosen))

    # -- the classes --------------------------------------------------------------------------------

    def join(self) -> str:
        joined = self.joined(self.rng.randint(2, 4))
        return f"SELECT {self.outputs(joined.columns)} {joined.text}"

    def outer(self) -> str:
        kind = self.rng.choice(("LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        joined = self.joined(self.rng.randint(2, 3), (kind, "LEFT JOIN"))
        return f"SELECT {self.outputs(joined.columns)} {joined.text}"

    def group(self) -> str:
        joined = self.joined(self.rng.randint(1, 4))
        key, value = self.rng.choice(joined.columns), self.rng.choice(joined.numbers)
        return (
            f"SELECT {key} AS k, COUNT(*) AS n, SUM({value}) AS s, MIN({value}) AS least, "
            f"MAX({self.rng.choice(joined.columns)}) AS last {joined.text} "
            f"GROUP BY {key} HAVING COUNT(*) > {self.rng.randrange(3)}"
        )

    def total(self) -> str:
        joined = self.joined(self.rng.randint(1, 2))
        value = self.rng.choice(joined.numbers)
        return (
            f"SELECT COUNT(*) AS n, AVG({value}) AS mean, COUNT(DISTINCT {value}) AS different "
            f"{joined.text}"
        )

    def distinct(self) -> str:
        joined = self.joined(self.rng.randint(2, 3))
        return f"SELECT DISTINCT {self.outputs(joined.columns, 2)} {joined.text}"

    def existing(self) -> str:
        left, right, column = self.rng.choice(LINKS)
        no = self.rng.choice(("", "NOT "))
        further = f" AND r.{column} > {self.rng.randrange(9)}" if self.rng.random() < 0.5 else ""
        return (
            f"SELECT l.* FROM {left} l WHERE {no}EXISTS "
            f"(SELECT 1 FROM {right} r WHERE r.{column} = l.{column}{further})"
        )

    def member(self) -> str:
        left, right, column = self.rng.choice(LINKS[:3])
        no = self.rng.choice(("", "NOT "))
        return (
            f"SELECT r.* FROM {right} r "
            f"WHERE r.{column} {no}IN (SELECT l.{column} FROM {left} l WHERE l.{column} <> 4)"
        )

    def union(self) -> str:
        word = self.rng.choice(("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
        branches = [self.joined(self.rng.randint(1, 2)) for _ in range(2)]
        return f" {word} ".join(
            f"SELECT {self.rng.choice(branch.numbers)} AS c {branch.text}" for branch in branches
        )

    def over(self) -> str:
        kind = self.rng.choice(("JOIN", "LEFT JOIN"))
        return (
            f"WITH g AS (SELECT cust_id, COUNT(*) AS n, MAX(qty) AS most FROM shop.orders "
            f"WHERE qty > {self.rng.randrange(4)} GROUP BY cust_id) "
            f"SELECT c.name, g.n, g.most FROM crm.customers c {kind} g ON c.cust_id = g.cust_id"
        )

    def value(self) -> str:
        function = self.rng.choice(("MAX", "SUM", "COUNT"))
        return (
            f"SELECT c.cust_id, c.name, (SELECT {function}(o.qty) FROM shop.orders o "
            f"WHERE o.cust_id = c.cust_id) AS v FROM crm.customers c"
        )


CLASSES: tuple[Callable[[Texts], str], ...] = (
    Texts.join, Texts.outer, Texts.group, Texts.existing, Texts.union,
    Texts.distinct, Texts.over, Texts.member, Texts.total, Texts.value,
)  # fmt: skip


def random_views(number: int) -> dict[str, str]:
    """So many views, the classes in turn."""
    return {f"v{seed}": CLASSES[seed % len(CLASSES)](Texts(seed)) for seed in range(number)}
