"""SQLite alone: whatever goes unrecorded is noticed, by name and in its place."""

import math
import os
import shutil
import sqlite3

import pytest

from live.sources.probing import effect_of, followed, read_all
from live.sources.rig_sqlite import SQLiteDatabase
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import SchemaChange, SourceTransaction


@pytest.fixture
def database():
    with SQLiteDatabase() as database:
        yield database


@pytest.fixture
def writer(database):
    writer = database.writer()
    writer.run("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, size INTEGER)")
    yield writer
    writer.close()


@pytest.fixture
def source(database, writer):
    with database.open() as source:
        source.settle_seconds = 0.0
        source.setup(["things"])
        yield source


@pytest.fixture
def reader(database, source):
    """The same, without permission to set anything up."""
    with database.open(allow_setup=False) as reader:
        reader.settle_seconds = 0.0
        yield reader


def put(writer, *numbers):
    for number in numbers:
        writer.run("INSERT INTO things (id, name) VALUES (?, 'n')", number)


def changes(source, start, relations=("things",)):
    return [item for item in followed(source, start, relations) if isinstance(item, SchemaChange)]


def stopped(reader, start, relation="things"):
    """What the feed says that can't go on."""
    with pytest.raises(SourceError) as caught, reader.feed([relation], start) as feed:
        feed.poll(1.0)
    assert (caught.value.code, caught.value.retryable) == ("not-recorded", False)
    assert "--allow-setup" in caught.value.hint
    return caught.value.detail


def read_anew(source, start, relations=("things",)):
    """The only change that is told: everything before it is skipped."""
    (change,) = followed(source, start, relations)
    assert change.rewrites
    assert change.skips
    assert change.after == source.schemas([change.relation])[change.relation]
    return change


def gap(source, start):
    with pytest.raises(SourceError) as caught, source.feed(["things"], start) as feed:
        feed.poll(0.0)
    assert caught.value.code == "feed-gap"
    assert not caught.value.retryable
    return caught.value.detail


# What was restored, replaced, or pruned


def test_a_file_that_was_replaced_while_the_feed_ran_is_a_gap(database, source, writer):
    put(writer, 1)
    start = source.start_position()
    with source.feed(["things"], start) as feed:
        assert feed.poll(0.0) == []
        os.rename(database.path, f"{database.path}.old")
        with pytest.raises(SourceError) as caught:
            feed.poll(0.0)
    assert caught.value.code == "feed-gap"


def test_a_cut_of_a_file_that_was_replaced_leaves_no_connection_to_it(database, source, writer):
    put(writer, 1)
    restored = sqlite3.connect(f"{database.path}.restored")
    writer._connection.backup(restored)
    put(writer, 2)
    restored.execute("PRAGMA journal_mode = WAL")
    restored.close()
    with source.cut(["things"]) as old:
        for suffix in ("", "-wal", "-shm"):
            os.rename(f"{database.path}{suffix}", f"{database.path}.old{suffix}")
        os.rename(f"{database.path}.restored", database.path)
        with source.cut(["things"]) as cut:
            assert read_all(cut, ["things"]).total() == 1
        assert read_all(old, ["things"]).total() == 2
    for _ in range(3):
        with source.cut(["things"]) as cut:
            assert read_all(cut, ["things"]).total() == 1


def test_another_database_in_its_place_is_a_gap(database, source, writer):
    put(writer, 1)
    start = source.start_position()
    with SQLiteDatabase() as other:
        again = other.writer()
        again.run("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, size INTEGER)")
        with other.open() as another:
            another.setup(["things"])
            assert "another history" in gap(another, start)
        again.close()


def restored(database, source, writer):
    """The database is as it was before its last transaction; the position is behind that."""
    put(writer, 1, 2)
    backup = sqlite3.connect(f"{database.path}.backup")
    writer._connection.backup(backup)
    put(writer, 3)
    start = source.start_position()
    backup.backup(writer._connection)
    backup.close()
    return start


