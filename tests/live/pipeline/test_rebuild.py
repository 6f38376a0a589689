"""A source that can't go on stops its own views alone, and a rebuild brings them back beside the run."""

from __future__ import annotations

import contextlib
import io
import json
import queue
import shutil
import threading
from collections.abc import Callable
from typing import Any

import pytest

from viewkeeper.cli import execute
from viewkeeper.errors import SourceError
from viewkeeper.project.keeper import Keeper
from viewkeeper.reports.run_state import RunState
from viewkeeper.run_events import RunEvent

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLES = {"shop": "orders", "crm": "customers", "geo": "regions"}
VIEWS = {
    "big": "SELECT id, amount FROM shop.orders WHERE amount > 3",
    "per_amount": "SELECT amount, COUNT(*) AS n FROM shop.orders GROUP BY amount",
    "people": "SELECT id, amount FROM crm.customers",
    "places": "SELECT id, amount FROM geo.regions",
}
OVER = {"shop": ["big", "per_amount"], "crm": ["people"], "geo": ["places"]}
PATIENCE_SECONDS = 300


@pytest.fixture
def project(shop):
    for source, table in TABLES.items():
        shop.run(source, f"CREATE TABLE {table} (id bigint PRIMARY KEY, amount bigint)")
        shop.run(source, f"INSERT INTO {table} VALUES (1, 5), (2, 2)")
    for name, text in VIEWS.items():
        shop.write_view(name, text)
    return shop


class BackgroundRun:
    """`viewkeeper run` in a thread of this process, which shares its Spark."""

    def __init__(self, folder, **options: Any) -> None:
        self.folder = folder
        self.events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, kwargs=options, daemon=True)

    def _run(self, **options: Any) -> None:
        try:
            with (
                Keeper.open(self.folder, **options) as keeper,
                RunState(self.folder, keeper.views) as state,
            ):

                def on_event(event: RunEvent) -> None:
                    state.on_event(event)
                    self.events.put(event.as_dict())

                keeper.run(on_event=on_event, stop=self._stop)
        except BaseException as error:
            self.error = error
        self.events.put({"event": "over"})

    def __enter__(self) -> BackgroundRun:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def await_event(self, name: str, fits: Callable[[dict], bool] = lambda event: True) -> dict:
        while True:
            event = self.events.get(timeout=PATIENCE_SECONDS)
            if event["event"] == name and fits(event):
                return event
            assert event["event"] != "over", self.error

    def await_change(self, view: str) -> dict:
        return self.await_event("batch", lambda event: view in event["changed"])


def command(*words: str) -> tuple[int, dict]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = execute([*words, "--json"])
    return code, json.loads(out.getvalue())


def rows(shop, view: str) -> list[tuple]:
    with Keeper.open(shop.folder) as keeper:
        table = keeper.warehouse(with_spark=False).read_arrow(view)
    return sorted(tuple(row.values()) for row in table.to_pylist())


def lose_the_slot(shop) -> None:
    shop.run(
        "shop",
        "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots "
        "WHERE database = current_database() AND active_pid IS NOT NULL",
    )
    # The feed comes back within a moment and would hold it: asked again until nobody does.
    while shop.fetch(
        "shop", "SELECT 1 FROM pg_replication_slots WHERE database = current_database()"
    ):
        with contextlib.suppress(Exception):
            shop.run(
                "shop",
                "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots "
                "WHERE database = current_database() AND active_pid IS NOT NULL",
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                "WHERE database = current_database()",
            )


def reset_the_log(shop) -> None:
    shop.run("crm", "FLUSH BINARY LOGS", "RESET MASTER")


def restore_a_backup(shop) -> None:
    path = shop.databases["geo"].path
    shutil.copyfile(path.with_suffix(".backup"), path.with_suffix(".old"))
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.with_suffix(".old").replace(path)


def back_up(shop) -> None:
    path = shop.databases["geo"].path
    shop.run("geo", f"VACUUM INTO '{path.with_suffix('.backup')}'")


FAULTS = {"shop": lose_the_slot, "crm": reset_the_log, "geo": restore_a_backup}
CODES = {"shop": {"feed-gap"}, "crm": {"feed-gap"}, "geo": {"feed-gap"}}


