"""Schema changes that only PostgreSQL has: rewrites, partitions, renamed tables, no event trigger."""

from decimal import Decimal

import psycopg
import pytest

from live.sources.probing import followed, read_all
from viewkeeper.errors import SourceError

KIND = "postgres"


@pytest.fixture
def writer(database):
    writer = database.writer()
    writer.run("CREATE TABLE things (id BIGINT PRIMARY KEY, name TEXT, size INTEGER)")
    yield writer
    writer.close()


@pytest.fixture
def source(database, writer):
    with database.open() as source:
        source.setup(["things"])
        yield source
        source.teardown()


def inserted(item):
    return [row for change in item.changes for row in change.inserted]


def test_a_rewriting_type_change_means_reading_anew(source, writer):
    start = source.start_position()
    writer.run("INSERT INTO things VALUES (1, 'a', 3)")
    writer.run("ALTER TABLE things ALTER size TYPE TEXT USING 'size ' || size")
    writer.run("INSERT INTO things VALUES (2, 'b', 'size 4')")
    first, change, second = followed(source, start)
    assert inserted(first) == [(1, "a", 3)]
    assert change.rewrites
    assert inserted(second) == [(2, "b", "size 4")]


def test_a_widened_text_column_is_no_rewrite(source, writer):
    writer.run("ALTER TABLE things ADD COLUMN code VARCHAR(5)")
    start = source.start_position()
    writer.run("ALTER TABLE things ALTER code TYPE VARCHAR(50)")
    (change,) = followed(source, start)
    assert not change.rewrites


def test_a_renamed_relation_goes_on_under_its_new_name(source, writer):
    start = source.start_position()
    writer.run("INSERT INTO things VALUES (1, 'a', 3)")
    writer.run("ALTER TABLE things RENAME TO items")
    writer.run("INSERT INTO items VALUES (2, 'b', 4)")
    first, change, second = followed(source, start)
    assert first.changes[0].relation == "things"
    assert (change.after, change.renamed_to) == (None, "items")
    assert second.changes[0].relation == "items"
    with source.cut(["items"]) as cut:
        assert len(read_all(cut, ["items"])) == 2


def test_commands_on_other_tables_stay_out_of_the_feed(source, writer):
    start = source.start_position()
    writer.run("CREATE TABLE other (id BIGINT)")
    writer.run("ALTER TABLE other ADD COLUMN more TEXT")
    writer.run("DROP TABLE other")
    writer.run("CREATE INDEX by_name ON things (name)")
    assert followed(source, start) == []


def test_the_trigger_never_makes_the_owners_command_fail(source, writer):
    """Two transactions alter the table by turns, the older one with a snapshot that is too old."""
    start = source.start_position()
    writer.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    writer.fetch("SELECT count(*) FROM pg_class")  # takes the snapshot
    with psycopg.connect(writer._connection.info.dsn, autocommit=True) as other:
        other.execute("ALTER TABLE things ADD COLUMN one BIGINT")
    writer.run("ALTER TABLE things ADD COLUMN two BIGINT")
    writer.run("COMMIT")
    changes = followed(source, start)
    assert changes[0].after.schema.names == ("id", "name", "size", "one")
    assert changes[-1].after.schema.names == ("id", "name", "size", "one", "two")
    assert changes[-1].rewrites, "what could not be told exactly is read anew"


def test_without_an_event_trigger_a_change_shows_with_the_next_row(source, writer):
    writer.run("DROP EVENT TRIGGER viewkeeper_src_ddl")
    start = source.start_position()
    writer.run("INSERT INTO things VALUES (1, 'a', 3)")
    writer.run("ALTER TABLE things ADD COLUMN extra TEXT DEFAULT 'x'")
    writer.run("ALTER TABLE things DROP COLUMN size")
    writer.run("INSERT INTO things VALUES (2, 'b', 'y')")
    first, change, second = followed(source, start)
    assert inserted(first) == [(1, "a", 3)]
    assert change.rewrites
    assert change.after.schema.names == ("id", "name", "extra")
    assert inserted(second) == [(2, "b", "y")]
    findings = {f.code: f.severity for f in source.preflight(["things"])}
    assert findings["event-trigger"] == "warning"