def test_an_older_state_that_was_restored_is_a_gap(database, source, writer):
    start = restored(database, source, writer)
    assert "restored" in gap(source, start)


def test_an_older_state_that_has_grown_past_our_position_is_a_gap_too(database, source, writer):
    start = restored(database, source, writer)
    put(writer, 30, 31, 32)
    assert "another one" in gap(source, start)


def test_a_log_that_was_pruned_past_our_position_is_a_gap(source, writer):
    put(writer, 1)
    start = source.start_position()
    put(writer, 2, 3, 4)
    writer.run("DELETE FROM _viewkeeper_log_1 WHERE seq IN (2, 3)")
    assert "2 of the log's rows" in gap(source, start)


def test_a_log_without_the_row_at_our_position_is_a_gap(source, writer):
    put(writer, 1)
    start = source.start_position()
    put(writer, 2)
    writer.run("DELETE FROM _viewkeeper_log_1 WHERE seq = 1")
    assert "is gone" in gap(source, start)


def test_a_database_whose_setup_was_taken_away_is_named(source, writer):
    start = source.start_position()
    source.teardown()
    with pytest.raises(SourceError) as caught:
        source.feed(["things"], start)
    assert caught.value.code == "not-set-up"
    assert "--setup-sql" in caught.value.hint


# What the owner did to the table


def test_a_lost_trigger_stops_the_feed_and_is_made_again_where_it_may_be(source, reader, writer):
    start = source.start_position()
    put(writer, 1)
    writer.run("DROP TRIGGER _viewkeeper_1_insert")
    put(writer, 2)
    assert "a trigger is missing" in stopped(reader, start)
    change = read_anew(source, start)
    assert change.before == change.after
    put(writer, 3)
    (third,) = followed(reader, change.position)
    assert third.changes[0].inserted == [(3, "n", None)]


def test_what_was_logged_while_a_trigger_was_missing_is_never_shown(source, writer):
    """The row that was deleted unseen would stand beside the one that came later."""
    writer.run("CREATE TABLE others (id INTEGER PRIMARY KEY)")
    source.setup(["others"])
    start = source.start_position()
    put(writer, 1)
    writer.run("DROP TRIGGER _viewkeeper_1_delete")
    writer.run("DELETE FROM things WHERE id = 1")
    put(writer, 2)
    writer.run("INSERT INTO others VALUES (1)")
    found = followed(source, start, ["things", "others"])
    assert [(type(c), c.relation, c.skips) for c in found] == [
        (SchemaChange, "things", True),
        (SchemaChange, "others", True),
    ]
    # A relation that nothing happened to is left alone.
    put(writer, 3)
    start = source.start_position()
    writer.run("DROP TRIGGER _viewkeeper_3_delete")
    assert [c.relation for c in followed(source, start, ["things", "others"])] == ["things"]


def test_a_cut_refuses_what_is_not_recorded_any_more(source, writer):
    writer.run("DROP TRIGGER _viewkeeper_1_delete")
    with pytest.raises(SourceError) as caught:
        source.cut(["things"])
    assert caught.value.code == "not-recorded"
    assert "--setup-sql" in caught.value.hint
    with source.cut([]):
        pass  # where the database stands can be asked for all the same


SAME = "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, size INTEGER)"


def test_a_table_that_was_dropped_and_made_again_must_be_read_anew(source, reader, writer):
    put(writer, 1)
    start = source.start_position()
    writer.run("DROP TABLE things")
    writer.run(SAME)
    writer.run("INSERT INTO things VALUES (9, 'unseen', 9)")
    assert "a trigger is missing" in stopped(reader, start)
    change = read_anew(source, start)
    put(writer, 2)
    (row,) = followed(source, change.position)
    assert row.changes[0].inserted == [(2, "n", None)]
    with source.cut(["things"]) as cut:
        assert len(read_all(cut, ["things"])) == 2


