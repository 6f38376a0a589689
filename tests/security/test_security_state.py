"""``check`` and ``status`` tell what each link is, which rights are too many, and who may read the files."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from viewkeeper.cli import execute
from viewkeeper.errors import UsageError
from viewkeeper.project.security import link_finding, open_to
from viewkeeper.sources.interface import LinkState
from viewkeeper.sources.mariadb.security import judged
from viewkeeper.testing.mariadb import PrivateMariaDB, mariadbd_missing
from viewkeeper.testing.postgres import EmbeddedPostgres
from viewkeeper.warehouse.storage import Storage

pytestmark = pytest.mark.xdist_group("postgres")

HASH = "*00E247AC5F9AF26AE0194B41E1E769DEE1429A29"


@pytest.mark.parametrize(
    ("link", "code"),
    [
        (LinkState("k", "network", "TLSv1.3", True, "scram-sha-256"), "link"),
        (LinkState("k", "network", "TLSv1.3", False, "scram-sha-256"), "insecure-link"),
        (LinkState("k", "network"), "insecure-link"),
        (LinkState("k", "loopback", None, False, "none"), "no-authentication"),
        (LinkState("k", "loopback", None, False, "scram-sha-256"), "link"),
        (LinkState("k", "socket"), "link"),
        (LinkState("k", "file"), "link"),
    ],
)
@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_what_a_link_is_is_said(kind, link, code):
    found = link_finding(kind, link)
    assert found.code == code
    assert (found.severity == "ok") == (code == "link")
    assert bool(found.fix) == (code != "link")
    if link.tls:
        assert "TLSv1.3" in found.message


@pytest.mark.parametrize(
    ("grants", "codes"),
    [
        ([f"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `k`@`h` IDENTIFIED BY PASSWORD '{HASH}'",
          "GRANT SELECT ON `d`.`t` TO `k`@`h`", "GRANT SELECT (a, b) ON `d`.`u` TO `k`@`h`"],
         ["least-rights"]),
        (["GRANT USAGE ON *.* TO `k`@`h`"], ["no-password"]),
        ([f"GRANT ALL PRIVILEGES ON *.* TO `k`@`h` IDENTIFIED BY PASSWORD '{HASH}' WITH GRANT OPTION"],
         ["needless-rights"]),
        ([f"GRANT SUPER, FILE, BINLOG MONITOR ON *.* TO `k`@`h` IDENTIFIED BY PASSWORD '{HASH}'",
          "GRANT SELECT, INSERT ON `d`.* TO `k`@`h`"], ["needless-rights", "needless-rights"]),
        ([f"GRANT SELECT ON *.* TO `k`@`h` IDENTIFIED BY PASSWORD '{HASH}'"], ["needless-rights"]),
    ],
)  # fmt: skip
def test_rights_beyond_need_are_named_with_what_takes_them_away(grants, codes):
    found = list(judged("k@h", grants))
    assert [finding.code for finding in found] == codes
    for finding in found:
        assert HASH not in f"{finding}"
        assert finding.severity == ("ok" if finding.code == "least-rights" else "warning")
        if finding.code == "needless-rights":
            assert finding.fix.startswith("REVOKE ")
            assert "BINLOG MONITOR" not in finding.fix


def test_a_user_of_every_host_is_told():
    grants = [f"GRANT USAGE ON *.* TO `k`@`%` IDENTIFIED BY PASSWORD '{HASH}'"]
    assert [finding.code for finding in judged("k@%", grants)] == ["any-host"]


@pytest.mark.parametrize(
    ("mode", "forbidden", "code"),
    [(448, 63, "permissions"), (493, 63, "open-permissions"), (488, 63, "open-permissions"), (488, 23, "permissions"), (504, 23, "open-permissions")],
)  # fmt: skip
def test_who_may_get_at_a_folder_is_told(tmp_path, mode, forbidden, code):
    folder = tmp_path / "warehouse"
    folder.mkdir()
    folder.chmod(mode)
    found = open_to(folder, forbidden)
    assert found.code == code
    assert found.fix.startswith("chmod") == (code != "permissions")


def test_a_store_in_the_clear_must_be_asked_for():
    far = {"AWS_ENDPOINT_URL": "http://store.example:9000"}
    with pytest.raises(UsageError) as caught:
        Storage.at("s3://bucket/warehouse", far)
    assert caught.value.code == "insecure-link"
    assert Storage.at("s3://bucket/w", far | {"AWS_ALLOW_HTTP": "true"}).is_in_the_clear
    for endpoint in ("https://store.example", "http://127.0.0.1:9000", "http://[::1]:9000"):
        assert not Storage.at("s3://bucket/w", {"aws_endpoint_url": endpoint}).is_in_the_clear


# -- at real servers ---------------------------------------------------------------------------

PROJECT = """
[sources.shop]
url = "postgresql://{shop}/postgres"
[sources.crm]
url = "mariadb://{crm}/crm"
[sources.geo]
url = "sqlite:///geo.db"
"""


def told(capsys, command: str, folder: Path) -> dict[str, list[dict]]:
    """The items by subject and area."""
    capsys.readouterr()
    execute([command, "--json", "--project", str(folder)])
    found: dict[str, list[dict]] = {}
    for item in json.loads(capsys.readouterr().out)["security"]:
        assert item["severity"] == "ok" or item["fix"], item
        found.setdefault(f"{item['subject']} {item['area']}", []).append(item)
    return found


def codes(items: list[dict]) -> list[str]:
    return [item["code"] for item in items]


def await_rules(url: str) -> None:
    """Until the server, which reads its rules again when it gets to it, lets no one in by name alone."""
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            return
        time.sleep(0.1)


@pytest.mark.skipif(bool(mariadbd_missing()), reason="there is no MariaDB server")
def test_check_and_status_tell_the_same_of_real_servers(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("VIEWKEEPER_TOKEN", raising=False)
    (tmp_path / "views").mkdir()
    with closing(sqlite3.connect(tmp_path / "geo.db")) as database:
        database.execute("CREATE TABLE towns (id integer PRIMARY KEY)")
    with EmbeddedPostgres() as server, PrivateMariaDB() as maria:
        with psycopg.connect(server.url(), autocommit=True) as db:
            db.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
            db.execute("CREATE ROLE keeper LOGIN REPLICATION PASSWORD 'word'")
            db.execute("GRANT SELECT ON t TO keeper")
        with maria.connect(autocommit=True) as link, link.cursor() as cursor:
            cursor.execute("CREATE DATABASE crm")
            cursor.execute("CREATE TABLE crm.t (id bigint PRIMARY KEY)")
            cursor.execute("CREATE USER keeper@'127.0.0.1' IDENTIFIED BY 'word'")
            cursor.execute("GRANT SELECT ON crm.t TO keeper@'127.0.0.1'")
            cursor.execute("GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO keeper@'127.0.0.1'")
        file = tmp_path / "viewkeeper.toml"
        file.write_text(
            PROJECT.format(
                shop=f"postgres@127.0.0.1:{server.port}", crm=f"root@127.0.0.1:{maria.port}"
            )
        )
        (tmp_path / "geo.db").chmod(0o666)
        for command in ("check", "status"):
            found = told(capsys, command, tmp_path)
            assert codes(found["source shop link"]) == [
                "no-authentication"
            ]  # the server trusts all
            assert "SUPERUSER" in found["source shop rights"][0]["message"]
            assert {"needless-rights", "no-password"} <= set(codes(found["source crm rights"]))
            assert codes(found["source geo rights"]) == ["open-file"]
        access = server.data_folder / "pg_hba.conf"
        access.write_text("host all keeper 127.0.0.1/32 scram-sha-256\n" + access.read_text())
        with psycopg.connect(server.url(), autocommit=True) as db:
            db.execute("SELECT pg_reload_conf()")
        await_rules(f"postgresql://keeper@127.0.0.1:{server.port}/postgres")
        file.write_text(
            PROJECT.format(
                shop=f"keeper:word@127.0.0.1:{server.port}",
                crm=f"keeper:word@127.0.0.1:{maria.port}",
            )
        )
        (tmp_path / "geo.db").chmod(0o600)
        file.chmod(0o644)
        for command in ("check", "status"):
            found = told(capsys, command, tmp_path)
            [shop], [crm] = found["source shop link"], found["source crm link"]
            assert shop["link"]["authentication"] == "scram-sha-256"
            assert crm["link"]["authentication"] == "mysql_native_password"
            assert (shop["code"], crm["code"]) == ("link", "link")
            for name in ("shop", "crm", "geo"):
                assert codes(found[f"source {name} rights"]) == ["least-rights"]
            assert codes(found["dashboard token"]) == ["token"]
            # The file itself holds the passwords, and others can read it.
            assert codes(found["viewkeeper.toml permissions"]) == ["open-permissions"]
        capsys.readouterr()
        execute(["check", "--project", str(tmp_path)])
        text = capsys.readouterr().out
        assert "authenticated by scram-sha-256" in text
        assert "chmod -R go-rwx" in text
        assert "word@" not in text
        with psycopg.connect(server.url(), autocommit=True) as db:
            db.execute("GRANT UPDATE ON t TO keeper")
            db.execute("ALTER ROLE keeper CREATEROLE BYPASSRLS")
            db.execute("GRANT pg_write_all_data TO keeper")
        rights = " ".join(
            i["message"] + i["fix"] for i in told(capsys, "check", tmp_path)["source shop rights"]
        )
        for word in ("CREATEROLE", "BYPASSRLS", "pg_write_all_data", "REVOKE INSERT, UPDATE"):
            assert word in rights
