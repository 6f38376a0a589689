"""SQLite alone: processes that die, a WAL that starts over, pruning, setup by its owner, keys."""

import datetime as dt
import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest

from live.sources.probing import FeedLog, effect_of, read_all
from live.sources.rig_sqlite import SQLiteDatabase
from live.sources.workload import RELATIONS, Workload, create_tables
from viewkeeper.arrow import rows_of
from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.interface import KeyedRead, SourceTransaction
from viewkeeper.sources.sqlite import pruning
from viewkeeper.sources.sqlite.source import SQLiteSource
from viewkeeper.sources.urls import parse_source_url


@pytest.fixture
def database():
    with SQLiteDatabase() as database:
        yield database


@pytest.fixture
def writer(database):
    writer = database.writer()
    create_tables(writer)
    yield writer
    writer.close()


@pytest.fixture
def source(database, writer):
    with database.open() as source:
        source.setup(RELATIONS)
        yield source


def mark(writer, *weights):
    writer.begin()
    for weight in weights:
        writer.run("INSERT INTO marks VALUES ('m', ?)", weight)
    writer.commit()


def followed(source, start, relations=RELATIONS):
    with FeedLog(source, start, relations) as log:
        log.catch_up()
    return log.transactions


def weights(transactions):
    return [[row[1] for c in t.changes for row in c.inserted] for t in transactions]


# Processes that die