def test_types_of_the_users_own_are_alike_on_both_paths(database, writer):
    """Also when the feed starts before a change of the table, and a type is new since."""
    writer.run("CREATE TYPE mood AS ENUM ('so so', 'fine')")
    writer.run("CREATE DOMAIN price AS NUMERIC(8, 2) CHECK (VALUE >= 0)")
    writer.run("CREATE DOMAIN list_price AS price")
    writer.run("CREATE TABLE own (id BIGINT PRIMARY KEY, m mood, p list_price, ms mood[])")
    with database.open() as source:
        source.setup(["own"])
        start = source.start_position()
        writer.run("INSERT INTO own VALUES (1, 'so so', 1.5, '{fine,NULL}')")
        writer.run("ALTER TYPE mood ADD VALUE 'great'")
        writer.run("ALTER TABLE own ADD COLUMN q price")
        writer.run("INSERT INTO own VALUES (2, 'great', 2, '{\"so so\"}', 3)")
        first, change, second = followed(source, start, ["own"])
        with source.cut(["own"]) as cut:
            rows = sorted(row for _, row in read_all(cut, ["own"]))
        source.teardown()
    assert inserted(first) == [(1, "so so", Decimal("1.50"), "{fine,NULL}")]
    assert inserted(second) == [rows[1]]
    assert rows[0] == (1, "so so", Decimal("1.50"), "{fine,NULL}", None)
    assert not change.rewrites


@pytest.fixture
def partitioned(database, writer):
    writer.run(
        "CREATE TABLE sales (id BIGINT, region TEXT, PRIMARY KEY (id, region)) "
        "PARTITION BY LIST (region)"
    )
    writer.run("CREATE TABLE sales_n PARTITION OF sales FOR VALUES IN ('north')")
    writer.run("CREATE TABLE sales_s PARTITION OF sales FOR VALUES IN ('south')")
    with database.open() as source:
        source.setup(["sales"])
        yield source
        source.teardown()


def test_rows_of_partitions_come_under_the_name_of_the_whole(partitioned, writer):
    start = partitioned.start_position()
    writer.run("INSERT INTO sales VALUES (1, 'north'), (2, 'south')")
    writer.run("UPDATE sales SET region = 'south' WHERE id = 1")  # moves to the other partition
    first, second = followed(partitioned, start, ["sales"])
    assert sorted(inserted(first)) == [(1, "north"), (2, "south")]
    (change,) = second.changes
    assert (list(change.deleted), list(change.inserted)) == ([(1, "north")], [(1, "south")])
    with partitioned.cut(["sales"]) as cut:
        assert read_all(cut, ["sales"]) == {
            ("sales", (1, "south")): 1,
            ("sales", (2, "south")): 1,
        }


def test_attaching_and_detaching_a_partition_means_reading_anew(partitioned, writer):
    writer.run("CREATE TABLE sales_w (id BIGINT, region TEXT, PRIMARY KEY (id, region))")
    writer.run("INSERT INTO sales_w VALUES (7, 'west')")
    start = partitioned.start_position()
    writer.run("ALTER TABLE sales ATTACH PARTITION sales_w FOR VALUES IN ('west')")
    writer.run("ALTER TABLE sales DETACH PARTITION sales_n")
    attached, detached = followed(partitioned, start, ["sales"])
    assert attached.rewrites
    assert detached.rewrites
    assert attached.before == attached.after


def test_a_new_empty_partition_changes_nothing(partitioned, writer):
    start = partitioned.start_position()
    writer.run("CREATE TABLE sales_e PARTITION OF sales FOR VALUES IN ('east')")
    assert [change for change in followed(partitioned, start, ["sales"]) if change.rewrites] == []


def test_a_partition_made_later_carries_its_old_values_too(partitioned, writer):
    start = partitioned.start_position()
    writer.run("ALTER TABLE sales ADD COLUMN note TEXT")
    writer.run("CREATE TABLE sales_e PARTITION OF sales FOR VALUES IN ('east')")
    writer.run("INSERT INTO sales VALUES (3, 'east', 'old')")
    writer.run("UPDATE sales SET note = 'new' WHERE id = 3")
    *_, last = followed(partitioned, start, ["sales"])
    (change,) = last.changes
    assert (list(change.deleted), list(change.inserted)) == (
        [(3, "east", "old")],
        [(3, "east", "new")],
    )


@pytest.mark.parametrize("table", ["sales", "sales_n"])
def test_old_values_that_the_owner_switches_off_are_missed_at_once(partitioned, writer, table):
    start = partitioned.start_position()
    writer.run(f"ALTER TABLE {table} REPLICA IDENTITY DEFAULT")
    with pytest.raises(SourceError) as caught:
        followed(partitioned, start, ["sales"])
    assert caught.value.code == "identity-lost"
