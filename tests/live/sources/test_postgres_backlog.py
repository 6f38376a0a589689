"""Much that waits in a slot is read by questions: the same items, in the same places, as from the stream."""

import contextlib
import time

import pytest

from live.sources.probing import FeedLog
from live.sources.workload import RELATIONS, create_tables
from viewkeeper.errors import SourceError
from viewkeeper.sources.postgres import backlog, stream
from viewkeeper.sources.postgres.position import lsn_number

KIND = "postgres"
NEVER = 1 << 40
PATIENCE_SECONDS = 300
TURNS = 300
# Small transactions and larger ones, some of which are rolled back or write nothing.
MUCH = f"""
DO $$ BEGIN
  FOR n IN 1..{TURNS} LOOP
    INSERT INTO accounts (id, owner, balance) VALUES (1000 + n, 'owner ' || n, n); COMMIT;
    UPDATE accounts SET balance = balance + 1 WHERE id % 50 = n % 50; COMMIT;
    INSERT INTO accounts (id, owner, balance) VALUES (-n, 'nobody', 0); ROLLBACK;
    DELETE FROM accounts WHERE id = 1000 + n / 2; COMMIT;
  END LOOP;
END $$"""


@pytest.fixture
def ready(database):
    writer = database.writer()
    create_tables(writer)
    with database.open() as source:
        source.setup(RELATIONS)
        yield source, writer
        source.teardown()
    writer.close()


@pytest.fixture
def by_questions(monkeypatch):
    """Slots are asked for whatever they hold, at first for little; gives how many were."""
    begun = []
    ask = backlog.Backlog._ask
    monkeypatch.setattr(backlog, "BYTES_MIN", 1)
    monkeypatch.setattr(backlog, "MESSAGES_FIRST", 100)
    monkeypatch.setattr(backlog.Backlog, "_ask", lambda self: (begun.append(self), ask(self)))
    return begun


def read_from(source, start):
    with FeedLog(source, start) as log:
        log.catch_up()
        return [*log.items]


def placed(items):
    """Where the transactions stand."""
    return [item.position for item in items if hasattr(item, "changes")]


def test_what_is_asked_for_is_what_the_stream_tells(ready, by_questions, monkeypatch):
    source, writer = ready
    start = source.start_position()
    writer.run(MUCH)
    writer.run("ALTER TABLE accounts ADD COLUMN note TEXT")
    writer.run(MUCH.replace("1000", "9000").replace("-n", "-9000 - n"))
    asked = read_from(source, start)
    assert len(by_questions) >= 3
    monkeypatch.setattr(backlog, "BYTES_MIN", NEVER)
    streamed = read_from(source, start)
    assert len(by_questions) < 10
    assert [item for item in asked if hasattr(item, "changes")] == [
        item for item in streamed if hasattr(item, "changes")
    ]
    assert len(asked) > 2 * TURNS


def test_the_stream_goes_on_where_the_questions_ended(ready, by_questions):
    source, writer = ready
    start = source.start_position()
    writer.run(MUCH)
    with FeedLog(source, start) as log:
        log.catch_up()
        before = len(log.transactions)
        writer.run("INSERT INTO accounts (id, owner, balance) VALUES (77777, 'last', 1)")
        log.catch_up()
        (last,) = log.transactions[before:]
    assert last.changes[0].inserted[0][0] == 77777


def test_what_lies_beyond_the_limit_comes_from_the_stream(ready, by_questions, monkeypatch):
    source, writer = ready
    start = source.start_position()
    writer.run(MUCH)
    whole = read_from(source, start)
    monkeypatch.setattr(backlog, "BYTES_MAX", 40_000)
    assert placed(read_from(source, start)) == placed(whole)


def test_who_confirms_while_questions_are_open_is_heard_when_the_stream_begins(
    database, ready, by_questions
):
    source, writer = ready
    start = source.start_position()
    writer.run(MUCH)

    def confirmed():
        sql = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
        return lsn_number(writer.fetch(sql)[0][0])

    with contextlib.closing(source.feed(RELATIONS, start)) as feed:
        while not (items := feed.poll(10, 5)):
            pass
        first = items[-1].position
        feed.confirm(first)
        assert confirmed() < int(first["lsn"])
        deadline = time.monotonic() + PATIENCE_SECONDS
        while confirmed() < int(first["lsn"]):
            assert time.monotonic() < deadline, "it was not heard"
            feed.poll(0.5)
        assert confirmed() == int(first["lsn"])


def test_who_may_not_ask_streams(ready, by_questions, monkeypatch):
    source, writer = ready
    start = source.start_position()
    writer.run(MUCH)
    asked = read_from(source, start)
    monkeypatch.setattr(backlog.Backlog, "_ask", refused)
    assert placed(read_from(source, start)) == placed(asked)


def refused(self):
    self._is_answered = self._is_complete = False
    self._pq.send_query(b"SELECT no_such_function()")
    self._pq.flush()


def test_a_server_that_does_not_answer_in_time_is_heard_as_a_stream(
    ready, by_questions, monkeypatch
):
    source, writer = ready
    start = source.start_position()
    writer.run(MUCH)
    asked = read_from(source, start)
    monkeypatch.setattr(stream, "QUESTION_SECONDS_MAX", 0.2)
    monkeypatch.setattr(backlog.Backlog, "_ask", never_answered)
    assert placed(read_from(source, start)) == placed(asked)


def never_answered(self):
    self._is_answered = self._is_complete = False
    self._pq.send_query(b"SELECT pg_sleep(600)")
    self._pq.flush()


def test_a_feed_that_is_closed_while_it_asks_frees_the_slot(ready, by_questions):
    source, writer = ready
    start = source.start_position()
    writer.run(MUCH)
    for _ in range(5):
        feed = source.feed(RELATIONS, start)
        with contextlib.suppress(SourceError):
            feed.poll(0, 1)
        feed.close()
    assert read_from(source, start)
