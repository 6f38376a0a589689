"""PostgreSQL's own traps, each sprung on purpose, and the wrong variants that fall into them."""

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import psycopg
import pytest

from live.sources.probing import FeedLog, effect_of, read_all
from live.sources.wrong_postgres import open_wrong
from viewkeeper.errors import SourceError
from viewkeeper.sources.backoff import Backoff
from viewkeeper.sources.interface import SourceTransaction
from viewkeeper.sources.opening import open_source
from viewkeeper.sources.postgres import stream, visibility_fence
from viewkeeper.sources.postgres.links import Links
from viewkeeper.sources.urls import parse_source_url

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


def reference(initial, log, cut):
    total = initial.copy()
    total.update(effect_of(t for t in log.transactions if cut.reflects(t)))
    return +total


class Stalled:
    """A commit that is in the log and not yet visible: it waits for a standby that does not exist."""

    def __init__(self, database, statement):
        self._statement = statement
        self._admin, self._writer = database.writer(), database.writer()
        ((self._pid,),) = self._writer.fetch("SELECT pg_backend_pid()")

    def _configure(self, statement):
        self._admin.run(statement)
        self._admin.run("SELECT pg_reload_conf()")

    def _waits(self):
        sql = "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = ?"
        return self._admin.fetch(sql, self._pid) == [(True,)]

    def _commits_or_waits(self, statement):
        """Start a commit; gives its thread if it waits for the standby, None if it went through."""
        thread = threading.Thread(target=self._writer.run, args=(statement,))
        thread.start()
        while thread.is_alive():
            if self._waits():
                return thread
            thread.join(timeout=0.01)
        return None

    def __enter__(self):
        self._configure("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        # Commits wait from the moment on at which the checkpointer has read the setting.
        probe = "SELECT pg_logical_emit_message(true, 'probe', '')"
        while (waiting := self._commits_or_waits(probe)) is None:
            pass
        self._admin.run(f"SELECT pg_cancel_backend({self._pid})")
        waiting.join(timeout=300)
        self._thread = self._commits_or_waits(self._statement)
        assert self._thread is not None
        return self

    def __exit__(self, *_):
        self._configure("ALTER SYSTEM RESET synchronous_standby_names")
        self._thread.join(timeout=300)
        self._writer.close()
        self._admin.close()


def wait_until(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


@pytest.mark.parametrize("variant", [None, "one-way", "lsn-cut"])
def test_a_delivered_transaction_that_is_not_visible_yet_is_told_apart(database, source, variant):
    with source.cut(RELATIONS) as cut:
        initial = state(cut)
    opened = source if variant is None else open_wrong(variant, database.url)
    try:
        with (
            FeedLog(opened, opened.start_position(), RELATIONS) as log,
            Stalled(database, "INSERT INTO things VALUES (2, 'stalled')"),
        ):
            wait_until(lambda: log.transactions)
            with opened.cut(RELATIONS) as cut:
                answer = state(cut)
            right = answer == reference(initial, log, cut)
            assert answer == initial, "the row must not be visible yet"
    finally:
        if variant is not None:
            opened.close()
    assert right == (variant is None)


@pytest.mark.parametrize("careful", [True, False])
def test_a_commit_before_the_feed_s_start_that_is_not_visible_yet_is_waited_for(
    database, source, monkeypatch, careful
):
    """The feed does not deliver it any more, so the first cut must show it."""
    monkeypatch.setattr(
        visibility_fence, "PATIENCE", Backoff(first_seconds=0.01, patience_seconds=0.2)
    )
    if not careful:
        monkeypatch.setattr(visibility_fence.Settling, "settle", lambda self: None)
    with Stalled(database, "INSERT INTO things VALUES (2, 'stalled')"):
        start = source.start_position()
        if careful:
            with pytest.raises(SourceError) as caught:
                source.cut(RELATIONS)
            assert (caught.value.code, caught.value.retryable) == ("source-busy", True)
            assert "synchronous standby" in caught.value.detail
        else:
            with source.cut(RELATIONS) as cut:
                loaded = state(cut)
    if careful:
        with source.cut(RELATIONS) as cut:
            loaded = state(cut)
    with FeedLog(source, start, RELATIONS) as log:
        log.catch_up()
    loaded.update(effect_of(t for t in log.transactions if not cut.reflects(t)))
    with source.cut(RELATIONS) as cut:
        assert (loaded == state(cut)) == careful


def test_the_first_cut_of_a_new_process_waits_too(database, source, monkeypatch):
    """Its feed starts where the former one stopped, and perhaps is not open yet."""
    monkeypatch.setattr(
        visibility_fence, "PATIENCE", Backoff(first_seconds=0.01, patience_seconds=0.2)
    )
    with Stalled(database, "INSERT INTO things VALUES (2, 'stalled')"):
        with database.open() as fresh, pytest.raises(SourceError) as caught:
            fresh.cut(RELATIONS)
        assert caught.value.code == "source-busy"


def test_a_transaction_that_is_at_work_for_long_does_not_keep_cuts_away(
    database, source, monkeypatch
):
    monkeypatch.setattr(
        visibility_fence, "PATIENCE", Backoff(first_seconds=0.01, patience_seconds=0.2)
    )
    slow, prepared = database.writer(), database.writer()
    slow.begin()
    slow.run("INSERT INTO things VALUES (2, 'slow')")
    prepared.begin()
    prepared.run("INSERT INTO things VALUES (3, 'two phases')")
    prepared.run("PREPARE TRANSACTION 'slowly'")
    start = source.start_position()
    with source.cut(RELATIONS) as cut:
        loaded = state(cut)
    slow.commit()
    prepared.run("COMMIT PREPARED 'slowly'")
    with FeedLog(source, start, RELATIONS) as log:
        log.catch_up()
    assert len(log.transactions) == 2
    loaded.update(effect_of(t for t in log.transactions if not cut.reflects(t)))
    with source.cut(RELATIONS) as cut:
        assert state(cut) == loaded
    slow.close()
    prepared.close()


def test_who_can_not_see_what_others_wait_for_is_told_what_to_grant(
    database, source, writer, monkeypatch
):
    monkeypatch.setattr(
        visibility_fence, "PATIENCE", Backoff(first_seconds=0.01, patience_seconds=0.2)
    )
    writer.run("CREATE ROLE clerk LOGIN")
    url = parse_source_url(database.url, "src")
    links = Links("src", replace(url, user="clerk"))

    def found_by(user):
        address = database.url.replace(f"//{url.user}@", f"//{user}@")
        with open_source("src", address) as opened:
            return [finding.code for finding in opened.preflight([])]

    try:
        with Stalled(database, "INSERT INTO things VALUES (2, 'stalled')"):
            mine = visibility_fence.Settling("src", links.ask)
            mine.draw_fence()
            with pytest.raises(SourceError) as caught:
                mine.settle()
            assert "pg_read_all_stats" in caught.value.hint
            assert "standby-waits" in found_by("clerk")
            assert "standby-waits" not in found_by(url.user)
        mine.settle()
        assert "standby-waits" not in found_by("clerk")
    finally:
        links.close()
        writer.run("DROP ROLE clerk")


def test_prepared_transactions_are_reflected_from_their_second_phase_on(source, writer):
    with source.cut(RELATIONS) as cut:
        initial = state(cut)
    with FeedLog(source, source.start_position(), RELATIONS) as log:
        writer.run("BEGIN")
        writer.run("INSERT INTO things VALUES (2, 'two phases')")
        writer.run("PREPARE TRANSACTION 'phase'")
        with source.cut(RELATIONS) as between:
            assert state(between) == initial
        writer.run("COMMIT PREPARED 'phase'")
        with source.cut(RELATIONS) as after:
            answer = state(after)
        log.wait_for(after.bound)
        (transaction,) = log.transactions
        assert not between.reflects(transaction)
        assert after.reflects(transaction)
        assert answer == reference(initial, log, after)


def test_a_feed_that_nobody_polled_for_a_while_is_not_taken_for_dead(source, writer, monkeypatch):
    start = source.start_position()
    with source.feed(RELATIONS, start) as feed:
        wait_until(lambda: not feed.poll(0.2))  # all its questions are answered
        # The reader is busy elsewhere for an hour, by its own clock.
        later = SimpleNamespace(monotonic=lambda: time.monotonic() + 3_600)
        monkeypatch.setattr(stream, "time", later)
        feed.poll(0.05)
        writer.run("INSERT INTO things VALUES (2, 'later')")
        wait_until(lambda: any(isinstance(i, SourceTransaction) for i in feed.poll(0.1)))


# -- restarts and gaps --------------------------------------------------------------------------------


def gap(source, start):
    with pytest.raises(SourceError) as caught:
        source.feed(RELATIONS, start)
    assert caught.value.code == "feed-gap"
    assert not caught.value.retryable
    return caught.value


def test_a_slot_that_is_gone_is_a_gap(source, writer):
    start = source.start_position()
    writer.run("SELECT pg_drop_replication_slot('viewkeeper_src')")
    assert "no slot" in gap(source, start).detail
    assert source.health().state == "no-slot"


def test_a_slot_that_was_dropped_and_made_again_is_a_gap(source, writer):
    start = source.start_position()
    writer.run("SELECT pg_drop_replication_slot('viewkeeper_src')")
    writer.run("INSERT INTO things VALUES (2, 'missed')")
    writer.run("SELECT pg_create_logical_replication_slot('viewkeeper_src', 'pgoutput')")
    assert "moved on" in gap(source, start).detail


def test_a_slot_that_somebody_else_advanced_is_a_gap(source, writer):
    start = source.start_position()
    writer.run("INSERT INTO things VALUES (2, 'missed')")
    writer.run("SELECT pg_replication_slot_advance('viewkeeper_src', pg_current_wal_lsn())")
    assert "moved on" in gap(source, start).detail


def test_a_slot_whose_log_was_removed_is_a_gap(source, writer):
    start = source.start_position()
    try:
        writer.run("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        writer.run("SELECT pg_reload_conf()")
        for number in range(10, 14):
            writer.run(f"INSERT INTO things VALUES ({number}, 'fills the log')")
            writer.run("SELECT pg_switch_wal()")
        writer.run("CHECKPOINT")
        wait_until(lambda: source.health().state == "slot-lost")
        assert "removed the log" in gap(source, start).detail
    finally:
        writer.run("ALTER SYSTEM RESET max_slot_wal_keep_size")
        writer.run("SELECT pg_reload_conf()")


def test_positions_of_another_server_are_refused(source):
    start = dict(source.start_position())
    for change in ({"system": "1"}, {"timeline": 99}):
        with pytest.raises(SourceError) as caught:
            source.feed(RELATIONS, start | change)
        assert caught.value.code == "different-history"


def test_a_second_feed_on_the_same_slot_is_refused_as_retryable(source):
    start = source.start_position()
    with source.feed(RELATIONS, start), pytest.raises(SourceError) as caught:
        source.feed(RELATIONS, start)
    assert caught.value.code == "slot-in-use"
    assert caught.value.retryable


def test_an_answer_from_before_a_crash_belongs_to_another_life(rig, source, writer):
    with source.cut(RELATIONS) as cut:
        pass
    with source.feed(RELATIONS, source.start_position()) as feed:
        assert feed.life == cut.life
    rig.kill()
    rig.start()
    with source.feed(RELATIONS, source.start_position()) as feed:
        assert feed.life != cut.life


def test_an_idle_feed_confirms_nothing_by_itself(source, writer):
    start = source.start_position()
    writer.run("INSERT INTO things VALUES (2, 'second')")
    confirmed = "SELECT confirmed_flush_lsn FROM pg_replication_slots"
    before = writer.fetch(confirmed)
    with source.feed(RELATIONS, start) as feed:
        for _ in range(10):
            feed.poll(0.05)
        assert writer.fetch(confirmed) == before
        feed.confirm(feed.position)
        wait_until(lambda: writer.fetch(confirmed) != before)


# -- roles and the script -----------------------------------------------------------------------------


def test_two_roles_with_the_least_rights_are_enough(rig, database, writer):
    """The owner runs the printed script; then neither role can write, and both do their work."""
    url = rig.server.url(database.name, user="viewkeeper_reader")
    feed_url = rig.server.url(database.name, user="viewkeeper_feeder")
    with open_source("src", url, feed_url=feed_url) as nobody_yet:
        script = nobody_yet.setup_sql(RELATIONS)
    rig.server.run_script(script, database.name)
    try:
        with open_source("src", url, feed_url=feed_url) as source:
            assert [f for f in source.preflight(RELATIONS) if f.severity == "refused"] == []
            start = source.start_position()
            writer.run("INSERT INTO things VALUES (2, 'second')")
            with FeedLog(source, start, RELATIONS) as log, source.cut(RELATIONS) as cut:
                log.wait_for(cut.bound)
                assert effect_of(log.transactions) == {("things", (2, "second")): 1}
                assert len(state(cut)) == 2
        with psycopg.connect(url, autocommit=True) as reader:
            for statement in ("DELETE FROM public.things", "CREATE TABLE public.mine (a int)"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    reader.execute(statement)
    finally:
        with database.open() as source:
            source.teardown()
        writer.run("DROP OWNED BY viewkeeper_reader, viewkeeper_feeder")
        writer.run("DROP ROLE viewkeeper_reader, viewkeeper_feeder")


@pytest.mark.parametrize(
    ("user", "name", "code"),
    [("viewkeeper_nobody", None, "access-denied"), ("postgres", "gone", "access-denied")],
)
def test_a_role_or_database_that_is_not_there_is_no_matter_of_waiting(
    rig, database, user, name, code
):
    url = rig.server.url(name or database.name, user=user, password="hunter2")
    with open_source("src", url) as source:
        for attempt in (source.schemas, lambda: source.cut([])):
            with pytest.raises(SourceError) as caught:
                attempt()
            assert (caught.value.code, caught.value.retryable) == (code, False)
            assert "hunter2" not in str(caught.value)


def test_a_role_without_select_is_told_which_relation_it_may_not_read(rig, database, source):
    admin = database.writer()
    admin.run("CREATE ROLE viewkeeper_stranger LOGIN")
    try:
        with open_source("src", rig.server.url(database.name, user="viewkeeper_stranger")) as other:
            with pytest.raises(SourceError) as caught:
                other.cut(RELATIONS)
            assert caught.value.code == "unknown-relation"
            assert "SELECT" in caught.value.detail
    finally:
        admin.run("DROP ROLE viewkeeper_stranger")
        admin.close()


def test_an_owner_without_superuser_can_set_up_all_but_the_event_trigger(rig, database):
    admin = database.writer()
    admin.run("CREATE ROLE viewkeeper_owner LOGIN REPLICATION")
    admin.run(f"GRANT CREATE ON DATABASE {database.name} TO viewkeeper_owner")
    admin.run("GRANT CREATE ON SCHEMA public TO viewkeeper_owner")
    url = rig.server.url(database.name, user="viewkeeper_owner")
    try:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("CREATE TABLE things (id BIGINT PRIMARY KEY, name TEXT)")
            with open_source("src", url, allow_setup=True) as source:
                source.setup(RELATIONS)
                findings = {f.code: f.severity for f in source.preflight(RELATIONS)}
                assert "refused" not in findings.values()
                assert findings["event-trigger"] == "warning"
                start = source.start_position()
                owner.execute("INSERT INTO things VALUES (1, 'one')")
                with FeedLog(source, start, RELATIONS) as log:
                    log.catch_up()
                assert effect_of(log.transactions) == {("things", (1, "one")): 1}
                source.teardown()
    finally:
        admin.run("DROP OWNED BY viewkeeper_owner CASCADE")
        admin.run("DROP ROLE viewkeeper_owner")
        admin.close()


def test_teardown_gives_every_table_its_former_identity_back(database):
    writer = database.writer()
    writer.run("CREATE TABLE things (id BIGINT PRIMARY KEY, code TEXT NOT NULL)")
    writer.run("CREATE UNIQUE INDEX by_code ON things (code)")
    writer.run("ALTER TABLE things REPLICA IDENTITY USING INDEX by_code")
    with database.open() as source:
        source.setup(RELATIONS)
        source.setup(RELATIONS)
        source.teardown()
    found = writer.fetch("SELECT relreplident::text FROM pg_class WHERE relname = 'things'")
    writer.close()
    assert found == [("i",)]


# -- preflight ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "code"),
    [
        (["CREATE UNLOGGED TABLE bad (id BIGINT PRIMARY KEY)"], "unlogged"),
        (
            [
                "CREATE TABLE bad (id BIGINT PRIMARY KEY)",
                "ALTER TABLE bad ENABLE ROW LEVEL SECURITY",
            ],
            "row-level-security",
        ),
        (
            ["CREATE TABLE bad (id BIGINT PRIMARY KEY)", "CREATE TABLE child () INHERITS (bad)"],
            "inheritance",
        ),
        (
            ["CREATE TABLE bad (id BIGINT) PARTITION BY LIST (id)"],
            "partitions-without-key",
        ),
        (["CREATE TABLE bad (id BIGINT PRIMARY KEY)"], "replica-identity"),
        (["CREATE TABLE bad (id BIGINT PRIMARY KEY)"], "not-published"),
    ],
)
def test_preflight_refuses_what_would_be_inexact_or_harmful(
    database, source, writer, statements, code
):
    for statement in statements:
        writer.run(statement)
    found = {f.code: f for f in source.preflight([*RELATIONS, "bad"])}
    assert found[code].severity == "refused"
    assert found[code].fix


def test_preflight_sees_a_publication_that_leaves_rows_out(source, writer):
    writer.run("ALTER PUBLICATION viewkeeper_src SET TABLE things WHERE (id > 1)")
    found = {f.code: f.severity for f in source.preflight(RELATIONS)}
    assert found["publication-filtered"] == "refused"


def test_a_value_without_an_exact_form_is_a_named_error_on_both_paths(database, writer):
    writer.run("CREATE TABLE moments (id BIGINT PRIMARY KEY, at TIMESTAMP)")
    with database.open() as source:
        source.setup(["moments"])
        start = source.start_position()
        writer.run("INSERT INTO moments VALUES (1, 'infinity')")
        with FeedLog(source, start, ["moments"]) as log, pytest.raises(SourceError) as from_feed:
            log.catch_up()
        with source.cut(["moments"]) as cut, pytest.raises(SourceError) as from_query:
            read_all(cut, ["moments"])
        source.teardown()
    for caught in (from_feed, from_query):
        assert caught.value.code == "value-out-of-range"
        assert "moments.at" in caught.value.message