def test_a_table_that_was_made_again_with_other_columns_says_which(source, writer):
    start = source.start_position()
    writer.run("DROP TABLE things")
    writer.run("CREATE TABLE things (name TEXT, id INTEGER PRIMARY KEY, colour TEXT)")
    change = read_anew(source, start)
    assert change.before.schema.names == ("id", "name", "size")
    assert change.after.schema.names == ("name", "id", "colour")


def twelve_steps(
    writer, columns="id INTEGER PRIMARY KEY, name TEXT, size INTEGER", drop_first=False
):
    """The procedure of SQLite's own documentation keeps triggers, and changes rows unseen."""
    triggers = writer.fetch(
        "SELECT sql FROM sqlite_schema WHERE tbl_name = 'things' AND type = 'trigger'"
    )
    writer.begin()
    if drop_first:
        writer.run("DROP TABLE things")
        writer.run(f"CREATE TABLE things ({columns})")
        writer.run("INSERT INTO things (id, name) VALUES (1, 'changed')")
    else:
        writer.run(f"CREATE TABLE fresh ({columns})")
        writer.run("INSERT INTO fresh (id, name) SELECT id, 'changed' FROM things")
        writer.run("DROP TABLE things")
        writer.run("ALTER TABLE fresh RENAME TO things")
    for (sql,) in triggers:
        writer.run(sql)
    writer.commit()


@pytest.mark.parametrize("auto_vacuum", ["NONE", "FULL"])
@pytest.mark.parametrize("drop_first", [False, True])
def test_a_table_rebuilt_in_twelve_steps_with_our_triggers_copied_must_be_read_anew(
    source, reader, writer, auto_vacuum, drop_first
):
    """With auto_vacuum, or when the old one goes first, the new table has the old one's page."""
    if auto_vacuum == "FULL":
        writer.run("PRAGMA auto_vacuum = FULL")
        writer.run("VACUUM")
    put(writer, 1)
    start = source.start_position()
    twelve_steps(writer, drop_first=drop_first)
    put(writer, 2)
    change = read_anew(reader, start)  # nothing has to be set up for it
    assert change.before == change.after
    put(writer, 3)
    (row,) = followed(reader, change.position)
    assert row.changes[0].inserted == [(3, "n", None)]


def test_the_same_is_noticed_when_it_was_done_while_no_feed_ran(source, writer):
    put(writer, 1)
    start = source.start_position()
    writer.run("CREATE TABLE fresh AS SELECT * FROM things")
    writer.run("DROP TABLE things")
    (change,) = changes(source, start)
    assert change.after is None


def test_a_renamed_table_says_its_new_name(source, writer):
    start = source.start_position()
    put(writer, 1)
    writer.run("ALTER TABLE things RENAME TO objects")
    writer.run("INSERT INTO objects VALUES (2, 'b', 2)")
    one, two, change = followed(source, start)
    assert (change.after, change.renamed_to, change.rewrites) == (None, "objects", False)
    # The log goes on: whatever was written in the meantime comes before the change, the rest after.
    assert [t.changes[0].inserted for t in (one, two)] == [[(1, "n", None)], [(2, "b", 2)]]
    writer.run("ALTER TABLE objects RENAME COLUMN name TO title")
    writer.run("UPDATE objects SET size = 3 WHERE id = 2")
    renamed, three = followed(source, change.position, ["objects"])
    assert renamed.renamed_columns == {"name": "title"}
    assert three.changes[0].inserted == [(2, "b", 3)]
    assert {finding.code for finding in source.preflight(["objects"])} >= {"table-changed"}


