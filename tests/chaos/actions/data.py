"""Transactions out of the ordinary: very large, very long, crossing each other."""

from __future__ import annotations

from chaos.actions.action import Action, Rig
from chaos.scenery import CRM, CUSTOMERS, ORDERS, SHOP
from live.sources.rig import Writer

GROUPS = 50


class Huge(Action):
    """A transaction of very many rows comes, and a part of it goes again."""

    name, kind, weight = "huge-transaction", "data", 1.0

    def draw(self) -> None:
        self.source = self.needs = self.rng.choice((SHOP, CRM))
        self.share = self.rng.choice((2, 3, 7))

    def __str__(self) -> str:
        return f"{self.name} {self.source}"

    def do(self, rig: Rig) -> None:
        rig.run.start()
        view = f"bulk_{self.source}"
        with rig.world.client(self.source) as client:
            [(start,)] = client.fetch("SELECT COALESCE(MAX(id), 0) + 1 FROM bulk")
            client.begin()
            client.run(_series(self.source, start, rig.bulk_rows))
            client.commit()
            rig.witness.record_bulk(view)
            client.begin()
            client.run(f"DELETE FROM bulk WHERE id < {start} OR id % {self.share} = 0")
            client.commit()
            rig.witness.record_bulk(view)


def _series(source: str, start: int, rows: int) -> str:
    end = start + rows - 1
    if source == SHOP:
        return f"INSERT INTO bulk SELECT n, n % {GROUPS}, n % 1000 FROM generate_series({start}, {end}) n"
    return f"INSERT INTO bulk SELECT seq, seq % {GROUPS}, seq % 1000 FROM seq_{start}_to_{end}"


class Long(Action):
    """A transaction begins early, others overtake it, and it commits at the end of the round."""

    name, kind, weight = "long-transaction", "data", 1.5

    def draw(self) -> None:
        self.source = self.needs = self.rng.choice((SHOP, CRM))
        self.key = 500_000 + self.rng.randrange(100_000)
        self.seconds = self.rng.uniform(1, 4)
        self.aborts = self.rng.random() < 0.3

    def __str__(self) -> str:
        return f"{self.name} {self.source}"

    def do(self, rig: Rig) -> None:
        rig.run.start()
        self._writer: Writer | None = rig.world.writer(self.source)
        name = ORDERS if self.source == SHOP else CUSTOMERS
        # A row that nobody else means: the others must not wait for it.
        with rig.witness.locks[self.source]:
            table, _ = rig.witness.traffic.names[name]
            self._writer.begin()
            other = "1, 1" if self.source == SHOP else "'long', 1"
            self._writer.run(f"INSERT INTO {table} VALUES ({self.key}, {other})")
        rig.wait(self.seconds)

    def undo(self, rig: Rig) -> None:
        writer = getattr(self, "_writer", None)
        if writer is None:
            return
        with rig.witness.locks[self.source]:
            try:
                if self.aborts:
                    writer.abort()
                else:
                    writer.commit()
            except Exception:
                # Its server was killed meanwhile: it is rolled back.
                if self.source not in rig.world.outages:
                    raise
        writer.close()
        with rig.witness.owner(self.source):
            pass  # sees what it did, and records it


ACTIONS = (Huge, Long)
