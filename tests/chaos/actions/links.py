"""What happens to the servers and to the ways to them."""

from __future__ import annotations

from chaos.actions.action import Action, Rig
from chaos.scenery import CRM, SHOP

# What a source's own writers may meet while it is down is not our doing.


class _OfServer(Action):
    def draw(self) -> None:
        self.source = self.rng.choice((SHOP, CRM))
        self.seconds = self.rng.uniform(0.5, 4)

    def __str__(self) -> str:
        return f"{self.name} {self.source}"


class _Outage(_OfServer):
    def draw(self) -> None:
        super().draw()
        self.stops = self.source

    def undo(self, rig: Rig) -> None:
        rig.world.servers[self.source].start()


class KillServer(_Outage):
    """kill −9 of a database server, which comes back a little later."""

    name, kind, weight = "kill-server", "server", 2.0

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.world.outages.add(self.source)
        rig.world.servers[self.source].kill()
        rig.wait(self.seconds)


class RestartServer(_Outage):
    """A database server is restarted in order."""

    name, kind, weight = "restart-server", "server", 1.0

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.world.outages.add(self.source)
        rig.world.servers[self.source].shut_down()


class CutLink(_OfServer):
    """The cable is out: nothing arrives, and nobody says so. The writers do not notice."""

    name, kind, weight = "cut-link", "network", 2.0

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.world.ways[self.source].silent.set()
        rig.wait(self.seconds * 2)

    def undo(self, rig: Rig) -> None:
        rig.world.ways[self.source].open_again()


class RefuseLink(_OfServer):
    """Connections are broken, and new ones refused for a while."""

    name, kind, weight = "refuse-link", "network", 1.5

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.world.ways[self.source].close_all()
        rig.wait(self.seconds)

    def undo(self, rig: Rig) -> None:
        rig.world.ways[self.source].open_again()


class SlowLink(_OfServer):
    """Every packet takes its time."""

    name, kind, weight = "slow-link", "network", 1.5

    def draw(self) -> None:
        super().draw()
        self.delay_seconds = self.rng.choice((0.01, 0.05, 0.2))

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.world.ways[self.source].delay_seconds = self.delay_seconds
        rig.wait(self.seconds)

    def undo(self, rig: Rig) -> None:
        rig.world.ways[self.source].open_again()


class StalledStandby(Action):
    """PostgreSQL waits for a standby that is not there: commits are in its log, and nobody sees them."""

    name, kind, weight = "stalled-standby", "server", 1.0
    needs = SHOP

    def draw(self) -> None:
        self.seconds = self.rng.uniform(2, 5)

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.world.outages.add(SHOP)
        self._set(rig, "'nobody'")
        rig.wait(self.seconds)

    def undo(self, rig: Rig) -> None:
        self._set(rig, "''")

    def _set(self, rig: Rig, names: str) -> None:
        with rig.world.client(SHOP) as client:
            client.run(f"ALTER SYSTEM SET synchronous_standby_names = {names}")
            client.run("SELECT pg_reload_conf()")


ACTIONS = (KillServer, RestartServer, CutLink, RefuseLink, SlowLink, StalledStandby)