def test_a_table_renamed_again_and_again_while_nobody_looked_is_followed(source, writer):
    start = source.start_position()
    put(writer, 1)
    for before, after in (("things", "a"), ("a", "b"), ("b", "c")):
        writer.run(f"ALTER TABLE {before} RENAME TO {after}")
    source.setup(["c"])  # nothing is missing
    writer.run("ALTER TABLE c RENAME COLUMN size TO weight")
    source.setup(["c"])
    writer.run("INSERT INTO c VALUES (2, 'b', 20)")
    *_, change = followed(source, start)
    assert change.renamed_to == "c"
    # Also from a place that was known by the old name alone.
    one, *_, two = followed(source, start, ["c"])
    assert [t.changes[0].inserted for t in (one, two)] == [[(1, "n", None)], [(2, "b", 20)]]
    writer.run("ALTER TABLE c RENAME TO things")
    put_back = followed(source, change.position, ["c"])[-1]
    assert (put_back.after, put_back.renamed_to) == (None, "things")


def test_tables_that_exchanged_their_names_must_be_read_anew(source, writer):
    writer.run("CREATE TABLE others (id INTEGER PRIMARY KEY, name TEXT, size INTEGER)")
    source.setup(["others"])
    start = source.start_position()
    put(writer, 1)
    writer.begin()
    writer.run("ALTER TABLE things RENAME TO away")
    writer.run("ALTER TABLE others RENAME TO things")
    writer.run("ALTER TABLE away RENAME TO others")
    writer.commit()
    put(writer, 5)
    change = read_anew(source, start)
    put(writer, 6)
    (row,) = followed(source, change.position)
    assert row.changes[0].inserted == [(6, "n", None)]


def test_a_new_table_under_the_name_of_a_renamed_one_is_not_taken_for_it(source, reader, writer):
    start = source.start_position()
    put(writer, 1)
    writer.run("ALTER TABLE things RENAME TO old_things")
    writer.run("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, size INTEGER)")
    put(writer, 2)
    assert "a trigger is missing" in stopped(reader, start)
    read_anew(source, start)
    start = source.start_position()
    writer.run("INSERT INTO old_things VALUES (8, 'old', 1)")
    put(writer, 3)
    (only,) = followed(source, start)
    assert only.changes[0].inserted == [(3, "n", None)]
    (old,) = followed(source, start, ["old_things"])
    assert old.changes[0].inserted == [(8, "old", 1)]


def test_an_added_column_is_refused_until_setup_is_repeated_and_nothing_is_lost(source, writer):
    start = source.start_position()
    put(writer, 1)
    writer.run("ALTER TABLE things ADD COLUMN extra TEXT")
    writer.run("INSERT INTO things VALUES (2, 'b', 20, 'unseen')")
    one, two, added = followed(source, start)
    assert two.changes[0].inserted == [(2, "b", 20)]
    assert (set(added.after.refused), added.rewrites) == ({"extra"}, False)
    source.setup(["things"])
    writer.run("INSERT INTO things VALUES (3, 'c', 30, 'seen')")
    everything = followed(source, start)
    assert everything[:2] == [one, two]
    known, three = everything[-2:]
    assert known.after.schema.names == ("id", "name", "size", "extra")
    assert not known.rewrites
    assert three.changes[0].inserted == [(3, "c", 30, "seen")]


def test_a_column_dropped_within_a_transaction_cuts_it_in_pieces(source, writer):
    start = source.start_position()
    writer.begin()
    writer.run("INSERT INTO things VALUES (1, 'a', 10)")
    writer.run("ALTER TABLE things DROP COLUMN name")
    writer.run("INSERT INTO things VALUES (2, 20)")
    writer.commit()
    first, change, second = followed(source, start)
    assert first.identity == second.identity
    assert first.changes[0].inserted == [(1, "a", 10)]
    assert second.changes[0].inserted == [(2, 20)]
    again, rest = followed(source, first.position)
    assert again == change
    assert (rest.identity, rest.changes) == (second.identity, second.changes)
    (rest,) = followed(source, change.position)
    assert (rest.identity, rest.changes) == (second.identity, second.changes)


