"""A run with the least rights and marked passwords, from its start to an error: nobody can read them anywhere.

The roles are those that ``check --setup-sql`` prints, no more. Then everything is searched that the run wrote,
said, or shows to other users of the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import psycopg
import pytest

from viewkeeper.cli import execute
from viewkeeper.testing.mariadb import PrivateMariaDB, mariadbd_missing
from viewkeeper.testing.postgres import EmbeddedPostgres

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(bool(mariadbd_missing()), reason="there is no MariaDB server"),
]

# Such as must be written with % in a URL: both forms are searched for.
SHOP_WORD, CRM_WORD = "marked-shop/pass@1", "marked-crm:pass#2"
TRACES = (b"marked-shop", b"marked-crm")
STORE_KEY = "marked-store-key"

PROJECT = """
[sources.shop]
url = "postgresql://keeper:${{SHOP_PASSWORD}}@127.0.0.1:{shop}/postgres"
[sources.crm]
url = "mariadb://keeper:${{CRM_PASSWORD}}@127.0.0.1:{crm}/crm"
[spark]
master = "local[1]"
[spark.config]
"spark.eventLog.enabled" = "true"
"spark.eventLog.dir" = "file:{folder}/events"
"spark.hadoop.fs.s3a.secret.key" = "marked-store-key"
"""
VIEW = """SELECT o.id, o.`it's "here"; --` AS amount, c.name
FROM shop.orders o JOIN crm.customers c ON o.customer = c.id"""


def script_of(capsys, folder: Path, source: str) -> str:
    capsys.readouterr()
    assert execute(["check", "--setup-sql", source, "--project", str(folder)]) == 0
    return capsys.readouterr().out


def set_up(server: EmbeddedPostgres, maria: PrivateMariaDB, folder: Path, capsys) -> None:
    """The owners' part: tables, then the printed scripts, then passwords, and nothing else."""
    with psycopg.connect(server.url(), autocommit=True) as db:
        db.execute("""CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint,
            "it's ""here""; --" bigint)""")
        db.execute("INSERT INTO orders VALUES (1, 1, 5)")
        db.execute("CREATE TABLE hidden (id bigint PRIMARY KEY)")
    server.run_script(script_of(capsys, folder, "shop"))
    with psycopg.connect(server.url(), autocommit=True) as db:
        db.execute(f"ALTER ROLE keeper PASSWORD '{SHOP_WORD}'")
    access = server.data_folder / "pg_hba.conf"
    access.write_text(
        "host all,replication keeper 127.0.0.1/32 scram-sha-256\n" + access.read_text()
    )
    with maria.connect(autocommit=True) as link, link.cursor() as cursor:
        cursor.execute("CREATE DATABASE crm")
        cursor.execute("CREATE TABLE crm.customers (id bigint PRIMARY KEY, name varchar(20))")
        cursor.execute("INSERT INTO crm.customers VALUES (1, 'Ann')")
        for line in script_of(capsys, folder, "crm").splitlines():
            if line.startswith(("CREATE USER", "GRANT", "SET GLOBAL")):
                cursor.execute(line.partition(";")[0])
        cursor.execute(f"ALTER USER keeper@'127.0.0.1' IDENTIFIED BY '{CRM_WORD}'")
    with psycopg.connect(server.url(), autocommit=True) as db:
        db.execute("SELECT pg_reload_conf()")


def processes_below(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return [pid]  # it has ended
    return [pid, *(each for child in children for each in processes_below(int(child)))]


def shown_to_others(pid: int) -> dict[str, bytes]:
    """Command lines of a process and all below it, and what those below have inherited.

    Of the process itself the environment is where its user put the words.
    """
    said = {}
    for each in processes_below(pid):
        with contextlib.suppress(OSError):  # some live for a moment only
            said[f"command line of {each}"] = Path(f"/proc/{each}/cmdline").read_bytes()
            if each != pid:
                said[f"environment of {each}"] = Path(f"/proc/{each}/environ").read_bytes()
    return said


def traces_in(content: bytes) -> list[bytes]:
    return [trace for trace in (*TRACES, STORE_KEY.encode()) if trace in content]


def test_passwords_leave_no_trace(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", SHOP_WORD.replace("/", "%2F").replace("@", "%40"))
    monkeypatch.setenv("CRM_PASSWORD", CRM_WORD.replace(":", "%3A").replace("#", "%23"))
    (tmp_path / "events").mkdir()
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "sales.sql").write_text(VIEW)
    with EmbeddedPostgres() as server, PrivateMariaDB() as maria:
        text = PROJECT.format(shop=server.port, crm=maria.port, folder=tmp_path)
        project = tmp_path / "viewkeeper.toml"
        project.write_text(text)
        set_up(server, maria, tmp_path, capsys)
        told, said = run_and_break(server, tmp_path)
    # The run kept the view with these rights, and ended with a named error.
    assert told[0]["event"] == "dashboard"
    assert told[-1]["error"]["code"] == "feed-gap", told[-3:]
    for name, content in said.items():
        assert not traces_in(content), f"{name} shows {traces_in(content)}"
    for path in tmp_path.rglob("*"):
        if path.is_file() and path != project:
            assert not traces_in(path.read_bytes()), path
    assert list((tmp_path / "events").rglob("*")), "Spark's event log was written and searched"


def run_and_break(server: EmbeddedPostgres, folder: Path) -> tuple[list[dict], dict[str, bytes]]:
    """A run that is looked at from all sides, and then loses its slot."""
    words = ["run", "--json", "--verbose", "--log", str(folder / "run.log"), "--ui-port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "viewkeeper", *words, "--project", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    lines: list[str] = []
    said: dict[str, bytes] = {}
    try:
        for line in process.stdout:
            lines.append(line)
            event = json.loads(line)
            if event["event"] == "loaded":
                break
        said |= shown_to_others(process.pid)
        assert any(b"org.apache.spark" in shown for shown in said.values()), "the JVM was seen"
        url = json.loads(lines[0])["url"]
        for page in ("overview", "views/sales", "sources/shop", "session", "openapi.json"):
            with contextlib.suppress(psycopg.Error, OSError):
                said[page] = urllib.request.urlopen(f"{url.rstrip('/')}/api/{page}").read()
        assert b"sales" in said["overview"]
        with psycopg.connect(server.url(), autocommit=True) as db:
            while db.execute("SELECT 1 FROM pg_replication_slots").fetchone():
                with contextlib.suppress(psycopg.Error, OSError):
                    db.execute(
                        "SELECT pg_terminate_backend(active_pid, 1000) FROM pg_replication_slots"
                    )
                    db.execute(
                        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                    )
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
    said |= {"output": "".join([*lines, out]).encode(), "stderr": err.encode()}
    assert process.returncode == 1
    return [json.loads(line) for line in [*lines, *out.splitlines()]], said


def test_the_words_would_be_found():
    """The search itself can fail: it finds what is there."""
    assert traces_in(b"url = postgresql://keeper:marked-shop%2Fpass") == [b"marked-shop"]
    assert traces_in(os.fsencode(CRM_WORD)) == [b"marked-crm"]
