"""Makes tests/corpus/wire: what real servers really send, in small files.

    PYTHONPATH=tests python -m fuzzing.capture [postgres] [mariadb] [sqlite]

Every type that is read, with NULLs, values left in TOAST, truncations, messages, schema changes, compressed
events, savepoints; for SQLite two databases with their write-ahead logs. Versions of the servers and what the
decoders need to know beside the bytes stand in the ``.json`` beside each file.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

from fuzzing.corpus import FOLDER, History, save_messages

SMALL_MAX = 400
_REPEATED = re.compile(r"repeat\((.*), (\d+)\)")


def small(literal: str) -> str:
    """The same literal, with fewer repetitions."""
    return _REPEATED.sub(lambda m: f"repeat({m[1]}, {min(int(m[2]), SMALL_MAX)})", literal)


# -- PostgreSQL ---------------------------------------------------------------------------------------

_OPTIONS = "'proto_version', '1', 'publication_names', 'wire', 'messages', 'true'"


def postgres() -> None:
    import psycopg

    from live.sources.rig_postgres import Rig
    from viewkeeper.sources.postgres.catalog import DESCRIPTION, NAMES
    from viewkeeper.sources.postgres.connection import SETTINGS
    from viewkeeper.testing.postgres import EmbeddedPostgres

    with (
        EmbeddedPostgres() as server,
        psycopg.connect(server.url("postgres"), autocommit=True) as link,
    ):
        run = link.execute
        for name, value in SETTINGS.items():
            if name != "search_path":
                run(f"SET {name} = '{value}'")
        run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
        declared = [case.declared for case in Rig.values] + ["mood"]
        literals = [[small(each) for each in case.literals] for case in Rig.values] + [["'glad'"]]
        for number, kind in enumerate(declared):
            run(f"CREATE TABLE v{number} (id bigint PRIMARY KEY, v {kind})")
            run(f"ALTER TABLE v{number} REPLICA IDENTITY FULL")
        run("CREATE TABLE big (id bigint PRIMARY KEY, t text, n int)")
        run("ALTER TABLE big REPLICA IDENTITY FULL; ALTER TABLE big ALTER t SET STORAGE EXTERNAL")
        run("CREATE PUBLICATION wire FOR ALL TABLES")
        run("SELECT pg_create_logical_replication_slot('wire', 'pgoutput')")
        documents = {
            oid: document
            for oid, _, _ in run(NAMES).fetchall()
            for (document,) in run(DESCRIPTION.format(relation=oid)).fetchall()
        }
        for number, values in enumerate(literals):
            for index, literal in enumerate([*values, "NULL"]):
                run(f"INSERT INTO v{number} VALUES ({index}, {literal})")
            run(f"UPDATE v{number} SET id = id + 100 WHERE id < 2")
        run("BEGIN; INSERT INTO big VALUES (1, repeat('long ', 600), 1); UPDATE big SET n = 2;"
            " DELETE FROM v0 WHERE id = 100; COMMIT")  # fmt: skip
        run("UPDATE big SET n = 3; DELETE FROM big; TRUNCATE v1, v2")
        run("SELECT pg_logical_emit_message(true, 'wire', '{}')")
        run("ALTER TABLE big ADD COLUMN more int; INSERT INTO big VALUES (2, 'x', 5, 6)")
        run("SELECT pg_replication_origin_create('o'), pg_replication_origin_session_setup('o')")
        run("BEGIN; SELECT pg_replication_origin_xact_setup('0/1', now());"
            " INSERT INTO v0 VALUES (7, 7); COMMIT")  # fmt: skip
        found = run(
            f"SELECT data FROM pg_logical_slot_get_binary_changes('wire', NULL, NULL, {_OPTIONS})"
        ).fetchall()
        save_messages("postgres", [bytes(data) for (data,) in found])
        version = link.info.parameter_status("server_version")
    _describe("postgres", {"server": version, "documents": list(documents.values())})


# -- MariaDB ------------------------------------------------------------------------------------------


def mariadb() -> None:
    from live.sources.rig_mariadb import Rig
    from viewkeeper.testing.mariadb import PrivateMariaDB

    with (
        PrivateMariaDB(settings={"sql-mode": "", "log-bin-compress-min-len": "64"}) as server,
        server.connect(autocommit=True) as link,
        link.cursor() as cursor,
    ):
        run = cursor.execute
        run("CREATE DATABASE wire CHARACTER SET utf8mb4")
        run("USE wire")
        for number, case in enumerate(Rig.values):
            run(f"CREATE TABLE v{number} (id BIGINT PRIMARY KEY, v {case.declared})")
        run("CREATE TABLE packed (id BIGINT PRIMARY KEY, v TEXT)")
        run("FLUSH LOGS")
        (file, _, *_), *_ = _all(cursor, "SHOW MASTER STATUS")
        for number, case in enumerate(Rig.values):
            for index, literal in enumerate((*map(small, case.literals), "NULL")):
                run(f"INSERT INTO v{number} VALUES ({index}, {literal})")
            run(f"UPDATE v{number} SET id = id + 100 WHERE id < 2")
        run("BEGIN")
        run("DELETE FROM v0")
        run("SAVEPOINT a")
        run("DELETE FROM v1")
        run("COMMIT")
        run("ALTER TABLE v2 ADD COLUMN more INT")
        run("INSERT INTO v2 VALUES (9, 1, 2), (10, NULL, NULL)")
        run("SET GLOBAL log_bin_compress = ON")
        run("INSERT INTO packed VALUES (50, repeat('compress ', 30)), (51, NULL)")
        run("ALTER TABLE packed COMMENT '" + "c" * 200 + "'")
        run("UPDATE packed SET id = 52 WHERE id = 50")
        run("DELETE FROM packed")
        run("SET GLOBAL log_bin_compress = OFF")
        run("FLUSH LOGS")
        (FOLDER / "mariadb.bin").write_bytes((server.data_folder / file).read_bytes())
        charsets = dict(_all(cursor, _CHARSETS))
        kinds = [case.declared for case in Rig.values]
        _describe(
            "mariadb", {"server": link.get_server_info(), "declared": kinds, "charsets": charsets}
        )


_CHARSETS = (
    "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    " WHERE ID IS NOT NULL"
)


def _all(cursor: Any, sql: str) -> list[Any]:
    cursor.execute(sql)
    return list(cursor.fetchall())


# -- SQLite -------------------------------------------------------------------------------------------


def sqlite() -> None:
    histories = {}
    for page_size in (512, 4096):
        name = f"sqlite-{page_size}"
        with tempfile.TemporaryDirectory() as folder:
            histories[name] = _sqlite(Path(folder) / "w.db", page_size, name)
    _describe("sqlite", {"server": sqlite3.sqlite_version, "histories": histories})


def _sqlite(path: Path, page_size: int, name: str) -> dict[str, Any]:
    from viewkeeper.sources.sqlite.setup import install

    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA page_size = {page_size}")
    db.execute("CREATE TABLE t (a TEXT)")
    db.execute("CREATE TABLE other (a TEXT)")
    install(db, ["t"])
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    ends, total = [], 0
    for rows, table, end in ((2, "t", "COMMIT"), (3, "t", "COMMIT"), (2, "t", "ROLLBACK"),
                             (4, "other", "COMMIT"), (1, "t", "COMMIT"), (5, "t", "COMMIT")):  # fmt: skip
        db.execute("BEGIN")
        for _ in range(rows):
            db.execute(f"INSERT INTO {table} VALUES (hex(zeroblob(40)))")
        db.execute(end)
        if table == "t" and end == "COMMIT":
            total += rows
            ends.append(total)
    (history,) = db.execute("SELECT history FROM _viewkeeper_clock").fetchone()
    (page,) = db.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = '_viewkeeper_clock'"
    ).fetchone()
    shutil.copy(path, FOLDER / f"{name}.db")
    shutil.copy(f"{path}-wal", FOLDER / f"{name}.wal")
    db.close()
    found: History = {"history": history.hex(), "clock_page": page, "ends": ends}
    return dict(found)


def _describe(name: str, facts: dict[str, Any]) -> None:
    (FOLDER / f"{name}.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for each in sys.argv[1:] or ("postgres", "mariadb", "sqlite"):
        globals()[each]()
