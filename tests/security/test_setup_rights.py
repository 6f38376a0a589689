"""The printed set-up script makes users whom only we can be: a password, one host, TLS, the least rights."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from security.certificates import Certificates, make_certificates
from security.test_tls import read_everything
from viewkeeper.cli import execute
from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.mariadb.setup import account, generated_password
from viewkeeper.sources.opening import open_source
from viewkeeper.sources.urls import parse_source_url
from viewkeeper.testing.mariadb import PrivateMariaDB, mariadbd_missing

# Leads to this machine, and does not say so: see test_links.
FAR = "127.1"


def script_for(url: str, feed_url: str | None = None) -> str:
    with open_source("crm", url, feed_url=feed_url) as source:
        return source.setup_sql(["t"])


def test_no_user_is_made_without_a_password_nor_for_every_host():
    text = script_for("mariadb://keeper@127.0.0.1:1/d", "mariadb://feeder@127.0.0.1:1/d")
    made = [line for line in text.splitlines() if line.startswith("CREATE USER")]
    assert len(made) == 2
    words = set()
    for line in made:
        assert "@'127.0.0.1' IDENTIFIED BY '" in line
        words.add(re.search(r"IDENTIFIED BY '([^']{32,})'", line)[1])
    assert len(words) == 2
    assert "'%'" not in text
    assert "REQUIRE SSL" not in text  # it stays on this machine
    for word in words:
        assert f"='{word}'" in text  # and where to put it
    assert not words & set(re.findall(r"[\w-]{32,}", script_for("mariadb://keeper@127.0.0.1:1/d")))


def test_the_script_is_printed_before_there_is_a_password(tmp_path, capsys, monkeypatch):
    """It makes the password that the variable is to hold."""
    monkeypatch.delenv("CRM_PASSWORD", raising=False)
    (tmp_path / "viewkeeper.toml").write_text(
        '[sources.crm]\nurl = "mariadb://keeper:${CRM_PASSWORD}@127.0.0.1:1/d"\n'
    )
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "v.sql").write_text("SELECT t.id FROM crm.t t")
    assert execute(["check", "--setup-sql", "crm", "--project", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "export CRM_PASSWORD='" in text
    assert "GRANT SELECT ON `d`.`t` TO 'keeper'@'127.0.0.1';" in text


def test_off_this_machine_tls_is_required_and_the_host_can_be_named():
    text = script_for("mariadb://keeper@db2/d?account_host=10.0.0.7")
    assert "'keeper'@'10.0.0.7' IDENTIFIED BY" in text
    assert "ALTER USER 'keeper'@'10.0.0.7' REQUIRE SSL;" in text
    assert "REQUIRE SSL" not in script_for("mariadb://k@db2/d?account_host=10.0.0.7&insecure=yes")
    with pytest.raises(UsageError) as caught:
        script_for("mariadb://keeper@no-such-host.invalid/d")
    assert caught.value.code == "unknown-account-host"


@pytest.mark.parametrize("name", ["o'hara", "a\\", "a' IDENTIFIED BY '", "x'; DROP USER root; --"])
def test_a_hostile_name_is_a_name(name):
    made = account(
        parse_source_url(f"mariadb://{name.replace('%', '%25')}@h/d?account_host={name}", "s")
    )
    assert re.fullmatch(r"'(?:[^'\\]|''|\\\\)*'@'(?:[^'\\]|''|\\\\)*'", made)


def test_generated_passwords_have_characters_of_every_kind():
    for _ in range(50):
        made = generated_password()
        assert len(made) >= 32
        for kind in ("[a-z]", "[A-Z]", "[0-9]", "[-_]"):
            assert re.search(kind, made)


@pytest.fixture(scope="module")
def certificates() -> Iterator[Certificates]:
    with tempfile.TemporaryDirectory(prefix="viewkeeper-certificates-") as folder:
        Path(folder).chmod(0o755)
        yield make_certificates(Path(folder))


@pytest.mark.skipif(bool(mariadbd_missing()), reason="there is no MariaDB server")
def test_the_script_is_run_and_is_enough_and_no_more(certificates):
    settings = {"ssl-cert": str(certificates.certificate), "ssl-key": str(certificates.key)}
    with PrivateMariaDB(settings=settings) as server:
        address = f"{FAR}:{server.port}/d?ssl_ca={certificates.authority}"
        text = script_for(f"mariadb://keeper@{address}", f"mariadb://feeder@{address}")
        with server.connect(autocommit=True) as db, db.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("CREATE TABLE d.t (id bigint PRIMARY KEY)")
            cursor.execute("CREATE TABLE d.hidden (id bigint PRIMARY KEY)")
            cursor.execute("INSERT INTO d.t VALUES (1)")
            for _ in range(2):  # it may be run again
                for line in text.splitlines():
                    if line and not line.startswith("--"):
                        cursor.execute(line.partition(";")[0])
            cursor.execute(
                "SELECT User, Host, Password FROM mysql.user WHERE User IN ('keeper', 'feeder')"
            )
            found = cursor.fetchall()
        assert {(user, host) for user, host, _ in found} == {
            ("keeper", "127.0.0.1"),
            ("feeder", "127.0.0.1"),
        }
        assert all(password for *_, password in found)
        keeper, feeder = re.findall(r"IDENTIFIED BY '([^']*)'", text)
        urls = [
            f"mariadb://{user}:{word}@{address}"
            for user, word in (("keeper", keeper), ("feeder", feeder))
        ]
        with open_source("crm", urls[0], feed_url=urls[1]) as source:
            assert [f for f in source.preflight(["t"]) if f.severity == "refused"] == []
            with source.feed(["t"], source.start_position()) as feed:
                feed.poll(0.1)
            with source.cut(["t"]) as cut:
                assert "t" in cut.schemas
            assert "hidden" not in source.schemas()
        # Not without TLS, also with the password; and nothing can be written.
        plain = f"mariadb://keeper:{keeper}@{FAR}:{server.port}/d?ssl=disabled&insecure=yes"
        with pytest.raises(SourceError, match="access-denied"):
            read_everything(plain)
        login = {"host": "127.0.0.1", "port": server.port, "user": "keeper", "password": keeper}
        with (
            pymysql.connect(**login, ssl={"ca": str(certificates.authority)}) as link,
            link.cursor() as cursor,
        ):
            for statement in (
                "INSERT INTO d.t VALUES (2)", "DROP TABLE d.t", "CREATE TABLE d.x (a int)",
                "SELECT * FROM d.hidden", "CREATE USER mallory", "SET GLOBAL general_log = ON",
                "GRANT SELECT ON d.t TO feeder@'127.0.0.1'",
            ):  # fmt: skip
                with pytest.raises(pymysql.MySQLError):
                    cursor.execute(statement)
