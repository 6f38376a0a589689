"""What a role with CONNECT alone can do to a feed: nothing. And what our set-up lets others do at the server."""

from __future__ import annotations

import contextlib
import json

import psycopg
import pytest

from live.sources.forged_messages import SHAPES, TIE_PREFIX, attempts, forged_notes, send
from live.sources.old_postgres_setup import make_old
from live.sources.probing import followed
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import Progress, SchemaChange, SourceTransaction

KIND = "postgres"
OURS = "viewkeeper_src"


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


@pytest.fixture
def intruder(database, writer):
    """A session of a role that may connect, which brings TEMP with it, and no more."""
    writer.run("CREATE ROLE intruder LOGIN")
    with psycopg.connect(database.url, user="intruder", autocommit=True) as session:
        yield session
    writer.run("DROP OWNED BY intruder")
    writer.run("DROP ROLE intruder")


def read_on(source, feed) -> list:
    """What the feed brings up to what is committed now, without places."""
    with source.cut([]) as cut:
        bound = cut.bound
    items = []
    while source.compare_positions(feed.position, bound) < 0:
        items += feed.poll(0.2)
    return [item for item in items if not isinstance(item, Progress)]


@pytest.mark.parametrize("ties", [True, False], ids=["ties expected", "none expected"])
def test_no_message_of_a_role_that_may_only_connect_changes_or_stops_anything(
    source, writer, intruder, ties
):
    if ties:
        source.expect_ties()
    tried = attempts(dict(source.describe(source.resolve(["things"]))["things"].document), OURS)
    assert len({(name, prefix) for name, prefix, _, _ in tried}) > 60
    start = source.start_position()
    told = []
    with source.feed(["things"], start) as feed:
        for number, (name, prefix, content, transactional) in enumerate(tried):
            send(intruder, prefix, content, transactional)
            writer.run("INSERT INTO things VALUES (?, 'honest', 1)", number)
            items = read_on(source, feed)
            assert [type(item) for item in items] == [SourceTransaction], name
            assert items[0].changes[0].inserted == [(number, "honest", 1)], name
            assert items[0].tie is None, name
            told += feed.remarks()
        # Where no ties are expected, no message is even sent to us.
        assert {remark.code for remark in told} == (
            {"message-ignored", "tie-ignored"} if ties else set()
        )
        # A handful of lines in the log, however many there are.
        assert len(told) <= 4
    # The same messages to a feed that starts before them: again, after a restart.
    again = followed(source, start)
    assert [type(item) for item in again] == [SourceTransaction] * len(tried)


def test_messages_by_the_thousand_are_passed_over_and_counted(source, writer, intruder):
    source.expect_ties()
    start = source.start_position()
    for number in range(3):
        for transactional in (True, False):
            intruder.execute(
                "SELECT count(pg_logical_emit_message(%s, p, '[]'::text)) FROM generate_series(1, 3000) n, "
                "unnest(%s::text[]) p",
                [transactional, [OURS, TIE_PREFIX, "other"]],
            )
        for id in range(number * 200, number * 200 + 200):
            writer.run("INSERT INTO things VALUES (?, 'honest', 1)", id)
            send(intruder, TIE_PREFIX, b'{"id": "t", "parts": 2}')
    with source.feed(["things"], start) as feed:
        items = read_on(source, feed)
        assert sorted(row[0] for item in items for row in item.changes[0].inserted) == [*range(600)]
        assert all(item.tie is None for item in items)
        told = [remark.message for remark in feed.remarks() if remark.code == "tie-ignored"]
        assert len(told) <= 5
        assert "(10000 by now)" in told[-1]


def test_a_tie_counts_where_its_transaction_changed_what_is_read(source, writer):
    source.expect_ties()
    start = source.start_position()
    writer.begin()
    writer.run(
        'SELECT pg_logical_emit_message(true, \'viewkeeper.transaction\', \'{"id": "t", "parts": 2}\')'
    )
    writer.run("INSERT INTO things VALUES (1, 'a', 1)")
    writer.commit()
    (item,) = followed(source, start)
    assert item.tie == ("t", 2)


