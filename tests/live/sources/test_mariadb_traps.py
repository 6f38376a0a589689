"""What MariaDB's log leaves out, or tells otherwise: the feed stops with a name, or gets it right."""

import contextlib
import threading
import time

import pytest

from live.sources.conftest import CHOSEN
from live.sources.probing import FeedLog, effect_of, read_all
from live.sources.rig_mariadb import Rig
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import SchemaChange, SourceTransaction, ToldColumns
from viewkeeper.sources.mariadb import feed
from viewkeeper.testing.mariadb import PrivateMariaDB

pytestmark = [
    pytest.mark.xdist_group("mariadb"),
    pytest.mark.skipif("mariadb" not in CHOSEN, reason="VIEWKEEPER_KINDS leaves mariadb out"),
    pytest.mark.skipif(Rig.unavailable() is not None, reason=f"mariadb: {Rig.unavailable()}"),
]
THINGS = "CREATE TABLE things (id BIGINT PRIMARY KEY, name VARCHAR(40))"


@pytest.fixture(scope="module")
def server():
    """A server of our own: these tests reset, purge and kill it."""
    with PrivateMariaDB(durable=True) as server:
        yield server


@pytest.fixture
def writer(server):
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE DATABASE traps CHARACTER SET utf8mb4")
        cursor.execute("USE traps")
        cursor.execute(THINGS)
        yield lambda *statements: [cursor.execute(each) for each in statements]


@pytest.fixture
def source(server, writer):
    with opened(server) as source:
        source.setup(["things"])
        yield source


def opened(server, **account):
    from viewkeeper.sources.opening import open_source

    return open_source("src", server.url("traps", **account), allow_setup=True)


def items_since(source, start, relations=("things",)):
    with FeedLog(source, start, relations) as log:
        log.catch_up()
    return [item for item in log.items if isinstance(item, SourceTransaction | SchemaChange)]


def rows_since(source, start, relations=("things",)):
    items = items_since(source, start, relations)
    return [
        r for t in items if isinstance(t, SourceTransaction) for c in t.changes for r in c.inserted
    ]


def stopped_by(source, start, relations=("things",)):
    with pytest.raises(SourceError) as caught, FeedLog(source, start, relations) as log:
        log.catch_up()
    assert not caught.value.retryable
    assert caught.value.hint
    return caught.value.code


# -- what can't be exact ----------------------------------------------------------------------


def test_an_xa_transaction_on_a_table_that_is_read_stops_the_feed(source, writer):
    start = source.start_position()
    writer("XA START 'x'", "INSERT INTO things VALUES (1, 'a')", "XA END 'x'", "XA PREPARE 'x'")
    writer("XA COMMIT 'x'")
    assert stopped_by(source, start) == "xa-transaction"


def test_an_xa_transaction_elsewhere_does_not(source, writer):
    writer("CREATE TABLE other (id BIGINT PRIMARY KEY)")
    start = source.start_position()
    writer("XA START 'x'", "INSERT INTO other VALUES (1)", "XA END 'x'", "XA PREPARE 'x'")
    writer("XA ROLLBACK 'x'", "INSERT INTO things VALUES (1, 'a')")
    writer("XA START 'y'", "INSERT INTO things VALUES (2, 'b')", "XA END 'y'")
    writer("XA COMMIT 'y' ONE PHASE")  # never prepared: an ordinary commit
    assert rows_since(source, start) == [(1, "a"), (2, "b")]


def test_rows_logged_as_statements_stop_the_feed(source, writer):
    start = source.start_position()
    writer("SET binlog_format = STATEMENT", "INSERT INTO things VALUES (1, 'a')")
    assert stopped_by(source, start) == "statement-logged"


def test_a_row_image_without_old_values_stops_the_feed(source, writer):
    writer("INSERT INTO things VALUES (1, 'a')")
    start = source.start_position()
    writer("SET binlog_row_image = MINIMAL", "UPDATE things SET name = 'b'")
    assert stopped_by(source, start) == "bad-row-image"


