"""What an owner of PostgreSQL tables does while a cut is open: the owner does not wait, and no answer is wrong."""

import psycopg
import pytest

from live.sources.probing import read_all
from live.sources.wrong_postgres import open_wrong
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import KeyedRead
from viewkeeper.sources.postgres import snapshot as postgres_snapshot

KIND = "postgres"
RELATIONS = ("things",)


@pytest.fixture
def writer(database):
    writer = database.writer()
    writer.run("CREATE TABLE things (id BIGINT PRIMARY KEY, name TEXT)")
    writer.run("INSERT INTO things VALUES (1, 'first')")
    yield writer
    writer.close()


@pytest.fixture
def source(database, writer):
    with database.open() as source:
        source.setup(RELATIONS)
        yield source
        source.teardown()


def state(cut):
    return read_all(cut, RELATIONS)


# What an owner may do while a cut is open; what a cut that did not look would answer.
ALTERATIONS = {
    "TRUNCATE things": {},
    "ALTER TABLE things ALTER COLUMN id TYPE bigint USING id + 1": {},
    "ALTER TABLE things RENAME name TO x; ALTER TABLE things RENAME note TO name; "
    "ALTER TABLE things RENAME x TO note": {("things", (1, "noted", "first")): 1},
}


@pytest.fixture
def noted(source, writer):
    writer.run("ALTER TABLE things ADD COLUMN note TEXT")
    writer.run("UPDATE things SET note = 'noted'")


@pytest.mark.parametrize("statements", ALTERATIONS)
def test_a_cut_that_does_not_look_at_its_tables_answers_wrongly(
    database, source, noted, writer, statements
):
    with open_wrong("unlooked", database.url) as wrong, wrong.cut(RELATIONS) as cut:
        for statement in statements.split("; "):
            writer.run(statement)
        wanted = ALTERATIONS[statements]
        assert state(cut) == wanted, "the trap has gone: is this still the same PostgreSQL?"


@pytest.mark.parametrize("statements", ALTERATIONS)
def test_an_owner_waits_for_no_open_cut_and_the_cut_knows_that_it_was_overtaken(
    database, source, noted, statements
):
    impatient = database.writer()
    impatient.run("SET lock_timeout = '100ms'")
    with source.cut(RELATIONS) as cut:
        assert state(cut) == {("things", (1, "first", "noted")): 1}
        for statement in statements.split("; "):
            impatient.run(statement)
        with pytest.raises(SourceError) as caught:
            state(cut)
        assert (caught.value.code, caught.value.retryable) == ("cut-overtaken", True)
    impatient.close()


def test_a_question_keeps_its_table_as_it_is_until_it_is_answered(database, source, writer):
    impatient = database.writer()
    impatient.run("SET lock_timeout = '100ms'")
    with source.cut(RELATIONS) as cut:
        answer = cut.read(KeyedRead("things", ("id", "name")))
        first = next(answer)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            impatient.run("TRUNCATE things")
        assert first.to_pylist() == [{"id": 1, "name": "first"}]
        assert list(answer) == []
        impatient.run("TRUNCATE things")
    impatient.close()


def test_a_large_table_is_locked_for_some_of_its_blocks_at_a_time(
    database, source, writer, monkeypatch
):
    monkeypatch.setattr(postgres_snapshot, "BLOCKS_PER_QUESTION_MAX", 2)
    writer.run("INSERT INTO things SELECT n, repeat('x', 900) FROM generate_series(2, 100) n")
    impatient = database.writer()
    impatient.run("SET lock_timeout = '100ms'")
    with source.cut(RELATIONS) as cut:
        assert {
            row["id"]
            for batch in cut.read(KeyedRead("things", ("id",)))
            for row in batch.to_pylist()
        } == set(range(1, 101))
        questions = []
        holding = cut._holding
        monkeypatch.setattr(cut, "_holding", lambda r: questions.append(r) or holding(r))
        answer = cut.read(KeyedRead("things", ("id",)))
        next(answer)
        while len(questions) < 2:
            next(answer)
        answer.close()
        impatient.run("TRUNCATE things")
        with pytest.raises(SourceError) as caught:
            list(cut.read(KeyedRead("things", ("id",))))
        assert caught.value.code == "cut-overtaken"
    impatient.close()


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_parts_of_parts_have_every_row_once(source, writer, monkeypatch, parts):
    monkeypatch.setattr(postgres_snapshot, "BLOCKS_PER_QUESTION_MAX", 2)
    writer.run("INSERT INTO things SELECT n, repeat('x', 900) FROM generate_series(2, 100) n")
    with source.cut(RELATIONS) as cut:
        found = [
            row["id"]
            for part in range(parts)
            for batch in cut.read(KeyedRead("things", ("id",), part=part, parts=parts))
            for row in batch.to_pylist()
        ]
    assert sorted(found) == list(range(1, 101))


def test_another_connection_at_a_cut_knows_that_it_was_overtaken(source, writer):
    with source.cut(RELATIONS) as cut, cut.twin() as twin:
        assert state(twin) == state(cut)
        writer.run("TRUNCATE things")
        for each in (cut, twin):
            with pytest.raises(SourceError) as caught:
                state(each)
            assert caught.value.code == "cut-overtaken"
        with pytest.raises(SourceError) as caught, cut.twin() as late:
            state(late)
        assert caught.value.code == "cut-overtaken"