def test_each_kind_of_source_is_rebuilt_beside_the_views_of_the_others(project, running_spark):
    shop, folder = project, str(project.folder)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    back_up(shop)
    shop.run("geo", "INSERT INTO regions VALUES (3, 33)")
    with BackgroundRun(shop.folder) as run:
        for source, fault in FAULTS.items():
            before = {view: rows(shop, view) for view in OVER[source]}
            fault(shop)
            shop.run(source, f"INSERT INTO {TABLES[source]} VALUES (4, 44)")
            stopped = run.await_event("views_stopped")
            assert stopped["views"] == OVER[source]
            assert stopped["error"]["code"] in CODES[source]
            assert f"viewkeeper rebuild --source {source}" in stopped["error"]["hint"]
            # The views of the others go on, and those that stopped keep their state and say so.
            other = next(name for name in TABLES if name != source)
            shop.run(other, f"UPDATE {TABLES[other]} SET amount = amount + 10 WHERE id = 1")
            run.await_change(OVER[other][0])
            assert {view: rows(shop, view) for view in OVER[source]} == before or source == "geo"
            _, status = command("status", "--project", folder)
            assert not status["ok"]
            assert {n for n, v in status["views"].items() if v["error"]} == set(OVER[source])

            code, told = command(
                "rebuild", "--source", source, "--allow-setup", "--project", folder
            )
            assert (code, told["views"]) == (0, OVER[source]), told
            run.await_event("rebuilt")
            assert (4, 44) in rows(shop, OVER[source][0])
            shop.run(source, f"INSERT INTO {TABLES[source]} VALUES (5, 55)")
            run.await_change(OVER[source][0])
            assert (5, 55) in rows(shop, OVER[source][0])
    assert run.error is None
    with Keeper.open(shop.folder) as keeper:
        assert all(audit.is_equal for audit in keeper.audit())
        entries = keeper.warehouse().history()
    rebuilt = [
        (name, state.definition.rebuilt)
        for name, state in entries[-1].shown_views.items()
        if state.definition.rebuilt
    ]
    assert [name for name, _ in rebuilt] == sorted(VIEWS)
    for name, story in rebuilt:
        assert story["level"] == "strong"
        (source,) = story["gap"]["from"]
        assert name in OVER[source]
        assert story["gap"]["from"] != story["gap"]["to"]
        assert "feed-gap" in story["reason"]


def test_a_rebuild_when_nobody_runs_and_one_view_beside_a_run(project, running_spark):
    shop, folder = project, str(project.folder)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    lose_the_slot(shop)
    shop.run("shop", "INSERT INTO orders VALUES (4, 44)")
    # A run that can only fail does so by name; the state stays.
    with Keeper.open(shop.folder) as keeper, pytest.raises(SourceError) as caught:
        keeper.run_until_caught_up()
    assert (caught.value.code, caught.value.retryable) == ("feed-gap", False)
    code, told = command("rebuild", "--source", "shop", "--project", folder)
    assert (code, told["error"]["code"]) == (1, "feed-gap"), told
    assert rows(shop, "big") == [(1, 5)]
    code, told = command("rebuild", "--source", "shop", "--allow-setup", "--project", folder)
    assert (code, sorted(told["views"])) == (0, OVER["shop"]), told
    assert rows(shop, "big") == [(1, 5), (4, 44)]
    _, history = command("history", "--schema", "--project", folder)
    assert history["definitions"][0]["rebuilt"]["gap"]["after_txn"] == told["txn"] - 1

    with BackgroundRun(shop.folder) as run:
        run.await_event("merge")
        code, told = command("rebuild", "people", "--project", folder)
        assert (code, told["views"]) == (0, ["people"]), told
        # The same way a run takes views as they are written now.
        shop.write_view("small", "SELECT id FROM shop.orders WHERE amount < 3")
        (shop.folder / "views" / "places.sql").unlink()
        code, told = command("reload", "--project", folder)
        assert (code, sorted(told["views"])) == (0, ["big", "people", "per_amount", "small"]), told
        assert rows(shop, "small") == [(2,)]
        shop.write_view("small", "SELECT nothing FROM shop.orders")
        code, told = command("reload", "--project", folder)
        assert (code, told["error"]["code"]) == (1, "unknown-column"), told
        shop.run("shop", "INSERT INTO orders VALUES (6, 1)")
        run.await_change("small")
    assert run.error is None
