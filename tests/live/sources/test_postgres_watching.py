"""What PostgreSQL's log does not tell: another publication, tables that exchange names, no event trigger."""

from __future__ import annotations

import pytest

from live.sources.probing import FeedLog, followed, read_all
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import Progress, SchemaChange, SourceTransaction

KIND = "postgres"
PUBLICATION = "ALTER PUBLICATION viewkeeper_src"


@pytest.fixture
def writer(database):
    writer = database.writer()
    writer.run("CREATE TABLE things (id BIGINT PRIMARY KEY, name TEXT, size INTEGER)")
    writer.run("CREATE TABLE others (id BIGINT PRIMARY KEY, name TEXT, size INTEGER)")
    writer.run("INSERT INTO others VALUES (7, 'of the other', 70)")
    yield writer
    writer.close()


@pytest.fixture
def source(database, writer):
    with database.open() as source:
        source.setup(["things"])
        yield source
        source.teardown()


@pytest.fixture
def untold(source, writer):
    """The source where no event trigger watches, as a role that is no superuser sets it up."""
    writer.run("DROP EVENT TRIGGER viewkeeper_src_ddl")
    writer.run("DROP EVENT TRIGGER viewkeeper_src_rewrite")
    return source


def opened(source, relations=("things",), start=None):
    """A feed whose reader takes the relations for what they are now."""
    source.believe(source.schemas(relations))
    return source.feed(relations, start or source.start_position())


def polled(feed, count: int = 1):
    """So many items that say something, in at most a minute."""
    found = []
    for _ in range(600):
        found += [item for item in feed.poll(0.1) if not isinstance(item, Progress)]
        if len(found) >= count:
            break
    return found


def stopped(feed) -> SourceError:
    with pytest.raises(SourceError) as caught:
        polled(feed, 10**6)
    assert not caught.value.retryable
    assert "viewkeeper rebuild --source src" in caught.value.hint
    return caught.value


def inserted(item):
    return [row for change in item.changes for row in change.inserted]


# -- the publication ------------------------------------------------------------------------------

ALTERED = {
    "taken out": (f"{PUBLICATION} DROP TABLE things", "not-published"),
    "filtered": (f"{PUBLICATION} SET TABLE things WHERE (id > 3)", "publication-filtered"),
    "columns": (f"{PUBLICATION} SET TABLE things (id, name)", "publication-filtered"),
    "fewer kinds": (f"{PUBLICATION} SET (publish = 'insert')", "publication-filtered"),
    "gone": ("DROP PUBLICATION viewkeeper_src", "not-published"),
}


@pytest.mark.parametrize("how", ALTERED)
def test_a_table_that_brings_no_more_rows_is_missed_though_nothing_comes(source, writer, how):
    statement, code = ALTERED[how]
    with opened(source) as feed:
        writer.run("INSERT INTO things VALUES (1, 'a', 3)")
        polled(feed)
        before = feed.position
        writer.run(statement)
        writer.run("INSERT INTO things VALUES (2, 'b', 4)")
        for relations in (["things"], []):  # nor is it said how far the source has come
            with pytest.raises(SourceError) as caught:
                source.cut(relations)
            assert caught.value.code == code
        assert stopped(feed).code in (code, "feed-gap")  # the server itself misses one that is gone
        if how in ("taken out", "filtered"):
            assert feed.position == before, "no place is told without its rows"


PUT_BACK = {
    "taken out": (f"{PUBLICATION} DROP TABLE things", f"{PUBLICATION} ADD TABLE things"),
    "filtered": (
        f"{PUBLICATION} SET TABLE things WHERE (id > 3)",
        f"{PUBLICATION} SET TABLE things",
    ),
    "fewer kinds": (
        f"{PUBLICATION} SET (publish = 'insert')",
        f"{PUBLICATION} SET (publish = 'insert, update, delete, truncate')",
    ),
    "made again": (
        "DROP PUBLICATION viewkeeper_src",
        "CREATE PUBLICATION viewkeeper_src FOR TABLE things WITH (publish_via_partition_root)",
    ),
}


