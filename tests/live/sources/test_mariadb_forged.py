"""What a user of one database can do to a feed of another one: nothing, by no statement's text."""

from __future__ import annotations

import pymysql
import pytest

from live.sources.probing import followed
from viewkeeper.sources.interface import SourceTransaction

KIND = "mariadb"

# Two columns of a followed table exchanged, in what is a comment on a table of the intruder's own.
CLAUSES = (
    ", RENAME TO {0}.things, RENAME COLUMN size TO weight, RENAME COLUMN weight TO size, "
    "TRUNCATE PARTITION p, COMMENT "
)
ATTEMPTS = [
    ("NO_BACKSLASH_ESCAPES", "utf8mb4", "ALTER TABLE t COMMENT '\\', COMMENT '{1}'"),
    ("NO_BACKSLASH_ESCAPES", "utf8mb4", 'ALTER TABLE t COMMENT "\\", COMMENT "{1}"'),
    ("ANSI_QUOTES", "utf8mb4", "ALTER TABLE t ADD \"a\\\" INT COMMENT '{1}'"),
    ("", "gbk", "ALTER TABLE t COMMENT '縗', COMMENT '{1}'"),
    ("", "utf8mb4", "ALTER TABLE t COMMENT '{1}' /* {1} */"),
    ("", "utf8mb4", "ALTER TABLE t COMMENT 'x' /*!999999 {1} 'x' */"),
    ("", "utf8mb4", "ALTER TABLE t COMMENT 'x' -- {1}"),
    ("", "utf8mb4", "CREATE TABLE `x``; DROP TABLE {0}.things; --` (id INT)"),
    ("", "utf8mb4", "DROP TABLE IF EXISTS t, `{0}.things`"),
    ("", "utf8mb4", "CREATE OR REPLACE VIEW v AS SELECT 1 AS `ALTER TABLE {0}.things`"),
    ("", "utf8mb4", "CREATE TABLE IF NOT EXISTS things (id INT, size INT, weight INT)"),
    ("", "utf8mb4", "CREATE OR REPLACE TEMPORARY TABLE things (id INT)"),
    ("", "utf8mb4", "DROP TEMPORARY TABLE IF EXISTS things"),
    # And whatever else his database lets him have logged.
    *(
        ("", "utf8mb4", text)
        for text in (
            "CREATE SEQUENCE s", "DO SETVAL(s, 100)", "ALTER SEQUENCE s RESTART 7", "CREATE INDEX i ON t (id)",
            "CREATE TABLE w SELECT 1 AS id", "CREATE TABLE e (id INT) ENGINE = MEMORY", "TRUNCATE TABLE t",
            "INSERT INTO e VALUES (1)", "ANALYZE TABLE t", "OPTIMIZE TABLE t", "REPAIR TABLE t",
            "ALTER DATABASE mine COMMENT 'x'",
            "CREATE PROCEDURE p() BEGIN DROP TABLE IF EXISTS w; END", "CALL p()",
            "EXECUTE IMMEDIATE 'CREATE TABLE IF NOT EXISTS u (id INT)'",
            "BEGIN NOT ATOMIC DROP TABLE IF EXISTS u; END",
            "SET STATEMENT max_statement_time = 9 FOR CREATE TABLE IF NOT EXISTS u (id INT)",
            "CREATE EVENT n ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1", "DROP EVENT n",
            "CREATE TABLE k (id INT) WITH SYSTEM VERSIONING",
            "DELETE HISTORY FROM k", "REPLACE INTO e VALUES (2)",
        )
    ),
]  # fmt: skip


@pytest.fixture
def source(database):
    writer = database.writer()
    writer.run("CREATE TABLE things (id BIGINT PRIMARY KEY, size BIGINT, weight BIGINT)")
    writer.close()
    with database.open() as source:
        source.setup(["things"])
        yield source
        source.teardown()


def test_no_text_in_another_database_changes_what_is_followed(rig, database, source):
    admin, writer = rig.server.connect(None, autocommit=True).cursor(), database.writer()
    admin.execute("CREATE DATABASE mine")
    admin.execute("CREATE USER intruder@'127.0.0.1' IDENTIFIED BY 'own'")
    admin.execute("GRANT ALL ON mine.* TO intruder@'127.0.0.1'")
    start = source.start_position()
    for number, (mode, charset, text) in enumerate(ATTEMPTS):
        host, port = database.address()
        with pymysql.connect(
            host=host, port=port, user="intruder", password="own", database="mine",
            charset=charset, autocommit=True,
        ) as session:  # fmt: skip
            cursor = session.cursor()
            cursor.execute(f"SET sql_mode = '{mode}'")
            cursor.execute("CREATE TABLE IF NOT EXISTS mine.t (id INT)")
            cursor.execute(text.format(database.name, CLAUSES.format(database.name)))
        writer.run("INSERT INTO things VALUES (?, 1, 2)", number)
    items = followed(source, start)
    assert [type(item) for item in items] == [SourceTransaction] * len(ATTEMPTS)
    rows = [row for item in items for row in item.changes[0].inserted]
    assert rows == [(number, 1, 2) for number in range(len(ATTEMPTS))]
    admin.execute("DROP DATABASE mine")
    admin.execute("DROP USER intruder@'127.0.0.1'")
    writer.close()


def test_the_texts_of_a_statement_are_not_kept(database, source):
    writer = database.writer()
    start = source.start_position()
    writer.run("ALTER TABLE things ADD note VARCHAR(20) DEFAULT 'hunter2' COMMENT 'hunter2'")
    (change,) = followed(source, start)
    assert "hunter2" not in str(change)
    assert change.statement.startswith("ALTER TABLE things ADD note VARCHAR(20) DEFAULT '…'")
    writer.close()