def test_ddl_that_was_rolled_back_never_happened(source, writer):
    start = source.start_position()
    writer.begin()
    writer.run("ALTER TABLE things DROP COLUMN size")
    writer.run("INSERT INTO things VALUES (1, 'a')")
    writer.abort()
    put(writer, 2)
    (only,) = followed(source, start)
    assert only.changes[0].inserted == [(2, "n", None)]


def test_renames_and_drops_between_rows_stand_where_they_happened(source, writer):
    start = source.start_position()
    writer.run("INSERT INTO things VALUES (1, 'a', 10)")
    writer.run("ALTER TABLE things RENAME COLUMN name TO title")
    writer.run("INSERT INTO things VALUES (2, 'b', 20)")
    writer.run("ALTER TABLE things DROP COLUMN size")
    writer.run("INSERT INTO things VALUES (3, 'c')")
    one, renamed, two, dropped, three = followed(source, start)
    assert renamed.renamed_columns == {"name": "title"}
    assert dropped.after.schema.names == ("id", "title")
    rows = [t.changes[0].inserted[0] for t in (one, two, three)]
    assert rows == [(1, "a", 10), (2, "b", 20), (3, "c")]


def test_a_unique_index_that_the_triggers_do_not_know_stops_the_feed(source, reader, writer):
    start = source.start_position()
    writer.run("CREATE UNIQUE INDEX things_name ON things (name)")
    writer.run("REPLACE INTO things VALUES (1, 'a', 1)")
    writer.run("REPLACE INTO things VALUES (2, 'a', 2)")
    assert "unique index" in stopped(reader, start)
    change = read_anew(source, start)
    writer.run("REPLACE INTO things VALUES (3, 'a', 3)")
    (replaced,) = followed(reader, change.position)
    assert replaced.changes[0].deleted == [(2, "a", 2)]


@pytest.mark.parametrize("by_script", [False, True])
def test_setup_after_a_unique_index_knows_that_something_may_be_missing(
    database, source, reader, writer, by_script
):
    """Also when no feed looked between the index and setup, and every trigger was there."""
    put(writer, 1)
    start = source.start_position()
    writer.run("CREATE UNIQUE INDEX things_name ON things (name)")
    writer.run("REPLACE INTO things VALUES (2, 'n', 2)")
    if by_script:
        writer._connection.executescript(source.setup_sql(["things"]))
    else:
        source.setup(["things"])
    read_anew(reader, start)


def test_a_trigger_of_the_owner_that_runs_before_ours_stops_the_feed(source, reader, writer):
    start = source.start_position()
    writer.run("CREATE TABLE audit (id INTEGER PRIMARY KEY, what TEXT UNIQUE)")
    writer.run(
        "CREATE TRIGGER noted AFTER INSERT ON things "
        "BEGIN INSERT INTO audit (what) VALUES (NEW.name); END"
    )
    put(writer, 1)
    with pytest.raises(sqlite3.IntegrityError):
        writer.run("INSERT OR FAIL INTO things VALUES (2, 'n', NULL)")  # and the row is there
    assert "noted" in stopped(reader, start)
    change = read_anew(source, start)
    with source.cut(["things"]) as cut:
        assert read_all(cut, ["things"]).total() == 2
    with pytest.raises(sqlite3.IntegrityError):
        writer.run("INSERT OR FAIL INTO things VALUES (3, 'n', NULL)")
    (third,) = followed(reader, change.position)
    assert third.changes[0].inserted == [(3, "n", None)]


def test_a_column_that_was_renamed_before_setup_was_repeated_is_known_as_renamed(source, writer):
    start = source.start_position()
    writer.run("ALTER TABLE things RENAME COLUMN name TO title")
    source.setup(["things"])
    (change,) = followed(source, start)
    assert (change.renamed_columns, change.rewrites) == ({"name": "title"}, False)


# A change of the schema is a step forward