def test_no_session_switches_the_event_triggers_off(source, writer, database):
    """Not by a setting, nor by what it puts where its own names are looked up first."""
    start = source.start_position()
    writer.run("CREATE ROLE owner LOGIN")
    writer.run("GRANT CREATE, USAGE ON SCHEMA public TO owner")
    writer.run("ALTER TABLE things OWNER TO owner")
    with psycopg.connect(database.url, user="owner", autocommit=True) as session:
        session.execute(f"SET {OURS}.busy = 'on'")
        session.execute("SET plpgsql.extra_errors = 'all'")
        session.execute("SET quote_all_identifiers = on")
        session.execute("SET standard_conforming_strings = off")
        session.execute("SET search_path = pg_temp, public")
        for table in ("relation_state", "relation_history", "altering", "pg_class"):
            session.execute(f"CREATE TEMP TABLE {table} (oid oid, description jsonb, xid xid8)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute(f"INSERT INTO {OURS}.altering VALUES (pg_current_xact_id())")
        session.execute("ALTER TABLE public.things RENAME COLUMN size TO weight")
    (change,) = followed(source, start)
    assert isinstance(change, SchemaChange)
    assert change.renamed_columns == {"size": "weight"}
    assert not change.rewrites
    writer.run("ALTER TABLE things OWNER TO postgres")
    writer.run("DROP OWNED BY owner")
    writer.run("DROP ROLE owner")


def test_a_set_up_gives_nobody_the_rights_of_its_owner(database, writer, intruder):
    """A view named as a table of the catalog, in the place that is searched first, calls a function."""
    writer.run("CREATE TABLE sales (id BIGINT PRIMARY KEY) PARTITION BY RANGE (id)")
    writer.run("CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM (0) TO (10)")
    with database.open() as source:
        source.setup(["sales"])
        intruder.execute("""
            CREATE FUNCTION pg_temp.climb() RETURNS "char" LANGUAGE plpgsql AS $$ BEGIN
              IF current_user <> session_user THEN ALTER ROLE intruder SUPERUSER; END IF;
              RETURN 'r'; END $$""")
        intruder.execute(
            "CREATE TEMP VIEW pg_class AS SELECT c.oid, pg_temp.climb() AS relkind, c.relreplident "
            "FROM pg_catalog.pg_class c"
        )
        intruder.execute("CREATE TEMP TABLE anything (id int)")
        assert writer.fetch("SELECT rolsuper FROM pg_roles WHERE rolname = 'intruder'") == [
            (False,)
        ]
        rights = writer.fetch(
            "SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'viewkeeper_src'::regnamespace "
            "AND has_function_privilege('intruder', p.oid, 'EXECUTE')"
            " UNION ALL SELECT c.relname FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = "
            "'viewkeeper_src'::regnamespace AND has_table_privilege('intruder', c.oid, "
            "'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')"
            " UNION ALL SELECT nspname FROM pg_namespace WHERE nspname = 'viewkeeper_src' "
            "AND has_schema_privilege('intruder', oid, 'USAGE, CREATE')"
        )
        assert rights == []
        source.teardown()


def test_no_session_makes_a_trigger_say_that_it_could_not_tell(source, writer, intruder):
    """It would have everything read again. Who exhausts his own stack has his own command fail."""
    start = source.start_position()
    intruder.execute("""
        CREATE FUNCTION pg_temp.dig(depth int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
          IF depth = 0 THEN CREATE TEMP TABLE IF NOT EXISTS deep (id int); DROP TABLE deep;
          ELSE PERFORM pg_temp.dig(depth - 1); END IF; END $$""")
    low, high = 1, 100_000  # the last depth that is possible
    while high - low > 1:
        middle = (low + high) // 2
        try:
            intruder.execute("SELECT pg_temp.dig(%s)", [middle])
            low = middle
        except psycopg.errors.StatementTooComplex:
            high = middle
    for depth in range(low - 40, low + 40):
        with contextlib.suppress(psycopg.errors.StatementTooComplex):
            intruder.execute("SELECT pg_temp.dig(%s)", [depth])
    assert followed(source, start) == []
    assert writer.fetch(f"SELECT note FROM {OURS}.relation_history") == []


def test_a_schema_that_somebody_else_laid_out_is_not_taken_for_ours(database, writer, intruder):
    writer.run(f"GRANT CREATE ON DATABASE {database.name} TO intruder")
    intruder.execute(f"CREATE SCHEMA {OURS}")
    with database.open() as source:
        with pytest.raises(SourceError) as caught:
            source.setup(["things"])
        assert "belongs to intruder" in f"{caught.value.message} {caught.value.detail}"
        # Nor when only a function in it is theirs.
        intruder.execute(
            f"CREATE FUNCTION {OURS}.note_ddl() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'"
        )
        writer.run(f"ALTER SCHEMA {OURS} OWNER TO postgres")
        with pytest.raises(SourceError) as caught:
            source.setup(["things"])
        assert "belongs to intruder" in f"{caught.value.message} {caught.value.detail}"
        writer.run(f"DROP SCHEMA {OURS} CASCADE")


def test_the_text_of_a_statement_stays_with_its_client(source, writer):
    start = source.start_position()
    neighbours = (
        "ALTER TABLE things ADD COLUMN more TEXT; CREATE ROLE passing PASSWORD 'hunter2'; "
        "DO $$ BEGIN EXECUTE 'ALTER TABLE things RENAME COLUMN size TO weight /* hunter2 */'; END $$;"
        "DROP ROLE passing"
    )
    writer.run(neighbours)
    first, second = followed(source, start)
    assert first.statement == "ALTER TABLE things ADD COLUMN more text"
    assert second.statement == "ALTER TABLE things RENAME COLUMN size TO weight"
    kept = writer.fetch(f"SELECT h::text FROM {OURS}.relation_history h")
    assert len(kept) == 2
    assert "hunter2" not in str(kept)


def test_an_older_set_up_tells_its_changes_and_nobody_elses(source, writer, intruder):
    make_old(writer, OURS)
    findings = {f.code: f for f in source.preflight(["things"])}
    assert findings["event-trigger"].severity == "warning"
    assert "--setup-sql" in findings["event-trigger"].fix
    known = dict(source.describe(source.resolve(["things"]))["things"].document)
    start = source.start_position()
    for note in forged_notes(known).values():
        send(intruder, OURS, json.dumps(note).encode())
    for content in SHAPES.values():
        send(intruder, OURS, content)
    writer.run("ALTER TABLE things RENAME COLUMN size TO weight")
    writer.run("INSERT INTO things VALUES (1, 'a', 3)")
    # The intruder's own command, and a message beside it, in one transaction.
    intruder.execute("BEGIN")
    intruder.execute("CREATE TEMP TABLE things (id int)")
    send(intruder, OURS, json.dumps(forged_notes(known)["a drop"]).encode())
    intruder.execute("COMMIT")
    change, row = followed(source, start)
    # What became of it is not taken from a message: the table is read again, as it is.
    assert (change.relation, change.rewrites) == ("things", True)
    assert change.after.schema.names == ("id", "name", "weight")
    assert row.changes[0].inserted == [(1, "a", 3)]
    # Set up again, what the older one told is still in the log.
    source.setup(["things"])
    writer.run("ALTER TABLE things RENAME COLUMN weight TO mass")
    first, *_, last = followed(source, start)
    assert (first.rewrites, last.rewrites) == (True, False)
    assert last.renamed_columns == {"weight": "mass"}
    assert {f.code: f.severity for f in source.preflight(["things"])}["event-trigger"] == "ok"