def test_a_schema_change_behind_the_logs_back_stops_the_feed(source, writer):
    start = source.start_position()
    writer("INSERT INTO things VALUES (1, 'a')", "SET sql_log_bin = 0")
    writer("ALTER TABLE things ADD COLUMN extra INT", "SET sql_log_bin = 1")
    writer("INSERT INTO things VALUES (2, 'b', 3)")
    assert stopped_by(source, start) == "schema-drift"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("ALTER TABLE things ENGINE = MyISAM", "inexact-engine"),
        (
            "ALTER TABLE things ADD COLUMN up BIGINT, ADD FOREIGN KEY (up) REFERENCES things (id) ON DELETE CASCADE",
            "inexact-cascade",
        ),
        ("ALTER TABLE things ADD SYSTEM VERSIONING", "inexact-system-versioning"),
    ],
)
def test_a_table_that_becomes_inexact_stops_feed_and_cut_and_preflight_says_so(
    source, writer, change, code
):
    start = source.start_position()
    with FeedLog(source, start, ["things"]) as log:
        log.catch_up()
        writer(change)
        with pytest.raises(SourceError) as caught:
            log.catch_up()
    assert caught.value.code == code
    with pytest.raises(SourceError) as caught:
        source.cut(["things"])
    assert caught.value.code == code
    assert code in [
        f.code for f in source.preflight(["things"]) if f.severity == "refused" and f.fix
    ]


# -- histories of the log ---------------------------------------------------------------------


def test_a_purged_log_is_a_gap(source, writer):
    start = source.start_position()
    writer("INSERT INTO things VALUES (1, 'a')", "FLUSH LOGS", "FLUSH LOGS")
    current = source.start_position()["file"]
    writer(f"PURGE BINARY LOGS TO '{current}'")
    assert stopped_by(source, start) == "feed-gap"


def test_a_log_that_was_reset_is_a_gap_even_where_the_place_exists_again(source, writer):
    writer("RESET MASTER", "INSERT INTO things VALUES (1, 'a')")
    place = source.start_position()
    # A file remembers the second in which it was begun.
    writer("DELETE FROM things", "DO SLEEP(1.1)", "RESET MASTER")
    # The same file has the same length again, and a transaction ends at the very same offset.
    writer("INSERT INTO things VALUES (1, 'a')")
    assert source.start_position()["offset"] == place["offset"]
    assert stopped_by(source, place) == "feed-gap"


def test_a_cut_after_a_reset_is_refused_until_the_feed_was_opened_again(source, writer):
    with source.feed(["things"], source.start_position()):
        with source.cut(["things"]):
            pass
        writer("RESET MASTER")
        with pytest.raises(SourceError) as caught:
            source.cut(["things"])
        assert caught.value.code == "history-changed"
    with source.feed(["things"], source.start_position()), source.cut(["things"]) as cut:
        assert read_all(cut, ["things"]) == {}


def test_a_log_without_checksums_is_refused_by_check_and_feed_and_set_up(source, writer):
    before = source.start_position()
    writer("INSERT INTO things VALUES (1, 'a')", "SET GLOBAL binlog_checksum = NONE")
    try:
        writer("INSERT INTO things VALUES (2, 'b')")
        found = {finding.code: finding for finding in source.preflight(["things"])}
        assert found["binlog-checksum"].severity == "refused"
        assert "CRC32" in found["binlog-checksum"].fix
        assert found["log-without-checksums"].severity == "refused"
        assert stopped_by(source, before) == "log-without-checksums"
        source.setup(["things"])
        start = source.start_position()
        writer("INSERT INTO things VALUES (3, 'c')")
        assert rows_since(source, start) == [(3, "c")]
        assert "binlog-checksum" not in {f.code for f in source.preflight(["things"])}
    finally:
        writer("SET GLOBAL binlog_checksum = CRC32")


def test_the_feed_follows_rotation_compression_and_domains(source, writer):
    start = source.start_position()
    writer("INSERT INTO things VALUES (1, 'a')", "FLUSH LOGS", "INSERT INTO things VALUES (2, 'b')")
    writer("INSERT INTO things VALUES (3, 'c')", "SET gtid_domain_id = 7")
    writer("INSERT INTO things VALUES (4, 'd')", "SET gtid_domain_id = 0")
    writer("SET GLOBAL log_bin_compress = ON")
    try:
        long = "x" * 3000
        writer("ALTER TABLE things MODIFY name TEXT COMMENT '" + "c" * 300 + "'")
        writer(f"INSERT INTO things VALUES (5, '{long}')", f"UPDATE things SET name = '{long}y'")
    finally:
        writer("SET GLOBAL log_bin_compress = OFF")
    items = items_since(source, start)
    inserted = [
        (row[0], row[1][:1])
        for item in items if isinstance(item, SourceTransaction)
        for change in item.changes for row in change.inserted
    ]  # fmt: skip
    assert inserted[:5] == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "x")]
    with source.cut(["things"]) as cut:
        last = effect_of([items[-1]])
        assert {k: n for k, n in last.items() if n > 0} == read_all(cut, ["things"])


