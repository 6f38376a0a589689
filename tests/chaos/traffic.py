"""What the writers write: several rows, several tables, keys that change hands, values that are odd.

Decided by the seed alone, apart from how many transactions there is time for.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from chaos.scenery import (
    ACCOUNTS,
    ACCOUNTS_MAX,
    CRM,
    CUSTOMERS,
    CUSTOMERS_MAX,
    GEO,
    NOTES,
    ODD,
    ORDERS,
    ORDERS_MAX,
    PROFILES,
    REGIONS,
    REGIONS_MAX,
    SCHEMAS,
    SHOP,
    SOURCES,
)
from live.sources.rig import Writer
from viewkeeper.views import RelationName

Work = Callable[[Writer], None]

_TEXTS = (
    "",
    "null",
    "NULL",
    "\\N",
    'o\'clock "x" \\ back',
    "né 漢字 🦊",
    "tab\tline\n",
    "x" * 20_000,
)
_NUMBERS = (0.0, -0.0, 0.1, 1e-310, -1.7976931348623157e308, None)


class Abort(Exception):
    """The writer thought better of it."""


class Traffic:
    """Draws transactions. ``names`` follows the schema changes: table and columns of each relation."""

    def __init__(self, seed: int) -> None:
        self._rngs = {source: random.Random(f"{seed} {source}") for source in SOURCES}
        self._turns = dict.fromkeys(SOURCES, 0)
        self.names: dict[RelationName, tuple[str, list[str]]] = {
            name: (name.relation, list(schema.names)) for name, schema in SCHEMAS.items()
        }

    def work(self, source: str) -> Work:
        self._turns[source] += 1
        rng, turn = self._rngs[source], self._turns[source]
        draw = {SHOP: self._shop, CRM: self._crm, GEO: self._geo}[source]
        if rng.random() < 0.08:
            return self.odd(source, rng, turn)
        work = draw(rng, turn)
        if rng.random() < 0.05:
            return _given_up(work)
        return work

    # -- shop ---------------------------------------------------------------------------------------

    def _shop(self, rng: random.Random, turn: int) -> Work:
        choices = (self._order, self._removal, self._move, self._swap, self._clash, self._transfer)
        return rng.choices(choices, (5, 4, 2, 1, 1, 3))[0](rng, turn)

    def _order(self, rng: random.Random, turn: int) -> Work:
        """Some orders, some with notes: several rows of two tables."""
        (orders, _), (notes, _) = self.names[ORDERS], self.names[NOTES]
        rows = [
            (1000 + turn * 10 + step, rng.randrange(CUSTOMERS_MAX + 2), rng.randrange(9))
            for step in range(rng.choice((1, 1, 2, 5)))
        ]
        noted = rng.random() < 0.5

        def work(writer: Writer) -> None:
            for row in rows:
                writer.run(f"INSERT INTO {orders} VALUES (?, ?, ?)", *row)
                if noted:
                    writer.run(f"INSERT INTO {notes} VALUES (?, ?)", row[0], f"note {turn}")

        return work

    def _removal(self, rng: random.Random, turn: int) -> Work:
        (orders, (o_id, *_)), (notes, (n_id, _)) = self.names[ORDERS], self.names[NOTES]
        offset = rng.randrange(ORDERS_MAX)

        def work(writer: Writer) -> None:
            # As many as keep the table at about its size.
            [(rows,)] = writer.fetch(f"SELECT COUNT(*) FROM {orders}")
            many = max(1, (rows - ORDERS_MAX) // 2)
            found = writer.fetch(f"SELECT {o_id} FROM {orders} ORDER BY {o_id} LIMIT {many}")
            for (key,) in found or [(offset,)]:
                writer.run(f"DELETE FROM {notes} WHERE {n_id} = ?", key)
                writer.run(f"DELETE FROM {orders} WHERE {o_id} = ?", key)

        return work

    def _move(self, rng: random.Random, turn: int) -> Work:
        orders, (_, cust_id, qty) = self.names[ORDERS]
        old, new = rng.randrange(CUSTOMERS_MAX), rng.randrange(CUSTOMERS_MAX + 2)

        def work(writer: Writer) -> None:
            writer.run(
                f"UPDATE {orders} SET {cust_id} = ?, {qty} = {qty} + 1 WHERE {cust_id} = ?",
                new,
                old,
            )

        return work

    def _swap(self, rng: random.Random, turn: int) -> Work:
        """Two orders exchange their keys."""
        orders, (o_id, *_) = self.names[ORDERS]

        def work(writer: Writer) -> None:
            found = writer.fetch(f"SELECT {o_id} FROM {orders} ORDER BY {o_id} DESC LIMIT 2")
            if len(found) < 2:
                raise Abort
            (first,), (second,) = found
            for old, new in ((first, -first), (second, first), (-first, second)):
                writer.run(f"UPDATE {orders} SET {o_id} = ? WHERE {o_id} = ?", new, old)

        return work

    def _clash(self, rng: random.Random, turn: int) -> Work:
        """A row, and then a key that is taken: the whole transaction comes to nothing."""
        orders, _ = self.names[ORDERS]

        def work(writer: Writer) -> None:
            writer.run(f"INSERT INTO {orders} VALUES (?, 1, 1)", -turn)
            writer.run(f"INSERT INTO {orders} VALUES (?, 1, 1)", -turn)

        return work

    def _transfer(self, rng: random.Random, turn: int) -> Work:
        """Money moves; there is always as much of it as before."""
        table, (a_id, balance) = self.names[ACCOUNTS]
        giver, taker = rng.sample(range(ACCOUNTS_MAX), 2)
        amount = rng.randrange(1, 20)

        def work(writer: Writer) -> None:
            for account, change in ((giver, -amount), (taker, amount)):
                writer.run(
                    f"UPDATE {table} SET {balance} = {balance} + ? WHERE {a_id} = ?",
                    change,
                    account,
                )

        return work

    # -- crm and geo --------------------------------------------------------------------------------

    def _crm(self, rng: random.Random, turn: int) -> Work:
        table, (cust_id, name, region_id) = self.names[CUSTOMERS]
        profiles, (p_id, nick, *_) = self.names[PROFILES]
        customer, region = rng.randrange(CUSTOMERS_MAX), rng.choice((*range(REGIONS_MAX + 1), None))
        kind = rng.random()

        def work(writer: Writer) -> None:
            if kind < 0.6:
                writer.run(
                    f"UPDATE {table} SET {region_id} = ?, {name} = ? WHERE {cust_id} = ?",
                    region,
                    f"c {turn}",
                    customer,
                )
            elif kind < 0.8:
                # The same key goes and comes back as another row.
                writer.run(f"DELETE FROM {table} WHERE {cust_id} = ?", customer)
                writer.run(f"INSERT INTO {table} VALUES (?, ?, ?)", customer, f"n {turn}", region)
            else:
                writer.run(
                    f"UPDATE {profiles} SET {nick} = ? WHERE {p_id} = ?", f"p {turn}", customer % 6
                )

        return work

    def _geo(self, rng: random.Random, turn: int) -> Work:
        table, (region_id, rname) = self.names[REGIONS]
        region = rng.randrange(REGIONS_MAX)

        def work(writer: Writer) -> None:
            if rng.random() < 0.7:
                writer.run(
                    f"UPDATE {table} SET {rname} = ? WHERE {region_id} = ?", f"r {turn}", region
                )
            else:
                writer.replace(table, region_id, {region_id: region, rname: f"again {turn}"})

        return work

    def odd(self, source: str, rng: random.Random, turn: int) -> Work:
        """Values at the edge of what their types can hold, and that every view must bear."""
        table, columns = self.names[ODD[source]]
        row_id = columns[0]
        numbers = _NUMBERS
        texts = _TEXTS
        if source == SHOP:
            numbers = (*numbers, float("nan"), float("inf"), float("-inf"))
        if source == GEO:
            numbers, texts = (*numbers, float("inf")), (*texts, "a\0b")
        row = (turn % 10, rng.choice(numbers), rng.choice(texts))

        def work(writer: Writer) -> None:
            writer.run(f"DELETE FROM {table} WHERE {row_id} = ?", row[0])
            # By their names: there may be more of them by now.
            writer.run(f"INSERT INTO {table} ({', '.join(columns)}) VALUES (?, ?, ?)", *row)

        return work


def _given_up(work: Work) -> Work:
    def given_up(writer: Writer) -> None:
        work(writer)
        raise Abort

    return given_up
