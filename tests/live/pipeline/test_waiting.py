"""Is my write in? Whoever waits, audits or begins anew sees at once what the run has passed.

Positions without rows are noted in the ledger now and then only. Here that period never ends, so nothing
in these tests can rest on it.
"""

from __future__ import annotations

import functools
import json

import pytest

from live.pipeline.test_rebuild import TABLES, VIEWS, BackgroundRun, command
from viewkeeper.live.context import Limits
from viewkeeper.project import keeper as keeper_module
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

NEVER_SECONDS = 1e6
PATIENCE = "120"


@pytest.fixture
def project(shop, running_spark, monkeypatch):
    limits = functools.partial(Limits, idle_seconds=NEVER_SECONDS)
    monkeypatch.setattr(keeper_module, "Limits", limits)
    for source, table in TABLES.items():
        shop.run(source, f"CREATE TABLE {table} (id bigint PRIMARY KEY, amount bigint)")
        shop.run(source, "CREATE TABLE unread (id bigint PRIMARY KEY)")
        shop.run(source, f"INSERT INTO {table} VALUES (1, 5), (2, 2)")
    for name, text in VIEWS.items():
        shop.write_view(name, text)
    return shop


def bound(shop, source: str) -> dict:
    with Keeper.open(shop.folder) as keeper, keeper.source(source).cut(()) as cut:
        return dict(cut.bound)


def epochs(shop) -> int:
    """How many there are; entries of the housekeeping do not count."""
    with Keeper.open(shop.folder) as keeper:
        return keeper.warehouse(with_spark=False).latest().epoch


def test_wait_returns_without_an_idle_period_on_every_database(project):
    folder = str(project.folder)
    with BackgroundRun(project.folder, allow_setup=True) as run:
        run.await_event("loaded")
        for source, table in TABLES.items():
            project.run(source, f"UPDATE {table} SET amount = 7 WHERE id = 1")
            project.run(source, "INSERT INTO unread VALUES (1)")
            code, told = command(
                "wait", "--source", source, "--timeout", PATIENCE, "--project", folder
            )
            assert (code, told["included"]) == (0, True), told
        noted = epochs(project)
        # What the ledger has needs no epoch: waiting once more for the same place adds none.
        position = json.dumps(told["position"])
        again = ("--source", source, "--position", position, "--timeout", "0")
        assert command("wait", *again, "--project", folder)[0] == 0
        assert epochs(project) == noted


def test_one_wait_is_one_epoch_for_each_group_over_its_source(project):
    with BackgroundRun(project.folder, allow_setup=True) as run:
        run.await_event("loaded")
        command("wait", "--source", "crm", "--timeout", PATIENCE, "--project", str(project.folder))
        before = epochs(project)
        for n in range(20):
            project.run("crm", f"INSERT INTO unread VALUES ({n})")
        words = ("--source", "crm", "--timeout", PATIENCE, "--project", str(project.folder))
        assert command("wait", *words)[0] == 0
        assert epochs(project) <= before + 1  # the one group over crm; twenty positions


def test_what_a_run_passed_is_known_when_it_has_ended(project):
    with Keeper.open(project.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    for source in TABLES:
        project.run(source, "INSERT INTO unread VALUES (1)")
    targets = {source: bound(project, source) for source in TABLES}
    with Keeper.open(project.folder) as keeper:
        keeper.run_until_caught_up()
    with Keeper.open(project.folder) as keeper:
        for source, target in targets.items():
            assert keeper.is_included(source, target), source


def test_an_audit_after_a_taken_schema_change_does_not_meet_it_again(project):
    with BackgroundRun(project.folder, allow_setup=True) as run:
        run.await_event("loaded")
        for source, table in TABLES.items():
            project.run(source, f"ALTER TABLE {table} ADD COLUMN note varchar(20)")
            run.await_event(
                "schema_changed", lambda event, source=source: event["source"] == source
            )
        code, told = command("audit", "--project", str(project.folder))
        assert code == 0, told
    code, told = command("audit", "--project", str(project.folder))
    assert code == 0, told


def test_an_audit_without_a_run_takes_a_schema_change_first(project):
    with Keeper.open(project.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    for source, table in TABLES.items():
        project.run(source, f"ALTER TABLE {table} ADD COLUMN note varchar(20)")
        project.run(source, f"UPDATE {table} SET amount = 9 WHERE id = 2")
    code, told = command("audit", "--project", str(project.folder))
    assert code == 0, told
    assert {each["view"] for each in told["views"]} == set(VIEWS)