@pytest.mark.parametrize("how", PUT_BACK)
def test_what_was_put_back_between_two_looks_is_missed_too(source, writer, how):
    away, back = PUT_BACK[how]
    with opened(source) as feed:
        writer.run(away)
        writer.run("INSERT INTO things VALUES (2, 'b', 4)")
        writer.run("UPDATE things SET size = 5")
        writer.run(back)
        with pytest.raises(SourceError) as caught:
            source.cut(["things"])
        assert caught.value.code == "not-published"
        assert stopped(feed).code in ("not-published", "feed-gap")
    # Nor does a feed that is opened again in the same process go on behind it.
    with pytest.raises(SourceError):
        source.feed(["things"], feed.position)


@pytest.mark.parametrize("how", ["taken out", "filtered", "made again"])
@pytest.mark.parametrize("by_setup", [True, False], ids=["by a set-up", "by its owner"])
def test_what_was_put_back_while_no_run_was_there_is_missed_too(
    database, source, writer, how, by_setup
):
    stood = source.start_position()
    source.check_followed({"things": stood})
    away, back = PUT_BACK[how]
    writer.run(away)
    writer.run("INSERT INTO things VALUES (2, 'b', 4)")
    with database.open() as later:
        if by_setup:
            later.setup(["things"])
        else:
            writer.run(back)
        with pytest.raises(SourceError) as caught:
            later.check_followed({"things": stood})
        assert caught.value.code == "not-published"
        # A rebuild sets it up and reads it anew: from there on nothing is missing.
        later.renew(["things"])
        later.check_followed({"things": later.start_position()})
        with opened(later) as feed:
            writer.run("INSERT INTO things VALUES (3, 'c', 5)")
            assert inserted(polled(feed)[0]) == [(3, "c", 5)]


def test_another_table_that_took_the_name_while_no_run_was_there_is_not_taken_for_it(
    untold, writer
):
    stood = untold.start_position()
    swap(writer, at_once=True)
    writer.run(f"{PUBLICATION} ADD TABLE things")
    with pytest.raises(SourceError) as caught:
        untold.check_followed({"things": stood})
    assert caught.value.code == "table-replaced"


def test_a_publication_that_grows_is_nobodys_loss(source, writer):
    with opened(source) as feed:
        source.setup(["things", "others"])
        writer.run(f"{PUBLICATION} DROP TABLE others")
        writer.run("INSERT INTO things VALUES (1, 'a', 3)")
        (first,) = polled(feed)
        assert inserted(first) == [(1, "a", 3)]
        with source.cut(["things"]) as cut:
            assert len(read_all(cut, ["things"])) == 1


@pytest.mark.parametrize("identity", ["DEFAULT", "NOTHING"])
def test_old_values_that_are_switched_off_are_missed_without_a_trigger(untold, writer, identity):
    with opened(untold) as feed:
        writer.run(f"ALTER TABLE things REPLICA IDENTITY {identity}")
        assert stopped(feed).code == "identity-lost"


# -- no event trigger -----------------------------------------------------------------------------


def test_columns_are_not_shifted_by_a_change_before_the_first_row(untold, writer):
    with opened(untold) as feed:
        writer.run("ALTER TABLE things DROP COLUMN name, ADD COLUMN weight INTEGER")
        writer.run("INSERT INTO things VALUES (1, 30, 400)")
        change, row = polled(feed, 2)
    assert change.before.schema.names == ("id", "name", "size")
    assert change.after.schema.names == ("id", "size", "weight")
    assert change.rewrites
    assert inserted(row) == [(1, 30, 400)]


def test_a_feed_tells_what_views_did_not_know_when_it_starts(untold, writer):
    """What happened while no run was there: the catalog knows it, the views do not."""
    before = untold.schemas(["things"])
    start = untold.start_position()
    writer.run("ALTER TABLE things RENAME COLUMN size TO weight")
    writer.run("INSERT INTO things VALUES (1, 'a', 3)")
    untold.believe(before)
    with untold.feed(["things"], start) as feed:
        change, row = polled(feed, 2)
    assert change.before == before["things"] or change.before.schema.names[-1] == "size"
    assert change.renamed_columns == {"size": "weight"}
    assert inserted(row) == [(1, "a", 3)]


