"""Schema changes in their place in the feed's order, and the source's own DDL never in our way."""

import pytest

from live.sources.probing import FeedLog
from live.sources.workload import Workload, create_tables
from viewkeeper.sources.interface import SchemaChange, SourceTransaction


@pytest.fixture
def ready(database):
    writer = database.writer()
    writer.run("CREATE TABLE things (id BIGINT PRIMARY KEY, name VARCHAR(40), size BIGINT)")
    writer.close()
    with database.open() as source:
        source.setup(["things"])
        yield source
        source.teardown()


@pytest.fixture
def added_columns_come_at_once(rig):
    """Triggers can't record a column that they do not know: there, setup must be repeated first."""
    if "setup-after-add-column" in rig.features:
        pytest.skip(f"{rig.kind} records an added column once setup was repeated")


@pytest.fixture
def writer(database):
    writer = database.writer()
    yield writer
    writer.close()


def followed(source, start):
    """Everything since ``start``: rows put in as tuples, schema changes as they are."""
    with FeedLog(source, start, ["things"]) as log:
        log.catch_up()
    events = []
    for item in log.items:
        match item:
            case SourceTransaction():
                events += [row for change in item.changes for row in change.inserted]
            case SchemaChange():
                events.append(item)
    return events


def names(relation):
    return relation.schema.names


@pytest.mark.usefixtures("added_columns_come_at_once")
def test_an_added_column_comes_between_the_rows_before_and_after_it(ready, writer):
    start = ready.start_position()
    writer.run("INSERT INTO things VALUES (1, 'a', 10)")
    writer.run("ALTER TABLE things ADD COLUMN extra VARCHAR(10)")
    writer.run("INSERT INTO things VALUES (2, 'b', 20, 'x')")
    first, change, second = followed(ready, start)
    assert (first, second) == ((1, "a", 10), (2, "b", 20, "x"))
    assert (change.relation, names(change.before)) == ("things", ("id", "name", "size"))
    assert names(change.after) == ("id", "name", "size", "extra")
    assert change.before.fingerprint != change.after.fingerprint
    assert change.after.fingerprint == ready.schemas(["things"])["things"].fingerprint


def test_a_dropped_column_leaves_the_rows_after_it(ready, writer):
    start = ready.start_position()
    writer.run("INSERT INTO things VALUES (1, 'a', 10)")
    writer.run("ALTER TABLE things DROP COLUMN size")
    writer.run("INSERT INTO things VALUES (2, 'b')")
    first, change, second = followed(ready, start)
    assert (first, second) == ((1, "a", 10), (2, "b"))
    assert names(change.after) == ("id", "name")


def test_a_renamed_column_is_known_by_both_names(ready, writer):
    start = ready.start_position()
    writer.run("ALTER TABLE things RENAME COLUMN name TO title")
    writer.run("INSERT INTO things VALUES (2, 'b', 20)")
    change, row = followed(ready, start)
    assert names(change.before) == ("id", "name", "size")
    assert names(change.after) == ("id", "title", "size")
    assert change.renamed_columns == {"name": "title"}
    assert row == (2, "b", 20)


def test_a_dropped_relation_is_gone_in_its_place(ready, writer):
    start = ready.start_position()
    writer.run("INSERT INTO things VALUES (1, 'a', 10)")
    writer.run("DROP TABLE things")
    row, change = followed(ready, start)
    assert row == (1, "a", 10)
    assert (change.relation, change.after) == ("things", None)
    assert names(change.before) == ("id", "name", "size")


def test_a_truncated_relation_must_be_read_anew(needs, ready, writer):
    needs("truncate")
    start = ready.start_position()
    writer.run("INSERT INTO things VALUES (1, 'a', 10)")
    writer.run("TRUNCATE TABLE things")
    writer.run("INSERT INTO things VALUES (2, 'b', 20)")
    first, change, second = followed(ready, start)
    assert (first, second) == ((1, "a", 10), (2, "b", 20))
    assert change.rewrites
    assert change.before == change.after


@pytest.mark.usefixtures("added_columns_come_at_once")
def test_a_feed_resumes_right_after_a_schema_change(ready, writer):
    start = ready.start_position()
    writer.run("INSERT INTO things VALUES (1, 'a', 10)")
    writer.run("ALTER TABLE things ADD COLUMN extra VARCHAR(10)")
    writer.run("INSERT INTO things VALUES (2, 'b', 20, 'x')")
    _, change, _ = followed(ready, start)
    assert followed(ready, change.position) == [(2, "b", 20, "x")]


def test_schema_changes_rolled_back_with_their_transaction_never_happened(needs, ready, writer):
    needs("transactional-ddl")
    start = ready.start_position()
    writer.begin()
    writer.run("ALTER TABLE things ADD COLUMN extra VARCHAR(10)")
    writer.run("INSERT INTO things VALUES (1, 'a', 10, 'x')")
    writer.abort()
    writer.run("INSERT INTO things VALUES (2, 'b', 20)")
    assert followed(ready, start) == [(2, "b", 20)]


def test_rows_around_a_schema_change_in_one_transaction_keep_their_order(needs, ready, writer):
    needs("transactional-ddl")
    start = ready.start_position()
    writer.begin()
    writer.run("INSERT INTO things VALUES (1, 'a', 10)")
    writer.run("ALTER TABLE things ADD COLUMN extra VARCHAR(10)")
    writer.run("INSERT INTO things VALUES (2, 'b', 20, 'x')")
    writer.commit()
    with FeedLog(ready, start, ["things"]) as log:
        log.catch_up()
    first, change, second = [
        item for item in log.items if isinstance(item, SourceTransaction | SchemaChange)
    ]
    assert first.changes[0].inserted == [(1, "a", 10)]
    assert second.changes[0].inserted == [(2, "b", 20, "x")]
    assert first.identity == second.identity
    # Each piece can be the last one that was committed.
    assert followed(ready, first.position) == [change, (2, "b", 20, "x")]
    assert followed(ready, change.position) == [(2, "b", 20, "x")]
    assert followed(ready, second.position) == []


def test_the_owners_ddl_goes_through_while_we_feed_and_read(database, ready):
    writer = database.writer()
    create_tables(writer)
    relations = ["things", "accounts", "entries", "marks", "journal"]
    ready.setup(relations)
    with (
        FeedLog(ready, ready.start_position(), relations),
        Workload(database, writers=2) as workload,
    ):
        for number in range(5):
            with ready.cut(["accounts"]):
                pass
            writer.run(f"ALTER TABLE things ADD COLUMN extra{number} BIGINT")
            writer.run(f"ALTER TABLE things DROP COLUMN extra{number}")
    writer.close()
    assert workload.errors == []
