"""Random rich views over the relations of `unit.sql.rich`: every class, and classes inside classes."""

from __future__ import annotations

import random

_TABLES = ("a.r", "a.u", "b.t", "c.w")
_NUMBERS = ("k", "x")


class Texts:
    """Texts drawn from one seed. All aliases of a text differ, so that any name is understood."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._aliases = 0

    def view(self) -> str:
        kind = self._chance.random()
        if kind < 0.15:
            word = self._chance.choice(
                ("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL")
            )
            return f"{self.select(2)} {word} {self.select(2)}"
        return self.grouped(2) if kind < 0.4 else self.select(2)

    def alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    def select(self, depth: int) -> str:
        """Two columns named a and b."""
        aliases, from_ = self._from(depth)
        distinct = "DISTINCT " * (self._chance.random() < 0.2)
        a, b = self._number(aliases), self._number(aliases)
        if depth and self._chance.random() < 0.15:
            b = self._value(aliases, depth - 1)
        return f"SELECT {distinct}{a} AS a, {b} AS b FROM {from_}{self._where(aliases, depth)}"

    def grouped(self, depth: int) -> str:
        aliases, from_ = self._from(depth)
        key, value = self._number(aliases), self._number(aliases)
        function = self._chance.choice(("count", "sum", "min", "max", "count"))
        inner = f"DISTINCT {value}" if self._chance.random() < 0.2 else value
        having = " HAVING count(*) > 1" * (self._chance.random() < 0.3)
        if depth and self._chance.random() < 0.2:
            having = f" HAVING {function}({value}) >= {self._alone(depth - 1)}"
        return (
            f"SELECT {key} AS a, {function}({inner}) AS b FROM {from_}"
            f"{self._where(aliases, depth)} GROUP BY {key}{having}"
        )

    def _from(self, depth: int) -> tuple[list[str], str]:
        aliases: list[str] = []
        text = ""
        for _ in range(self._chance.choice((1, 2, 2, 3) if depth else (1, 1, 2))):
            alias = self.alias()
            item = f"{self._item(depth)} {alias}"
            if not aliases:
                text = item
            else:
                join = self._chance.choice(("", "", "LEFT ", "LEFT ", "RIGHT ", "FULL "))
                text += f" {join}JOIN {item} ON {self._joining(aliases, alias)}"
            aliases.append(alias)
        return aliases, text

    def _item(self, depth: int) -> str:
        kind = self._chance.random()
        if depth and kind < 0.2:
            return f"({self.grouped(depth - 1)})".replace(" AS a,", " AS k,").replace(
                " AS b FROM", " AS x FROM", 1
            )
        if depth and kind < 0.3:
            return "(SELECT k, x FROM a.u UNION ALL SELECT k, x FROM c.w)"
        return self._chance.choice(_TABLES)

    def _joining(self, aliases: list[str], alias: str) -> str:
        other = self._chance.choice(aliases)
        condition = (
            f"{other}.{self._chance.choice(_NUMBERS)} = {alias}.{self._chance.choice(_NUMBERS)}"
        )
        if self._chance.random() < 0.3:
            condition += f" AND {alias}.k {self._chance.choice(('<', '<>', '>='))} {other}.x"
        if self._chance.random() < 0.2:
            condition += f" AND {self._chance.choice((alias, other))}.k > 1"
        return condition

    def _number(self, aliases: list[str]) -> str:
        return f"{self._chance.choice(aliases)}.{self._chance.choice(_NUMBERS)}"

    def _where(self, aliases: list[str], depth: int) -> str:
        parts = [
            self._condition(aliases, depth)
            for _ in range(self._chance.choice((0, 1, 1, 2) if depth else (0, 1)))
        ]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _condition(self, aliases: list[str], depth: int) -> str:
        number = self._number(aliases)
        kind = self._chance.random()
        if not depth or kind < 0.25:
            return f"{number} {self._chance.choice(('<', '>=', '<>'))} {self._chance.randint(1, 4)}"
        negation = "NOT " * (self._chance.random() < 0.5)
        if kind < 0.45:
            return f"{negation}EXISTS ({self._correlated(aliases, '1', depth - 1)})"
        if kind < 0.6:
            column = f"{negation}IN ({self._correlated(aliases, None, depth - 1)})"
            return f"{number} {column}"
        if kind < 0.7:
            return f"({self._condition(aliases, 0)} OR {self._condition(aliases, depth)})"
        operator = self._chance.choice(("<", ">=", "=", "<>"))
        return f"{number} {operator} {self._value(aliases, depth - 1)}"

    def _correlated(self, aliases: list[str], output: str | None, depth: int) -> str:
        inner, from_ = self._from(depth)
        where = self._where(inner, depth)
        if self._chance.random() < 0.8:
            condition = self._joining(aliases, self._chance.choice(inner))
            where = f"{where} AND {condition}" if where else f" WHERE {condition}"
        return f"SELECT {output or self._number(inner)} FROM {from_}{where}"

    def _value(self, aliases: list[str], depth: int) -> str:
        if self._chance.random() < 0.3:
            return self._alone(depth)
        function = self._chance.choice(("max", "min", "sum", "count"))
        inner, from_ = self._from(depth)
        condition = self._joining(aliases, self._chance.choice(inner))
        return f"(SELECT {function}({self._number(inner)}) FROM {from_} WHERE {condition})"

    def _alone(self, depth: int) -> str:
        inner, from_ = self._from(depth)
        function = self._chance.choice(("max", "min", "count"))
        return f"(SELECT {function}({self._number(inner)}) FROM {from_}{self._where(inner, depth)})"