def test_columns_of_which_nothing_says_what_became_of_them_stop_the_feed(untold, writer):
    before = untold.schemas(["things"])
    start = untold.start_position()
    writer.run("ALTER TABLE things DROP COLUMN size")
    writer.run("ALTER TABLE things ADD COLUMN weight INTEGER")  # or was it renamed?
    untold.believe(before)
    with untold.feed(["things"], start) as feed:
        assert stopped(feed).code == "schema-unknown"


UNTOLD_CHANGES = {
    "another key": "ALTER TABLE things DROP CONSTRAINT things_pkey, ADD PRIMARY KEY (id, size)",
    "no key": "ALTER TABLE things DROP CONSTRAINT things_pkey",
    "other values": "ALTER TABLE things ALTER COLUMN size TYPE INTEGER USING size * 2",
    "a new column": "ALTER TABLE things ADD COLUMN weight INTEGER DEFAULT 5",
}


@pytest.mark.parametrize("what", UNTOLD_CHANGES)
def test_a_change_is_told_though_no_row_comes_and_no_cut_is_used_before(untold, writer, what):
    writer.run("INSERT INTO things VALUES (1, 'a', 3)")
    with opened(untold) as feed:
        writer.run(UNTOLD_CHANGES[what])
        with pytest.raises(SourceError) as caught:
            untold.cut(["things"])
        assert caught.value.code == "broken-query"
        (change,) = polled(feed)
        assert isinstance(change, SchemaChange)
        assert change.rewrites
        assert change.after == untold.schemas(["things"])["things"]
        with untold.cut(["things"]) as cut:
            assert len(read_all(cut, ["things"])) == 1
        writer.run("INSERT INTO things (id, name, size) VALUES (2, 'b', 4)")
        (row,) = polled(feed)
        assert isinstance(row, SourceTransaction), "it is told once"


def test_an_event_trigger_that_is_disabled_for_a_while_is_not_relied_on(source, writer):
    with opened(source) as feed:
        writer.run("ALTER EVENT TRIGGER viewkeeper_src_ddl DISABLE")
        writer.run("ALTER TABLE things DROP CONSTRAINT things_pkey")
        writer.run("ALTER EVENT TRIGGER viewkeeper_src_ddl ENABLE ALWAYS")
        with pytest.raises(SourceError) as caught:
            source.cut(["things"])
        assert caught.value.code == "broken-query"
        (change,) = polled(feed)
        assert (change.before.key, change.after.key) == (("id",), ())


def test_a_table_that_moves_to_another_schema_and_back_goes_on(source, writer):
    writer.run("CREATE SCHEMA elsewhere")
    start = source.start_position()
    with opened(source, start=start) as feed:
        writer.run("ALTER TABLE things SET SCHEMA elsewhere")
        writer.run("ALTER TABLE elsewhere.things SET SCHEMA public")
        writer.run("INSERT INTO things VALUES (1, 'a', 3)")
        away, back, row = polled(feed, 3)
    assert (away.renamed_to, back.renamed_to) == ("elsewhere.things", "things")
    assert inserted(row) == [(1, "a", 3)]


# -- another table of the same name ---------------------------------------------------------------

SWAP = (
    "ALTER TABLE things RENAME TO things_old",
    "ALTER TABLE others RENAME TO things",
)


def swap(writer, *, at_once: bool) -> None:
    if at_once:
        writer.begin()
    for statement in SWAP:
        writer.run(statement)
    if at_once:
        writer.commit()


@pytest.mark.parametrize("at_once", [True, False], ids=["one transaction", "two"])
@pytest.mark.parametrize("triggers", [True, False], ids=["told", "untold"])
def test_another_table_of_that_name_stops_a_feed_that_does_not_bring_it(
    source, writer, at_once, triggers
):
    if not triggers:
        writer.run("DROP EVENT TRIGGER viewkeeper_src_ddl")
    with opened(source) as feed:
        swap(writer, at_once=at_once)
        writer.run("INSERT INTO things_old VALUES (1, 'a', 3)")
        assert stopped(feed).code == "table-replaced"


