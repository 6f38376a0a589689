"""Whole transactions in order, from any position on, each exactly once."""

import itertools
import json

import pytest

from live.sources.probing import FeedLog, effect_of
from live.sources.workload import RELATIONS, Workload, create_tables
from viewkeeper.sources.interface import SourceTransaction


@pytest.fixture
def ready(database):
    writer = database.writer()
    create_tables(writer)
    writer.close()
    with database.open() as source:
        source.setup(RELATIONS)
        yield source
        source.teardown()


def journalled(transaction):
    """Which (writer, seq) pairs the transaction wrote down."""
    return [
        row for change in transaction.changes if change.relation == "journal"
        for row in change.inserted
    ]  # fmt: skip


def run_workload(database, transactions=60, writers=4):
    workload = Workload(database, writers=writers)
    for _ in range(transactions // writers):
        for writer in workload.writers:
            writer.transaction()
    workload.stop()
    return workload


def insert_account(writer, number):
    writer.begin()
    writer.run("INSERT INTO accounts (id, owner, balance) VALUES (?, ?, ?)", number, "n", 0)
    writer.commit()


def ids(transactions):
    return [c.inserted[0][0] for t in transactions for c in t.changes if c.inserted]


def test_each_committed_transaction_comes_once_and_whole_and_no_aborted_one(database, ready):
    start = ready.start_position()
    workload = Workload(database)
    with FeedLog(ready, start) as log:
        with workload:
            while sum(len(w.committed) for w in workload.writers) < 150 and not workload.errors:
                log.catch_up()
        log.catch_up()
    assert workload.errors == []
    seen = {}
    for transaction in log.transactions:
        (entry,) = journalled(transaction)
        assert entry not in seen
        seen[entry] = effect_of([transaction])
    assert seen == workload.committed


def test_a_writers_own_transactions_come_in_the_order_of_their_commits(database, ready):
    start = ready.start_position()
    run_workload(database)
    with FeedLog(ready, start) as log:
        log.catch_up()
    for number in range(1, 5):
        mine = [seq for t in log.transactions for (w, seq) in journalled(t) if w == number]
        assert mine == sorted(mine)
        assert mine


def test_the_feed_resumes_after_any_position_without_gap_or_repetition(database, ready):
    start = ready.start_position()
    run_workload(database)
    with FeedLog(ready, start) as log:
        log.catch_up()
    everything = log.transactions
    for index in (0, 1, len(everything) // 2, len(everything) - 2):
        # Positions are stored as JSON by whoever commits them.
        position = json.loads(json.dumps(dict(everything[index].position)))
        with FeedLog(ready, position) as again:
            again.catch_up()
        assert again.transactions == everything[index + 1 :]


def test_positions_grow_along_the_feed(database, ready):
    start = ready.start_position()
    run_workload(database, transactions=24)
    with FeedLog(ready, start) as log:
        log.catch_up()
    positions = [start, *(item.position for item in log.items)]
    compare = ready.compare_positions
    for before, after in itertools.pairwise(positions):
        assert compare(before, after) <= 0
    transactions = [t.position for t in log.transactions]
    for before, after in itertools.pairwise(transactions):
        assert compare(before, after) == -1
        assert compare(after, before) == 1
        assert compare(after, after) == 0


def test_what_was_confirmed_does_not_come_again_and_what_was_not_does(database, ready):
    start = ready.start_position()
    writer = database.writer()
    for number in range(1, 7):
        insert_account(writer, number)
    writer.close()
    with FeedLog(ready, start) as log:
        log.catch_up()
    third = log.transactions[2].position
    with ready.feed(RELATIONS, start) as feed:
        feed.poll(1.0)
        feed.confirm(third)
    with FeedLog(ready, third) as again:
        again.catch_up()
    assert ids(again.transactions) == [4, 5, 6]


def test_the_feed_passes_the_bound_of_a_cut_when_nothing_is_written(ready):
    with FeedLog(ready, ready.start_position()) as log:
        for _ in range(3):
            log.catch_up()
        assert log.transactions == []


def test_relations_that_were_not_asked_for_stay_out(database, ready):
    start = ready.start_position()
    writer = database.writer()
    writer.begin()
    writer.run("INSERT INTO accounts (id, owner, balance) VALUES (1, 'a', 1)")
    writer.run("INSERT INTO marks (label, weight) VALUES ('m', 1)")
    writer.commit()
    writer.close()
    with FeedLog(ready, start, ["marks"]) as log:
        log.catch_up()
    assert effect_of(log.transactions) == {("marks", ("m", 1)): 1}


def test_a_large_transaction_comes_whole(database, ready):
    start = ready.start_position()
    writer = database.writer()
    writer.begin()
    for number in range(3_000):
        writer.run("INSERT INTO marks (label, weight) VALUES (?, ?)", "large", number)
    writer.commit()
    writer.close()
    with FeedLog(ready, start) as log:
        log.catch_up()
    (transaction,) = log.transactions
    assert isinstance(transaction, SourceTransaction)
    assert sum(effect_of([transaction]).values()) == 3_000
    assert transaction.committed_at.tzinfo is not None