def test_a_restart_in_order_loses_nothing_and_asks_for_nothing(server, source, writer):
    start = source.start_position()
    writer("INSERT INTO things VALUES (1, 'a')")
    server.shut_down()
    server.start()
    with server.connect("traps", autocommit=True) as again, again.cursor() as cursor:
        cursor.execute("INSERT INTO things VALUES (2, 'b')")
    assert rows_since(source, start) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("caught_up", [True, False])
def test_a_crash_under_settings_that_may_lose_the_log_is_not_passed_over(
    server, source, writer, caught_up
):
    start = source.start_position()
    writer("INSERT INTO things VALUES (1, 'a')")
    if caught_up:
        [transaction] = items_since(source, start)
        start = transaction.position
    server.kill()
    server.configure({"sync-binlog": "0"})
    server.start()
    try:
        assert stopped_by(source, start) == "crash-lost-log"
    finally:
        server.configure({"sync-binlog": "1"})
        with server.connect(autocommit=True) as again, again.cursor() as cursor:
            cursor.execute("SET GLOBAL sync_binlog = 1")


# -- schema changes ---------------------------------------------------------------------------


def test_rows_between_two_schema_changes_of_the_past_are_read_by_their_own_layout(source, writer):
    start = source.start_position()
    writer("INSERT INTO things VALUES (1, 'a')", "ALTER TABLE things ADD COLUMN size INT")
    writer("INSERT INTO things VALUES (2, 'b', 3)", "ALTER TABLE things DROP COLUMN name")
    writer(
        "INSERT INTO things VALUES (4, 5)",
        "ALTER TABLE things MODIFY size VARCHAR(9) CHARACTER SET latin1",
    )
    writer("INSERT INTO things VALUES (6, 'ü')")
    items = items_since(source, start)
    schema = None
    for item in items:
        if isinstance(item, SchemaChange):
            schema = item.after.schema
        elif schema is not None:
            for change in item.changes:
                assert all(len(row) == len(schema) for row in change.inserted)
    assert rows_since(source, start) == [(1, "a"), (2, "b", 3), (4, 5), (6, "ü")]


def test_a_table_that_is_swapped_for_another_must_be_read_anew(source, writer):
    writer("CREATE TABLE things_new (id BIGINT PRIMARY KEY, title TEXT)")
    start = source.start_position()
    writer("INSERT INTO things_new VALUES (1, 'new')")
    writer("RENAME TABLE things TO things_old, things_new TO things")
    writer("INSERT INTO things VALUES (2, 'more')")
    change, transaction = items_since(source, start)
    assert change.rewrites
    assert change.before.schema.names == ("id", "name")
    assert change.after.schema.names == ("id", "title")
    assert transaction.changes[0].inserted == [(2, "more")]


@pytest.mark.parametrize(
    "away", ["RENAME TABLE things TO things_old", "ALTER TABLE things RENAME x"]
)
def test_a_table_that_was_swapped_by_two_statements_is_not_followed(source, writer, away):
    """Its rows under the other name are not the relation's, and the next table's are."""
    writer("CREATE TABLE things_new (id BIGINT PRIMARY KEY, title TEXT)")
    start = source.start_position()
    writer("INSERT INTO things VALUES (1, 'old')", away)
    writer("INSERT INTO things_new VALUES (1, 'new')", "RENAME TABLE things_new TO things")
    writer("INSERT INTO things VALUES (2, 'more')")
    first, change, last = items_since(source, start)
    assert first.changes[0].inserted == [(1, "old")]
    assert (change.relation, change.renamed_to, change.rewrites) == ("things", None, True)
    assert change.before.schema.names == ("id", "name")
    assert change.after.schema.names == ("id", "title")
    assert last.changes[0].inserted == [(2, "more")]


def test_a_renamed_table_says_where_it_went(source, writer):
    start = source.start_position()
    writer("ALTER TABLE things RENAME TO objects")
    [change] = items_since(source, start)
    assert (change.after, change.renamed_to, change.rewrites) == (None, "objects", False)


def test_a_table_renamed_and_changed_at_once_is_first_changed(source, writer):
    start = source.start_position()
    writer("ALTER TABLE things MODIFY id DECIMAL(30, 0), CHANGE name title TEXT, RENAME objects")
    changed, renamed = items_since(source, start)
    assert str(changed.after.schema.type_of("id")) == "decimal(30,0)"
    assert (changed.relation, changed.renamed_to) == ("things", None)
    assert renamed.before == changed.after
    assert (renamed.after, renamed.renamed_to, renamed.rewrites) == (None, "objects", False)