def test_a_position_that_counts_a_change_of_the_schema_is_behind_no_other(source, writer):
    before = source.start_position()
    writer.run("CREATE INDEX things_size ON things (size)")
    after = source.start_position()
    assert before["seq"] == after["seq"]
    assert source.compare_positions(before, after) < 0
    with source.feed(["things"], before) as feed:
        (progress,) = feed.poll(0.0)
    assert source.compare_positions(progress.position, after) == 0
    old = {word: part for word, part in before.items() if word != "schema"}
    assert source.compare_positions(old, before) < 0  # written by an older version of ours


def test_a_table_that_is_gone_for_a_moment_is_not_dropped(source, writer):
    put(writer, 1)
    start = source.start_position()
    source.settle_seconds = math.inf
    with source.feed(["things"], start) as feed:
        writer.run("CREATE TABLE fresh (id INTEGER PRIMARY KEY, name TEXT, size INTEGER)")
        writer.run("INSERT INTO fresh SELECT id, 'changed', size FROM things")
        writer.run("DROP TABLE things")
        assert feed.poll(0.0) == []
        writer.run("ALTER TABLE fresh RENAME TO things")
        assert feed.poll(0.0) == []
        source.settle_seconds = 0.0
        found = []
        while not any(isinstance(item, SchemaChange) for item in found):
            found += feed.poll(0.1)
    (change,) = [item for item in found if isinstance(item, SchemaChange)]
    assert (change.rewrites, change.after.schema.names) == (True, ("id", "name", "size"))


@pytest.mark.parametrize("may_set_up", [True, False])
def test_a_table_that_was_set_up_after_the_feeds_start_is_known_from_its_first_look_on(
    source, reader, writer, may_set_up
):
    """As that of a view that was added later: its feed begins where the other views stand."""
    start = source.start_position()
    writer.run("CREATE TABLE others (id INTEGER PRIMARY KEY, name TEXT)")
    source.setup(["others"])
    with source.feed(["things", "others"], start) as feed:
        feed.poll(0.0)
        position = feed.position
    assert set(position["shapes"]) == {"things", "others"}
    writer.run("DROP TABLE others")
    writer.run("CREATE TABLE others (id INTEGER PRIMARY KEY, name TEXT)")
    for place in (start, position):
        if may_set_up:
            assert [c.relation for c in changes(source, place, ["things", "others"])] == ["others"]
        else:
            assert "others" in stopped(reader, place, "others")


# What we must not do to the owner


def test_triggers_that_a_tool_puts_back_never_make_a_write_fail(source, writer):
    """After setup was repeated, and on a table that lacks a unique column by now."""
    writer.run("DROP TABLE things")
    writer.run("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT UNIQUE, size INTEGER)")
    source.setup(["things"])
    old = writer.fetch(
        "SELECT sql FROM sqlite_schema WHERE tbl_name = 'things' AND type = 'trigger'"
    )
    twelve_steps(writer, "id INTEGER PRIMARY KEY, name TEXT")
    writer.run("REPLACE INTO things VALUES (1, 'a')")
    writer.begin()
    writer.run("CREATE TABLE fresh (id INTEGER PRIMARY KEY, size INTEGER)")
    writer.run("DROP TABLE things")
    writer.run("ALTER TABLE fresh RENAME TO things")
    writer.commit()
    source.setup(["things"])
    start = source.start_position()
    for (sql,) in old:
        writer.run(sql)
    writer.run("REPLACE INTO things VALUES (1, 5)")
    writer.run("UPDATE things SET size = 6")
    writer.run("DELETE FROM things")
    rows = [t for t in followed(source, start) if isinstance(t, SourceTransaction)]
    assert [len(t.changes[0].inserted) - len(t.changes[0].deleted) for t in rows] == [1, 0, -1]
    source.setup(["things"])
    (names,) = zip(
        *writer.fetch(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'things'"
        ),
        strict=True,
    )
    assert len(names) == 6


def test_other_tables_ddl_is_none_of_our_business(source, writer):
    start = source.start_position()
    put(writer, 1)
    writer.run("CREATE TABLE unrelated (a)")
    writer.run("CREATE INDEX things_size ON things (size)")
    put(writer, 2)
    assert [type(item) for item in followed(source, start)] == [SourceTransaction] * 2


