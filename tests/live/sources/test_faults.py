"""Servers die, links go silent: a named error or a clean resume, never a silent gap."""

import time

import pytest

from chaos.network import Way
from live.sources.probing import FeedLog, effect_of, read_all
from live.sources.workload import RELATIONS, Workload, create_tables
from viewkeeper.errors import SourceError

# In seconds, where the machine has time; a link that nobody notices is never noticed.
NOTICED_SECONDS_MAX = 300.0


@pytest.fixture
def ready(needs, database):
    needs("server")
    writer = database.writer()
    create_tables(writer)
    writer.close()
    with database.open() as source:
        source.setup(RELATIONS)
        yield source
        source.teardown()


def insert(database, number):
    writer = database.writer()
    writer.begin()
    writer.run("INSERT INTO accounts (id, owner, balance) VALUES (?, 'n', 0)", number)
    writer.commit()
    writer.close()


def poll_until_error(feed, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        feed.poll(0.5)
    raise AssertionError(f"the feed noticed nothing in {seconds} seconds")


def test_after_a_kill_the_feed_resumes_without_gap(rig, database, ready):
    start = ready.start_position()
    workload = Workload(database, writers=2)
    for _ in range(10):
        for writer in workload.writers:
            writer.transaction()
    workload.stop()
    with FeedLog(ready, start) as log:
        log.catch_up()
    half = log.transactions[len(log.transactions) // 2].position
    with ready.feed(RELATIONS, half) as feed:
        feed.poll(1.0)
        rig.kill()
        with pytest.raises(SourceError) as caught:
            poll_until_error(feed, NOTICED_SECONDS_MAX)
    assert caught.value.retryable
    rig.start()
    insert(database, 5)
    with FeedLog(ready, half) as again:
        again.catch_up()
    whole = effect_of(log.transactions) + effect_of([again.transactions[-1]])
    assert [t.identity for t in again.transactions[:-1]] == [
        t.identity for t in log.transactions[len(log.transactions) // 2 + 1 :]
    ]
    with ready.cut(RELATIONS) as cut:
        assert read_all(cut) == whole


def test_a_cut_does_not_survive_the_server(rig, database, ready):
    with ready.cut(RELATIONS) as cut:
        read_all(cut)
        rig.kill()
        rig.start()
        with pytest.raises(SourceError) as caught:
            read_all(cut)
    assert caught.value.code == "cut-lost"
    assert caught.value.retryable


def test_a_server_that_is_away_is_a_retryable_error(rig, database, ready):
    rig.kill()
    try:
        for attempt in (lambda: ready.cut(RELATIONS), lambda: ready.schemas(RELATIONS)):
            with pytest.raises(SourceError) as caught:
                attempt()
            assert caught.value.retryable
            assert caught.value.source == "src"
    finally:
        rig.start()


def test_a_silent_link_is_noticed_by_the_feed(database, ready):
    with Way(database.address()) as way:
        url = database.url_via(way.host, way.port)
        with database.open(url=url) as source:
            feed = source.feed(RELATIONS, source.start_position())
            feed.poll(0.2)
            way.silent.set()
            with pytest.raises(SourceError) as caught:
                poll_until_error(feed, NOTICED_SECONDS_MAX)
            assert caught.value.retryable
            feed.close()


def test_a_silent_link_is_noticed_by_a_query(database, ready):
    with Way(database.address()) as way:
        url = database.url_via(way.host, way.port)
        with database.open(url=url) as source:
            cut = source.cut(RELATIONS)
            way.silent.set()
            with pytest.raises(SourceError) as caught:
                read_all(cut)
            assert caught.value.retryable
            cut.close()