@pytest.mark.parametrize("at_once", [True, False], ids=["one transaction", "two"])
@pytest.mark.parametrize("triggers", [True, False], ids=["told", "untold"])
def test_another_published_table_of_that_name_is_read_anew_and_followed(
    source, writer, at_once, triggers
):
    writer.run("ALTER TABLE others ADD COLUMN more TEXT, DROP COLUMN size")
    source.setup(["things", "others"])
    if not triggers:
        writer.run("DROP EVENT TRIGGER viewkeeper_src_ddl")
    with opened(source) as feed:
        writer.run("INSERT INTO others VALUES (8, 'before', 'x')")
        swap(writer, at_once=at_once)
        (change,) = polled(feed)
        assert (change.relation, change.renamed_to, change.rewrites) == ("things", None, True)
        assert change.after.schema.names == ("id", "name", "more")
        assert change.renamed_columns == {}
        writer.run("INSERT INTO things VALUES (9, 'new', 'y')")
        writer.run("INSERT INTO things_old VALUES (9, 'old', 3)")
        (row,) = polled(feed)
        assert [(c.relation, list(c.inserted)) for c in row.changes] == [
            ("things", [(9, "new", "y")])
        ]
        with source.cut(["things"]) as cut:
            assert len(read_all(cut, ["things"])) == 3


def test_two_tables_that_exchange_their_names_are_both_read_anew(source, writer):
    source.setup(["things", "others"])
    with opened(source, ("things", "others")) as feed:
        writer.begin()
        writer.run("ALTER TABLE things RENAME TO between")
        writer.run("ALTER TABLE others RENAME TO things")
        writer.run("ALTER TABLE between RENAME TO others")
        writer.commit()
        writer.run("INSERT INTO things VALUES (9, 'now here', 1)")
        *changes, row = polled(feed, 3)
    assert {c.relation: (c.renamed_to, c.rewrites) for c in changes} == {
        "things": (None, True),
        "others": (None, True),
    }
    assert row.changes[0].relation == "things"


def test_a_feed_from_before_the_exchange_brings_the_rows_of_the_table_that_was(source, writer):
    source.setup(["things", "others"])
    known = source.schemas(["things"])
    start = source.start_position()
    writer.run("INSERT INTO things VALUES (1, 'of the first', 3)")
    swap(writer, at_once=True)
    writer.run("INSERT INTO things VALUES (9, 'of the other', 1)")
    source.believe(known)
    with source.feed(["things"], start) as feed:
        first, change, second = polled(feed, 3)
    assert inserted(first) == [(1, "of the first", 3)]
    assert change.rewrites
    assert inserted(second) == [(9, "of the other", 1)]


def test_a_table_that_is_dropped_and_made_again_is_not_gone(source, writer):
    with opened(source) as feed:
        writer.begin()
        writer.run("DROP TABLE things")
        writer.run("CREATE TABLE things (id BIGINT PRIMARY KEY, name TEXT, size INTEGER)")
        writer.commit()
        assert stopped(feed).code == "table-replaced"


def test_a_renamed_table_is_followed_where_its_old_name_is_free(untold, writer):
    with opened(untold) as feed:
        writer.run("ALTER TABLE things RENAME TO items")
        (change,) = polled(feed)
        assert (change.after, change.renamed_to) == (None, "items")


def test_nothing_is_told_where_nothing_happened(source, untold, writer):
    """Commands that write the catalog, and change nothing that is read."""
    with FeedLog(untold, untold.start_position(), ["things"]) as log:
        writer.run("CREATE INDEX by_name ON things (name)")
        writer.run("ANALYZE things")
        writer.run("ALTER TABLE things ALTER COLUMN name SET DEFAULT 'x'")
        writer.run("COMMENT ON TABLE things IS 'x'")
        for _ in range(3):
            log.catch_up()
        assert log.schema_changes == []
    assert followed(untold, untold.start_position(), ["things"]) == []
