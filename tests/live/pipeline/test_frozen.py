"""A schema change that waits for approval: everything that is asked says so, and nothing says "well"."""

from __future__ import annotations

import datetime as dt

import pytest

from live.pipeline.test_rebuild import PATIENCE_SECONDS, BackgroundRun, command
from viewkeeper.cli import execute
from viewkeeper.dashboard.project_monitor import ProjectMonitor
from viewkeeper.project.config import read_project
from viewkeeper.reports.metrics import Metrics
from viewkeeper.reports.run_state import read_run_state
from viewkeeper.run_events import event_from_dict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLES = {"shop": "orders", "crm": "customers", "geo": "regions"}


class Watched(BackgroundRun):
    """A run whose events also go into metrics, as `viewkeeper run --metrics-port` has it."""

    def __init__(self, folder) -> None:
        super().__init__(folder, allow_setup=True)
        self.metrics = Metrics()

    def await_event(self, name, fits=lambda event: True):
        def counted(event):
            if (told := event_from_dict(event)) is not None:
                self.metrics.on_event(told)
            return event["event"] == name and fits(event)

        event = self.events.get(timeout=PATIENCE_SECONDS)
        while not counted(event):
            assert event["event"] != "over", self.error
            event = self.events.get(timeout=PATIENCE_SECONDS)
        return event

    def figure(self, name: str) -> float:
        found = [x for x in self.metrics.text().splitlines() if x.startswith(f"{name} ")]
        return float(found[0].split()[-1])


@pytest.mark.parametrize("source", TABLES)
def test_a_view_that_waits_for_a_word_is_not_well(source, shop, running_spark):
    table = TABLES[source]
    shop.run(source, f"CREATE TABLE {table} (id bigint PRIMARY KEY, amount bigint)")
    shop.run(source, "CREATE TABLE others (id bigint PRIMARY KEY, amount bigint)")
    shop.run(source, f"INSERT INTO {table} VALUES (1, 5)")
    shop.write_view("frozen", f"-- evolve: approve\nSELECT id, amount FROM {source}.{table}")
    shop.write_view("moving", f"SELECT id, amount FROM {source}.others")
    url = shop.databases[source].url
    written = f'[spark]\nmaster = "local[2]"\n[sources.{source}]\nurl = "{url}"\n'
    (shop.folder / "viewkeeper.toml").write_text(written)
    folder = str(shop.folder)
    with Watched(shop.folder) as run:
        run.await_event("loaded")
        shop.run(source, f"INSERT INTO {table} VALUES (2, 6)")
        run.await_change("frozen")
        assert execute(["status", "--check", "--project", folder]) == 0

        shop.run(source, f"ALTER TABLE {table} RENAME COLUMN amount TO total")
        shop.run(source, f"UPDATE {table} SET total = 7 WHERE id = 2")
        told = run.await_event("standing", lambda e: e["approvals"] and e["views"]["frozen"])
        # The rest of the run goes on, and says so: that must not cover it.
        shop.run(source, "INSERT INTO others VALUES (1, 1)")
        run.await_change("moving")

        code, found = command("status", "--check", "--project", folder)
        assert (code, found["ok"]) == (1, False)
        (change,) = found["approvals"]
        assert (change["source"], change["relation"]) == (source, table)
        assert change["views"] == ["frozen"]
        assert found["views"]["frozen"]["state"] == "waits for approval"
        assert found["views"]["moving"]["state"] == "running"
        assert any("waits for your word" in problem for problem in found["problems"])
        since = dt.datetime.fromisoformat(told["views"]["frozen"])
        age = (dt.datetime.now(dt.UTC) - since).total_seconds()
        assert run.figure("viewkeeper_freshness_seconds") > age - 0.1  # it is rounded
        assert run.figure("viewkeeper_pending_approvals") == 1
        assert dashboard_verdicts(shop) == {"frozen": "bad", "moving": "good", "run": "bad"}

        assert execute(["evolve", "--approve", change["id"], "--project", folder]) == 0
        run.await_event("standing", lambda e: not any((e["approvals"], *e["views"].values())))
        assert run.figure("viewkeeper_freshness_seconds") == 0
        assert run.figure("viewkeeper_pending_approvals") == 0
        assert read_run_state(shop.folder)["state"] == "running"
        assert execute(["status", "--check", "--project", folder]) == 0


def dashboard_verdicts(shop) -> dict[str, str]:
    monitor = ProjectMonitor(read_project(shop.folder))
    try:
        moment = monitor.moment()
    finally:
        monitor.close()
    views = {name: view["health"]["verdict"] for name, view in moment["views"].items()}
    return views | {"run": moment["health"]["verdict"]}