def test_a_vacuum_may_move_the_table_and_loses_nothing(source, writer):
    start = source.start_position()
    put(writer, 1, 2, 3)
    writer.run("DELETE FROM things WHERE id = 2")
    writer.run("VACUUM")
    put(writer, 4)
    found = [item for item in followed(source, start) if isinstance(item, SourceTransaction)]
    with source.cut(["things"]) as cut:
        assert effect_of(found) == read_all(cut, ["things"])


# Values that do not fit


def test_a_poison_row_is_named_after_everything_before_it_was_delivered(source, writer):
    start = source.start_position()
    put(writer, 1)
    writer.run("INSERT INTO things VALUES (2, 'b', 'large')")
    with source.feed(["things"], start) as feed:
        (first, *_) = feed.poll(0.0)
        assert first.changes[0].inserted == [(1, "n", None)]
        with pytest.raises(SourceError) as caught:
            feed.poll(0.0)
    error = caught.value
    assert (error.code, error.retryable) == ("poison-row", False)
    for word in ("things", "rowid 2", "size", "'large'"):
        assert word in str(error)
    with source.cut(["things"]) as cut, pytest.raises(SourceError) as caught:
        read_all(cut, ["things"])
    assert str(caught.value) == str(error)


def test_text_that_is_no_utf8_is_named_after_everything_before_it_was_delivered(source, writer):
    writer.run("CREATE TABLE others (id INTEGER PRIMARY KEY, name TEXT)")
    source.setup(["others"])
    start = source.start_position()
    bad = "CAST(X'ff' AS TEXT)"
    with source.feed(["things", "others"], start) as feed:
        writer.run("INSERT INTO things VALUES (1, 'a', 1)")
        writer.run(f"INSERT INTO others VALUES (1, {bad})")
        writer.run("INSERT INTO things VALUES (2, 'b', 2)")
        writer.run(f"INSERT INTO things VALUES (3, {bad}, 3)")
        found = [item for item in feed.poll(30) if isinstance(item, SourceTransaction)]
        assert effect_of(found) == {("things", (1, "a", 1)): 1}
        with pytest.raises(SourceError) as caught:
            feed.poll(30)
        assert caught.value.code == "poison-row"
        assert "others" in caught.value.message


def test_text_that_is_no_utf8_is_a_poison_row(source, writer):
    start = source.start_position()
    writer.run("INSERT INTO things VALUES (1, CAST(x'ff' AS TEXT), 1)")
    with source.feed(["things"], start) as feed, pytest.raises(SourceError) as caught:
        feed.poll(0.0)
    assert caught.value.code == "poison-row"
    with source.cut(["things"]) as cut, pytest.raises(SourceError) as caught:
        read_all(cut, ["things"])
    assert caught.value.code == "poison-row"


def test_a_file_that_is_no_database_or_not_there_is_a_named_error(database, tmp_path):
    (tmp_path / "text.db").write_text("no database at all, but long enough to look at" * 10)
    for name, code in (("text.db", "not-a-database"), ("none.db", "unreachable")):
        with database.open(url=f"sqlite:///{tmp_path / name}") as source:
            with pytest.raises(SourceError) as caught:
                source.schemas()
            assert caught.value.code == code
    assert not (tmp_path / "none.db").exists()


def test_a_copied_database_has_the_same_history_and_can_be_read_on(
    database, source, writer, tmp_path
):
    """A backup that is restored in the right state is no gap: the row at our position proves it."""
    put(writer, 1)
    start = source.start_position()
    put(writer, 2)
    writer.run("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(database.path, tmp_path / "copy.db")
    with database.open(url=f"sqlite:///{tmp_path / 'copy.db'}") as copy:
        (only,) = followed(copy, start)
    assert only.changes[0].inserted == [(2, "n", None)]