def test_statements_are_told_in_order_though_the_table_has_gone_on_long_since(source, writer):
    start = source.start_position()
    writer("ALTER TABLE things RENAME COLUMN name TO title", "ALTER TABLE things ADD extra INT")
    writer("RENAME TABLE things TO objects", "ALTER TABLE objects RENAME COLUMN title TO label")
    writer("INSERT INTO objects VALUES (1, 'a', 2)", "RENAME TABLE objects TO items")
    renamed, added, moved = items_since(source, start)
    assert renamed.renamed_columns == {"name": "title"}
    assert renamed.after.schema.names == ("id", "title")
    assert added.after is not None
    assert (moved.renamed_to, moved.told) == ("objects", ToldColumns())
    # As the pipeline does: behind the rename, by the new name. There is no such table any more.
    labelled, found, row, moved = items_since(source, moved.position, ("objects",))
    assert labelled.renamed_columns == {"title": "label"}
    # The column that nobody could describe comes with its rows.
    assert (found.after.schema.names, found.rewrites) == (("id", "label", "extra"), False)
    assert row.changes[0].inserted == [(1, "a", 2)]
    assert (moved.before, moved.renamed_to) == (found.after, "items")
    # A feed that goes back knows what was there, too.
    assert items_since(source, start)[0].before.schema.names == ("id", "name")


def test_a_table_made_from_a_query_comes_with_its_rows(source, writer):
    writer("INSERT INTO things VALUES (1, 'a'), (2, 'b')")
    start = source.start_position()
    writer("CREATE TABLE copies AS SELECT * FROM things")
    relations = ("copies",)
    assert rows_since(source, start, relations) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("change", "rewrites"),
    [
        ("ALTER TABLE things ADD COLUMN extra INT", False),
        ("ALTER TABLE things ADD COLUMN extra INT DEFAULT 5", True),
        ("ALTER TABLE things ADD INDEX (name), COMMENT = 'x'", False),
        ("CREATE INDEX by_name ON things (name)", False),
        ("ALTER TABLE things MODIFY name VARCHAR(10)", True),
        ("ALTER TABLE things MODIFY name VARCHAR(900)", False),
        ("ALTER TABLE things CHANGE name title VARCHAR(900)", False),
        ("ALTER TABLE things CONVERT TO CHARACTER SET latin1", True),
        ("SET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE things DROP COLUMN name", False),
    ],
)
def test_only_changes_that_may_touch_values_ask_for_a_new_reading(source, writer, change, rewrites):
    start = source.start_position()
    writer(change)
    assert [item.rewrites for item in items_since(source, start)] == [rewrites]


def test_statements_that_concern_no_table_pass_by(source, writer):
    start = source.start_position()
    writer("CREATE TEMPORARY TABLE t (a INT)", "INSERT INTO t VALUES (1)", "DROP TEMPORARY TABLE t")
    writer(
        "CREATE USER IF NOT EXISTS someone",
        "GRANT SELECT ON traps.* TO someone",
        "DROP USER someone",
    )
    writer("CREATE VIEW v AS SELECT * FROM things", "DROP VIEW v", "ANALYZE TABLE things")
    writer("CREATE TRIGGER tr BEFORE INSERT ON things FOR EACH ROW SET NEW.name = UPPER(NEW.name)")
    writer("CREATE PROCEDURE p() INSERT INTO things VALUES (2, 'b')", "OPTIMIZE TABLE things")
    writer(
        "CREATE SEQUENCE s",
        "INSERT INTO things VALUES (1, 'a')",
        "CALL p()",
        "SELECT NEXT VALUE FOR s",
    )
    assert rows_since(source, start) == [(1, "A"), (2, "B")]


def test_savepoints_and_rollbacks_that_a_table_without_transactions_leaves_in_the_log(
    source, writer
):
    writer("CREATE TABLE plain (id INT) ENGINE = MyISAM")
    start = source.start_position()
    writer(
        "BEGIN",
        "INSERT INTO things VALUES (1, 'a')",
        "SAVEPOINT s",
        "INSERT INTO things VALUES (2, 'b')",
    )
    writer(
        "INSERT INTO plain VALUES (1)",
        "ROLLBACK TO S",
        "INSERT INTO things VALUES (3, 'c')",
        "COMMIT",
    )
    writer(
        "BEGIN", "INSERT INTO things VALUES (4, 'd')", "INSERT INTO plain VALUES (2)", "ROLLBACK"
    )
    assert rows_since(source, start) == [(1, "a"), (3, "c")]


