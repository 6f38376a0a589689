"""What a user of one database can do to a feed of another one: nothing, by no statement's text."""

from __future__ import annotations

import pymysql
import pytest

from live.sources.forged_statements import ATTEMPTS, forged
from live.sources.probing import followed
from viewkeeper.sources.interface import SourceTransaction

KIND = "mariadb"


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
            cursor.execute(forged(text, database.name))
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
