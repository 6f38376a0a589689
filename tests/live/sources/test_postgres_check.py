"""``viewkeeper check`` against a real server: findings, the owner's script, setup when allowed."""

import json

import pytest
import typer
from typer.testing import CliRunner

from viewkeeper.cli import check

KIND = "postgres"


@pytest.fixture
def run(tmp_path):
    app = typer.Typer()
    check.register(app)
    app.callback()(lambda: None)

    def run(*words):
        result = CliRunner().invoke(app, ["check", *words, "--project", str(tmp_path)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def project(tmp_path, database):
    writer = database.writer()
    writer.run("CREATE TABLE orders (id BIGINT PRIMARY KEY, qty BIGINT)")
    writer.run("CREATE TABLE unused (id BIGINT PRIMARY KEY)")
    writer.close()
    (tmp_path / "viewkeeper.toml").write_text(f'[sources.shop]\nurl = "{database.url}"\n')
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "sales.sql").write_text(
        "WITH big AS (SELECT * FROM shop.orders) SELECT id FROM big"
    )
    yield tmp_path
    with database.open() as source:
        source.teardown()


def document(result):
    return json.loads(result.stdout)


def test_an_unprepared_source_fails_the_check_with_a_fix_for_every_refusal(run, project):
    result = run("--json")
    assert result.exit_code == 1
    (report,) = document(result)["sources"]
    assert (report["source"], report["kind"], report["relations"]) == (
        "shop",
        "postgres",
        ["orders"],
    )
    refused = [f for f in report["findings"] if f["severity"] == "refused"]
    assert {"publication", "slot", "replica-identity"} <= {f["code"] for f in refused}
    assert all(f["fix"] for f in refused)
    text = run()
    assert text.exit_code == 1
    assert "✗" in text.stdout


def test_the_printed_script_is_what_the_owner_needs_to_run(rig, database, run, project):
    script = run("--setup-sql", "shop").stdout
    assert "unused" not in script
    rig.server.run_script(script, database.name)
    writer = database.writer()
    names = writer.fetch("SELECT slot_name FROM pg_replication_slots")
    assert ("viewkeeper_shop",) in names
    assert run("--json").exit_code == 0
    writer.run("SELECT pg_drop_replication_slot('viewkeeper_shop')")
    for statement in (
        "DROP EVENT TRIGGER viewkeeper_shop_ddl",
        "DROP EVENT TRIGGER viewkeeper_shop_rewrite",
        "DROP PUBLICATION viewkeeper_shop",
        "DROP SCHEMA viewkeeper_shop CASCADE",
    ):
        writer.run(statement)
    writer.close()


def test_setup_happens_only_when_it_is_allowed(database, run, project):
    run()
    assert database.leftovers() == []
    assert run("--allow-setup").exit_code == 0
    assert run("--json").exit_code == 0
    assert "event trigger viewkeeper_shop_ddl" in database.leftovers()


def test_a_source_that_can_not_be_reached_is_a_finding(run, tmp_path):
    (tmp_path / "viewkeeper.toml").write_text(
        '[sources.shop]\nurl = "postgresql://u:hunter2@127.0.0.1:1/shop"\n'
    )
    result = run("--json")
    assert result.exit_code == 1
    (report,) = document(result)["sources"]
    assert report["findings"][0]["code"] == "link-lost"
    assert "is the server running" in report["findings"][0]["fix"]
    assert "hunter2" not in result.stdout