def child(code, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_a_writer_killed_within_its_transaction_leaves_nothing(database, source, writer):
    start = source.start_position()
    mark(writer, 1)
    process = child(
        """
        import sqlite3, sys, time
        db = sqlite3.connect(sys.argv[1], isolation_level=None)
        db.execute("PRAGMA cache_size = 2")  # spills uncommitted pages into the WAL
        db.execute("BEGIN IMMEDIATE")
        for n in range(3000):
            db.execute("INSERT INTO marks VALUES (hex(zeroblob(200)), ?)", (n,))
        print("ready", flush=True)
        time.sleep(600)
        """,
        database.path,
    )
    kill(process)
    mark(writer, 2)
    mark(writer, 3, 4)
    assert weights(followed(source, start)) == [[1], [2], [3, 4]]


def test_our_own_process_killed_while_it_prunes_resumes_where_it_had_confirmed(
    database, source, writer
):
    start = source.start_position()
    for n in range(0, 6000, 10):
        mark(writer, *range(n, n + 10))
    code = """
        import json, sys
        from viewkeeper.sources.opening import open_source
        from viewkeeper.sources.sqlite import pruning
        pruning.ROWS_PER_VISIT, pruning.ROWS_PER_TRANSACTION = 1, 3
        source = open_source("src", sys.argv[1])
        feed = source.feed(["marks"], json.loads(sys.argv[2]))
        items = feed.poll(1.0, items_max=300)
        print("ready", flush=True)
        for item in items:
            # Said before it is done: what is pruned was surely said.
            print(json.dumps(item.position), flush=True)
            feed.confirm(item.position)
        """
    process = child(code, database.url, json.dumps(start))
    said = [process.stdout.readline() for _ in range(20)]
    process.kill()
    said += process.stdout.read().splitlines(keepends=True)
    process.wait()
    confirmed = json.loads([line for line in said if line.endswith("\n")][-1])
    rest = weights(followed(source, confirmed, ["marks"]))
    first = int(confirmed["seq"])
    assert [n for group in rest for n in group] == list(range(first, 6000))


# Where transactions end


def test_transactions_stay_apart_while_a_feed_runs_and_the_wal_starts_over(database, source):
    """The default of SQLite: a checkpoint every 1,000 pages, and the WAL from its start again."""
    start = source.start_position()
    busy = sqlite3.connect(database.path, isolation_level=None)
    busy.execute("PRAGMA synchronous = OFF")
    written = []
    with source.feed(["marks"], start) as feed:
        seen = []
        for n in range(400):
            busy.execute("BEGIN")
            count = n % 3 + 1
            busy.executemany("INSERT INTO marks VALUES (hex(zeroblob(3000)), ?)", [(n,)] * count)
            busy.execute("COMMIT")
            written.append([n] * count)
            if n % 5 == 0:
                seen += [i for i in feed.poll(0.0) if isinstance(i, SourceTransaction)]
        seen += [i for i in feed.poll(0.0) if isinstance(i, SourceTransaction)]
    assert os.path.getsize(f"{database.path}-wal") < 3 * 1000 * 4096, "the WAL has started over"
    busy.close()
    assert weights(seen) == written


def lose_the_wal(database):
    """What happens when the last connection closes: the file goes, with all it told."""
    connection = sqlite3.connect(database.path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def test_transactions_that_the_wal_no_longer_tells_apart_come_as_one_and_whole(
    database, source, writer
):
    start = source.start_position()
    mark(writer, 1)
    mark(writer, 2)
    lose_the_wal(database)
    mark(writer, 3)
    (together,) = followed(source, start)
    assert weights([together]) == [[1, 2, 3]]


def test_they_are_split_where_a_cut_was_opened(database, source, writer):
    start = source.start_position()
    mark(writer, 1)
    with source.cut(RELATIONS) as cut:
        pass
    mark(writer, 2)
    lose_the_wal(database)
    first, second = followed(source, start)
    assert (cut.reflects(first), cut.reflects(second)) == (True, False)


def test_a_cut_of_which_the_feed_can_not_know_says_so_instead_of_guessing(database, source, writer):
    start = source.start_position()
    mark(writer, 1)
    with database.open() as stranger, stranger.cut(RELATIONS) as cut:
        mark(writer, 2)
        cut.close()
        lose_the_wal(database)
        (together,) = followed(source, start)
        with pytest.raises(SourceError) as caught:
            cut.reflects(together)
    assert (caught.value.code, caught.value.retryable) == ("cut-lost", True)


def test_feeds_and_closed_cuts_do_not_hold_up_the_checkpoint(database, source, writer):
    with source.feed(RELATIONS, source.start_position()) as feed:
        mark(writer, 1)
        assert feed.poll(0.0)
        with source.cut(RELATIONS) as cut:
            read_all(cut)
        busy, in_wal, moved = writer.fetch("PRAGMA wal_checkpoint(TRUNCATE)")[0]
    assert (busy, in_wal, moved) == (0, 0, 0)


def test_the_feed_wakes_up_by_itself(database, source, writer):
    with source.feed(["marks"], source.start_position()) as feed:
        assert feed.poll(0.05) == []
        mark(writer, 1)
        # One call waits long enough for any machine, and comes back with the row, not after it.
        (item, *_) = feed.poll(60.0)
        assert weights([item]) == [[1]]


# Pruning


def log_rows(writer):
    tables = writer.fetch("SELECT name FROM sqlite_schema WHERE name GLOB '_viewkeeper_log_*'")
    return sum(writer.fetch(f"SELECT count(*) FROM {name}")[0][0] for (name,) in tables)


@pytest.fixture
def eager_pruning(monkeypatch):
    monkeypatch.setattr(pruning, "ROWS_PER_VISIT", 1)
    monkeypatch.setattr(pruning, "ROWS_PER_TRANSACTION", 7)


@pytest.mark.usefixtures("eager_pruning")
def test_confirmed_rows_are_deleted_when_setup_permits_it(database, source, writer):
    start = source.start_position()
    mark(writer, *range(50))
    mark(writer, 50)
    with source.feed(RELATIONS, start) as feed:
        first, _ = (i for i in feed.poll(0.0) if isinstance(i, SourceTransaction))
        feed.confirm(first.position)
        assert log_rows(writer) == 2
    assert weights(followed(source, first.position)) == [[50]]


@pytest.mark.usefixtures("eager_pruning")
def test_nothing_is_deleted_when_setup_does_not_permit_it(database, source, writer):
    writer.run("UPDATE _viewkeeper_clock SET may_prune = 0")
    start = source.start_position()
    mark(writer, *range(50))
    with source.feed(RELATIONS, start) as feed:
        (item,) = feed.poll(0.0)
        feed.confirm(item.position)
    assert log_rows(writer) == 50
    assert writer.fetch("SELECT * FROM _viewkeeper_readers") == []


@pytest.mark.usefixtures("eager_pruning")
def test_the_slowest_of_several_readers_decides(database, source, writer):
    start = source.start_position()
    mark(writer, *range(10))
    mark(writer, *range(10))
    with database.open(url=f"{database.url}?reader=slow") as slow:
        with slow.feed(RELATIONS, start) as feed:
            first, _ = feed.poll(0.0)
            feed.confirm(first.position)
        with source.feed(RELATIONS, start) as feed, pytest.raises(SourceError):
            feed.poll(0.0)  # the fast one had not confirmed anything, and was not known
        with source.feed(RELATIONS, first.position) as feed:
            (last,) = feed.poll(0.0)
            feed.confirm(last.position)
        assert log_rows(writer) == 11
        assert len(followed(slow, first.position)) == 1


@pytest.mark.usefixtures("eager_pruning")
def test_pruning_never_waits_for_a_writer_nor_fails_because_of_one(database, source, writer):
    start = source.start_position()
    mark(writer, *range(50))
    with source.feed(RELATIONS, start) as feed:
        (item,) = feed.poll(0.0)
        writer.begin()
        feed.confirm(item.position)
        writer.commit()
        assert log_rows(writer) == 50
        feed.confirm(item.position)
        mark(writer, 1)
        (last,) = feed.poll(0.0)
        feed.confirm(last.position)
        assert log_rows(writer) == 1


@pytest.mark.usefixtures("eager_pruning")
def test_writers_go_on_while_the_log_is_pruned_under_them(database, source):
    start = source.start_position()
    workload = Workload(database)
    total = Counter()
    with source.feed(RELATIONS, start) as feed, workload:
        while sum(len(w.committed) for w in workload.writers) < 120 and not workload.errors:
            for item in feed.poll(0.01):
                if isinstance(item, SourceTransaction):
                    total.update(effect_of([item]))
                    feed.confirm(item.position)
        workload.stop()
        total.update(effect_of(i for i in feed.poll(0.0) if isinstance(i, SourceTransaction)))
    assert workload.errors == []
    with source.cut(RELATIONS) as cut:
        assert Counter({k: n for k, n in total.items() if n}) == read_all(cut)


# Setup by the owner, preflight


def codes(source, relations=RELATIONS):
    return {f.code for f in source.preflight(relations) if f.severity == "refused"}


def test_the_owner_runs_the_script_as_it_was_printed(database, writer):
    with database.open(allow_setup=False) as source:
        script = source.setup_sql(RELATIONS)
        owner = sqlite3.connect(database.path)
        owner.executescript(script)
        owner.executescript(source.setup_sql(RELATIONS))  # and once more, later
        owner.close()
        assert codes(source) == set()
        start = source.start_position()
        mark(writer, 1)
        assert weights(followed(source, start)) == [[1]]


def test_a_script_that_was_kept_fails_and_changes_nothing(database, writer):
    with database.open(allow_setup=False) as source:
        script = source.setup_sql(RELATIONS)
        for attempt in range(2):
            owner = sqlite3.connect(database.path)
            if attempt:
                with pytest.raises(sqlite3.IntegrityError):
                    owner.executescript(script)
            else:
                owner.executescript(script)
            owner.close()
            assert codes(source) == set()


def test_the_script_does_not_let_us_prune_unless_its_owner_says_so(database, writer):
    with database.open(allow_setup=False) as source:
        writer._connection.executescript(source.setup_sql(["marks"]))
    assert writer.fetch("SELECT may_prune FROM _viewkeeper_clock") == [(0,)]


def test_preflight_refuses_what_can_not_be_exact(database, source, writer):
    writer.run("CREATE TABLE lowered (a TEXT)")
    writer.run("CREATE UNIQUE INDEX lowered_a ON lowered (lower(a))")
    writer.run("CREATE VIEW seen AS SELECT 1 AS one")
    writer.run("CREATE TRIGGER late AFTER INSERT ON marks BEGIN SELECT 1; END")
    writer.run(
        "CREATE TRIGGER early BEFORE INSERT ON accounts BEGIN "
        "DELETE FROM accounts WHERE id = NEW.id; END"
    )
    found = codes(source, ["lowered", "seen", "marks", "accounts", "nowhere"])
    assert found == {"not-recordable", "newer-triggers", "before-trigger", "unknown-relation"}
    source.setup(["marks"])
    assert codes(source, ["marks"]) == set()
    with pytest.raises(SourceError) as caught:
        source.setup(["lowered"])
    assert caught.value.code == "not-recordable"


def test_another_journal_mode_is_refused(tmp_path):
    path = tmp_path / "rollback.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a INT)")
    connection.close()
    with SQLiteSource("s", parse_source_url(f"sqlite:///{path}", "s")) as source:
        assert "wal-mode" in codes(source, ["t"])


def test_an_unknown_option_in_the_url_is_a_usage_error(database):
    with pytest.raises(UsageError) as caught:
        database.open(url=f"{database.url}?raeder=me")
    assert "raeder" in caught.value.message


def test_tables_of_attached_databases_are_unknown(database, source):
    with pytest.raises(SourceError) as caught:
        source.schemas(["other.things"])
    assert "attached" in caught.value.hint


# Keys and kinds of tables


def keyed(cut, relation, key, values, type):
    schema = cut.schemas[relation].schema
    question = KeyedRead(relation, schema.names, (key,), pa.table({key: pa.array(values, type)}))
    return sorted(row for batch in cut.read(question) for row in rows_of(batch, schema))


def ids_of(rows):
    return [row[0] for row in rows]


def test_keys_are_compared_as_values_whatever_sqlite_thinks(database, writer):
    writer.run(
        "CREATE TABLE k (id INTEGER PRIMARY KEY, t TEXT COLLATE NOCASE, d DATETIME, p DECIMAL(9,2))"
    )
    with database.open() as source:
        source.setup(["k"])
        rows = [
            (1, "a", "2024-01-01 10:00", 1.1),
            (2, "A", "2024-01-01T10:00:00.000", 1.10),
            (3, "b", None, 2),
        ]
        for row in rows:
            writer.run("INSERT INTO k VALUES (?, ?, ?, ?)", *row)
        moment = dt.datetime(2024, 1, 1, 10)
        with source.cut(["k"]) as cut:
            assert ids_of(keyed(cut, "k", "t", ["a", None], pa.string())) == [1]
            assert ids_of(keyed(cut, "k", "d", [moment], pa.timestamp("us"))) == [1, 2]
            assert ids_of(keyed(cut, "k", "p", [Decimal("1.10")], pa.decimal128(9, 2))) == [1, 2]
            assert ids_of(keyed(cut, "k", "p", [Decimal("2.00")], pa.decimal128(9, 2))) == [3]


def test_a_table_without_rowid_and_generated_columns_are_recorded(database, writer):
    writer.run(
        "CREATE TABLE w (a TEXT, n INTEGER, s TEXT AS (a || n) STORED, v INTEGER AS (n * 2), "
        "PRIMARY KEY (a, n)) WITHOUT ROWID"
    )
    with database.open() as source:
        source.setup(["w"])
        start = source.start_position()
        writer.run("INSERT INTO w VALUES ('x', 1), ('y', 2)")
        writer.run("UPDATE w SET n = 3 WHERE a = 'x'")
        writer.run("REPLACE INTO w VALUES ('y', 2)")
        found = followed(source, start, ["w"])
        with source.cut(["w"]) as cut:
            assert read_all(cut, ["w"]) == effect_of(found)
            assert set(read_all(cut, ["w"])) == {("w", ("x", 3, "x3", 6)), ("w", ("y", 2, "y2", 4))}
            parts = [cut.read(KeyedRead("w", ("a",), part=p, parts=2)) for p in range(2)]
            assert [sum(b.num_rows for b in part) for part in parts] == [2, 0]


def test_a_column_named_rowid_hides_nothing(database, writer):
    writer.run("CREATE TABLE r (rowid TEXT, oid TEXT)")
    with database.open() as source:
        source.setup(["r"])
        start = source.start_position()
        writer.run("INSERT INTO r VALUES ('a', 'b'), ('a', 'b')")
        writer.run("DELETE FROM r WHERE _rowid_ = 1")
        found = followed(source, start, ["r"])
        with source.cut(["r"]) as cut:
            assert read_all(cut, ["r"]) == effect_of(found) == {("r", ("a", "b")): 1}


def test_a_null_in_a_primary_key_is_a_poison_row(database, writer):
    writer.run("CREATE TABLE n (id TEXT PRIMARY KEY)")
    with database.open() as source:
        source.setup(["n"])
        writer.run("INSERT INTO n VALUES (NULL)")
        with source.cut(["n"]) as cut, pytest.raises(SourceError) as caught:
            read_all(cut, ["n"])
    assert caught.value.code == "poison-row"
