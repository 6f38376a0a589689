"""Faults after which the log can't be read on: `run` says so by name, and never goes on as if."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

from chaos.actions.action import Permanent, Rig
from chaos.scenery import CRM, GEO, SHOP

TRACE_SECONDS_MAX = 120.0
PURGE_SECONDS_MAX = 60.0


class SlotDropped(Permanent):
    """Somebody drops our replication slot, and the log goes on without us."""

    name, source = "slot-dropped", SHOP
    may_end_with = frozenset({"no-slot", "feed-gap"})

    def do(self, rig: Rig) -> None:
        rig.run.kill()
        with rig.witness.locks[SHOP], rig.world.client(SHOP) as client:
            for (slot,) in client.fetch("SELECT slot_name FROM pg_replication_slots"):
                client.run(
                    "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots "
                    f"WHERE slot_name = '{slot}' AND active_pid IS NOT NULL"
                )
                client.run(f"SELECT pg_drop_replication_slot('{slot}')")
        rig.witness.await_commits(8, 20)
        rig.run.start()


class LogPurged(Permanent):
    """MariaDB's binary log is purged while nobody reads it."""

    name, source = "log-purged", CRM
    may_end_with = frozenset({"feed-gap"})

    def do(self, rig: Rig) -> None:
        rig.run.kill()
        rig.witness.await_commits(12, 30)
        with rig.witness.locks[CRM], rig.world.client(CRM) as client:
            # A transaction that is surely in the part that goes.
            client.run("UPDATE profiles SET nick = 'purged' WHERE p_id = 5")
            client.run("FLUSH BINARY LOGS")
            newest = client.fetch("SHOW BINARY LOGS")[-1][0]
            # The server keeps, without a word, what it still believes the killed run to be reading.
            deadline = time.monotonic() + PURGE_SECONDS_MAX
            while client.fetch("SHOW BINARY LOGS")[0][0] != newest:
                assert time.monotonic() < deadline, "the log could not be purged"
                client.run(f"PURGE BINARY LOGS TO '{newest}'")
                time.sleep(0.2)
            rig.witness.record(CRM, client)
        rig.run.start()


class Restored(Permanent):
    """A database is put back to a copy of earlier, and written to: its history forks."""

    name = "restored-backup"
    weight = 0.8
    may_end_with = frozenset({"feed-gap", "different-history", "history-changed", "no-slot"})

    def draw(self) -> None:
        # PostgreSQL does not tell: a copy that is put back as files has the same identity and timeline.
        self.source = self.rng.choice((CRM, GEO))

    def __str__(self) -> str:
        return f"{self.name} {self.source}"

    def do(self, rig: Rig) -> None:
        rig.run.start()
        self._copy(rig)
        self._leave_a_trace(rig)
        rig.run.kill()
        with rig.witness.locks[self.source]:
            rig.world.outages.add(self.source)
            self._put_back(rig)
            rig.witness.reopen(self.source)
        # Long enough that positions are beyond those that the ledger has.
        rig.witness.await_commits(25, 60)
        rig.run.start()

    def _leave_a_trace(self, rig: Rig) -> None:
        """Something that the views have and the copy has not: else nothing was lost."""
        key, view, sql = {
            SHOP: (800_000, "orders_now", "INSERT INTO orders VALUES (800000, 1, 1)"),
            CRM: (800_000, "customers_now", "INSERT INTO customers VALUES (800000, 'lost', 1)"),
            GEO: (800_000, "regions_now", "INSERT INTO regions VALUES (800000, 'lost')"),
        }[self.source]
        with rig.witness.owner(self.source) as owner:
            owner.run(sql)
        deadline = time.monotonic() + TRACE_SECONDS_MAX
        while time.monotonic() < deadline:
            shown = rig.world.warehouse.read_arrow(view)
            if key in shown.column(0).to_pylist():
                return
            rig.run.await_batches(1, 5)
        raise AssertionError(f"{self}: a transaction did not show in {TRACE_SECONDS_MAX} s")

    def _copy(self, rig: Rig) -> None:
        backup = rig.world.folder / "backup"
        shutil.rmtree(backup, ignore_errors=True)
        with rig.witness.locks[self.source]:
            if self.source == GEO:
                backup.mkdir()
                with (
                    sqlite3.connect(rig.world.sqlite_path) as live,
                    sqlite3.connect(backup / "geo.db") as copy,
                ):
                    live.backup(copy)
                return
            server = rig.world.servers[self.source]
            rig.world.outages.add(self.source)
            server.shut_down()
            _copy_tree(server.data_folder, backup)
            server.start()
            rig.witness.reopen(self.source)

    def _put_back(self, rig: Rig) -> None:
        backup = rig.world.folder / "backup"
        if self.source == GEO:
            # Over the live file, page by page, as `.restore` of SQLite's shell does.
            with (
                sqlite3.connect(backup / "geo.db") as copy,
                sqlite3.connect(rig.world.sqlite_path, timeout=60) as live,
            ):
                copy.backup(live)
            return
        server = rig.world.servers[self.source]
        server.shut_down()
        shutil.rmtree(server.data_folder)
        _copy_tree(backup, server.data_folder)
        server.start()


def _copy_tree(source: Path, target: Path) -> None:
    """With owners and modes, which a server insists on."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


class _Poison(Permanent):
    """A value that the type of its column can't hold here."""

    may_end_with = frozenset({"poison-row", "value-out-of-range"})


class PoisonDate(_Poison):
    """PostgreSQL has dates beyond the year 9999."""

    name, source = "poison-date", SHOP

    def do(self, rig: Rig) -> None:
        rig.run.start()
        with rig.world.client(SHOP) as client:
            client.run("UPDATE dates SET day = '99999-01-01' WHERE id = 1")

    def undo(self, rig: Rig) -> None:
        with rig.world.client(SHOP) as client:
            client.run("UPDATE dates SET day = '2026-01-01' WHERE id = 1")


class PoisonText(_Poison):
    """SQLite takes a text for an integer."""

    name, source = "poison-text", GEO

    def do(self, rig: Rig) -> None:
        rig.run.start()
        with rig.world.client(GEO) as client:
            client.run("UPDATE strict_numbers SET n = 'no number' WHERE id = 1")

    def undo(self, rig: Rig) -> None:
        with rig.world.client(GEO) as client:
            client.run("UPDATE strict_numbers SET n = 2 WHERE id = 1")


ACTIONS = (SlotDropped, LogPurged, Restored, PoisonDate, PoisonText)