@contextlib.contextmanager
def stalled(server, writer, statement):
    """A commit that waits for a replica: it stands in the log, and no query sees it."""
    writer(
        "SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC",
        "SET GLOBAL rpl_semi_sync_master_timeout = 600000",
        "SET GLOBAL rpl_semi_sync_master_enabled = ON",
    )
    before = log_end(server)

    def commit() -> None:
        with server.connect("traps", autocommit=True) as other, other.cursor() as cursor:
            cursor.execute(statement)

    committing = threading.Thread(target=commit)
    committing.start()
    try:
        with server.connect(autocommit=True) as looking:
            eventually(lambda: log_end(server, looking) != before)
        yield
    finally:
        writer("SET GLOBAL rpl_semi_sync_master_enabled = OFF")
        committing.join()


def test_a_feed_and_a_cut_miss_nothing_that_was_logged_but_is_not_visible_yet(
    server, source, writer
):
    writer("INSERT INTO things VALUES (1, 'before')")
    with stalled(server, writer, "INSERT INTO things VALUES (2, 'waits')"):
        start = source.start_position()
        with source.cut(["things"]) as cut:
            seen = read_all(cut, ["things"])
    assert seen == {("things", (1, "before")): 1}
    later = [t for t in items_since(source, start) if not cut.reflects(t)]
    seen.update(effect_of(later))
    with source.cut(["things"]) as cut:
        assert read_all(cut, ["things"]) == seen


def test_a_cut_that_does_not_show_what_lies_before_the_feed_is_refused(server, source, writer):
    with stalled(server, writer, "INSERT INTO things VALUES (1, 'waits')"):
        file, offset = log_end(server)
        with source.feed(["things"], {"file": file, "offset": int(offset)}):
            with pytest.raises(SourceError) as caught:
                source.cut(["things"])
            assert (caught.value.code, caught.value.retryable) == ("cut-refused", True)
    with source.cut(["things"]) as cut:
        assert read_all(cut, ["things"]) == {("things", (1, "waits")): 1}


def log_end(server, connection=None):
    with contextlib.ExitStack() as stack:
        connection = connection or stack.enter_context(server.connect(autocommit=True))
        cursor = stack.enter_context(connection.cursor())
        cursor.execute("SHOW MASTER STATUS")
        return cursor.fetchone()[:2]


def eventually(holds):
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_a_feed_returns_from_tables_that_nobody_reads_and_forgets_what_it_knew_of_them(
    source, writer, monkeypatch
):
    monkeypatch.setattr(feed, "EVENTS_PER_POLL_MAX", 20)
    monkeypatch.setattr(feed, "LAYOUTS_MAX", 2)
    start = source.start_position()
    for number in range(10):
        writer(f"CREATE TABLE other_{number} (id INT)")
        writer(*(f"INSERT INTO other_{number} VALUES ({n})" for n in range(5)))
        writer(f"INSERT INTO things VALUES ({number}, 'x')")
    with source.cut([]) as cut:
        end = cut.bound
    polls, rows = [], []
    with source.feed(["things"], start) as following:
        while source.compare_positions(following.position, end) < 0:
            items = following.poll(5.0)
            polls.append(items)
            rows += [r for t in items if isinstance(t, SourceTransaction) for r in inserted(t)]
        assert len(following._layouts) <= 2
    assert rows == [(number, "x") for number in range(10)]
    assert len(polls) > 10
    assert all(polls), "a poll that has moved on must say so"


def inserted(transaction):
    return [row for change in transaction.changes for row in change.inserted]


def test_replace_on_several_unique_keys_takes_all_its_victims_out(source, writer):
    writer("ALTER TABLE things ADD UNIQUE (name)")
    writer("INSERT INTO things VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    with source.cut(["things"]) as cut:
        before = read_all(cut, ["things"])
    start = source.start_position()
    writer("REPLACE INTO things VALUES (1, 'b')", "INSERT IGNORE INTO things VALUES (3, 'z')")
    writer("INSERT INTO things VALUES (3, 'q') ON DUPLICATE KEY UPDATE name = 'dup'")
    before.update(effect_of(items_since(source, start)))
    with source.cut(["things"]) as cut:
        assert +before == read_all(cut, ["things"])
