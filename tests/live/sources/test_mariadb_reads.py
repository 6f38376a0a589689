"""Keyed reads against collations, least privilege, long rows, definitions that change under a cut."""

import itertools
import re
import threading
from decimal import Decimal

import pyarrow as pa
import pymysql
import pytest

from live.sources.conftest import CHOSEN
from live.sources.probing import FeedLog, effect_of, read_all
from live.sources.rig_mariadb import Rig
from viewkeeper.arrow import rows_of
from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.interface import KeyedRead
from viewkeeper.sources.mariadb.catalog import Catalog
from viewkeeper.sources.mariadb.connection import LOCK_WAIT_TIMEOUT, _Session
from viewkeeper.sources.mariadb.snapshot import MariaDBSnapshot
from viewkeeper.sources.opening import open_source
from viewkeeper.testing.mariadb import PrivateMariaDB

pytestmark = [
    pytest.mark.xdist_group("mariadb"),
    pytest.mark.skipif("mariadb" not in CHOSEN, reason="VIEWKEEPER_KINDS leaves mariadb out"),
    pytest.mark.skipif(Rig.unavailable() is not None, reason=f"mariadb: {Rig.unavailable()}"),
]


@pytest.fixture(scope="module")
def server():
    with PrivateMariaDB(settings={"max-allowed-packet": "64M"}) as server:
        yield server


@pytest.fixture
def writer(server):
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE DATABASE reading CHARACTER SET utf8mb4")
        cursor.execute("USE reading")
        yield lambda *statements: [cursor.execute(each) for each in statements]


def opened(server, **account):
    return open_source("src", server.url("reading", **account))


def found_by(cut, relation, column, values, type_=None):
    schema = cut.schemas[relation].schema
    question = KeyedRead(
        relation, schema.names, (column,), pa.table({column: pa.array(values, type_)})
    )
    return sorted(row for batch in cut.read(question) for row in rows_of(batch, schema))


@pytest.mark.parametrize("index", ["", ", INDEX (word)"])
@pytest.mark.parametrize(
    "declared",
    [
        "VARCHAR(20) COLLATE utf8mb4_general_ci",
        "VARCHAR(20) COLLATE utf8mb4_bin",
        "VARCHAR(20) COLLATE utf8mb4_unicode_ci",
        "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci",
        "CHAR(20) CHARACTER SET utf16",
        "VARCHAR(2000)",
    ],
)
def test_a_key_finds_equal_text_only_whatever_the_collation_equates(
    server, writer, declared, index
):
    writer(f"CREATE TABLE words (id INT PRIMARY KEY, word {declared}{index})")
    texts = ["a", "A", "a ", "ä", "ß", "ss", "SS", "?", "", " ", "o'x", 'q"x', "b\\"]
    with server.connect("reading", autocommit=True) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO words VALUES (%s, %s)", list(enumerate(texts)))
    with opened(server) as source, source.cut(["words"]) as cut:
        stored = {row[0]: row[1] for _, row in read_all(cut, ["words"])}
        for keys in (["a"], ["A", "a"], ["ss"], ["☃"], ["", "ß", "zz"], [*texts, "a", "☃", None]):
            expected = sorted((n, text) for n, text in stored.items() if text in keys)
            assert found_by(cut, "words", "word", keys) == expected


def test_keys_of_other_types_than_the_column_match_by_value(server, writer):
    writer(
        "CREATE TABLE n (id INT PRIMARY KEY, d DECIMAL(10,2), u BIGINT UNSIGNED, INDEX (d), INDEX (u))"
    )
    writer("INSERT INTO n VALUES (1, 5, 5), (2, 5.5, 6), (3, 6, 18446744073709551615)")
    with opened(server) as source, source.cut(["n"]) as cut:
        assert [r[0] for r in found_by(cut, "n", "d", [5, 6], pa.int64())] == [1, 3]
        assert [r[0] for r in found_by(cut, "n", "id", ["1.00", "2.50"], pa.string())] == []
        large = found_by(cut, "n", "u", [Decimal(2**64 - 1)], pa.decimal128(20, 0))
        assert [r[0] for r in large] == [3]


def test_a_row_above_sixteen_megabytes_comes_whole_both_ways(server, writer):
    writer("CREATE TABLE big (id INT PRIMARY KEY, body LONGTEXT)")
    with opened(server) as source:
        start = source.start_position()
        writer(
            "INSERT INTO big VALUES (1, REPEAT('0123456789abcdef', 1200000))",
            "INSERT INTO big VALUES (2, '')",
        )
        with FeedLog(source, start, ["big"]) as log:
            log.catch_up()
        with source.cut(["big"]) as cut:
            assert read_all(cut, ["big"]) == effect_of(log.transactions)
            assert found_by(cut, "big", "id", [1], pa.int64())[0][1][-3:] == "def"


def test_a_fragment_of_several_tables_is_answered_at_the_cut(server, writer):
    writer(
        "CREATE TABLE a (id INT PRIMARY KEY, x FLOAT)",
        "CREATE TABLE b (id INT PRIMARY KEY, y TEXT)",
    )
    writer(
        "INSERT INTO a VALUES (1, 0.1), (2, 0.2)", "INSERT INTO b VALUES (2, 'two'), (3, 'three')"
    )
    with opened(server) as source, source.cut(["a", "b"]) as cut:
        writer("DELETE FROM a")
        schema = cut.schemas["a"].schema.joined(cut.schemas["b"].schema.renamed(["b_id", "y"]))
        sql = "SELECT a.id, a.x, b.id, b.y FROM a JOIN b ON a.id = b.id WHERE b.y = ? AND a.id > ?"
        batches = list(cut.query(sql, schema, ["two", 1]))
    assert [row for batch in batches for row in rows_of(batch, schema)] == [
        (2, 0.20000000298023224, 2, "two")
    ]


def test_the_granted_user_of_the_script_is_enough_and_less_is_a_named_error(server, writer):
    writer(
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1)",
        "DROP USER IF EXISTS keeper@'127.0.0.1'",
    )
    with open_source("src", server.url("reading", user="keeper", password="any")) as source:
        script = source.setup_sql(["t"])
    password = re.search(r"IDENTIFIED BY '([^']*)'", script)[1]
    assert "'%'" not in script
    url = server.url("reading", user="keeper", password=password)
    for statement in script.splitlines():
        if statement.startswith(("CREATE USER", "GRANT")):
            writer(statement.partition(";")[0])
    for wrong in ("", "any"):
        with (
            open_source("src", server.url("reading", user="keeper", password=wrong)) as source,
            pytest.raises(SourceError, match="access-denied"),
        ):
            source.schemas()
    with open_source("src", url) as source:
        assert [f for f in source.preflight(["t"]) if f.severity == "refused"] == []
        start = source.start_position()
        writer("INSERT INTO t VALUES (2)")
        with FeedLog(source, start, ["t"]) as log:
            log.catch_up()
        with source.cut(["t"]) as cut:
            assert read_all(cut, ["t"]) == {("t", (1,)): 1, ("t", (2,)): 1}
        assert source.health().lag_bytes is not None
    writer("REVOKE REPLICATION SLAVE ON *.* FROM keeper@'127.0.0.1'")
    with open_source("src", url) as source:
        assert "access-denied" in [f.code for f in source.preflight(["t"])]
    writer("DROP USER keeper@'127.0.0.1'")
    with open_source("src", url) as source, pytest.raises(SourceError) as caught:
        source.schemas()
    assert caught.value.code == "access-denied"
    assert not caught.value.retryable
    assert password not in f"{caught.value} {caught.value.as_dict()} {source!r} {vars(source)}"


def test_an_unknown_option_of_the_url_is_refused_without_its_value(server):
    with (
        open_source("src", server.url("reading") + "?sll=s3cret") as source,
        pytest.raises(UsageError) as caught,
    ):
        source.schemas()
    assert caught.value.code == "bad-source-url"
    assert "s3cret" not in str(caught.value)


def test_cuts_stay_exact_while_the_owner_keeps_changing_definitions(server, writer):
    """A cut's rows fit the schema that it says and are those of its place; or it gave way, and says so."""
    writer("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    stop, failures = threading.Event(), []

    def change() -> None:
        with server.connect("reading", autocommit=True) as owner, owner.cursor() as cursor:
            try:
                while not stop.is_set():
                    cursor.execute("ALTER TABLE t ADD COLUMN b INT DEFAULT 7 FIRST")
                    cursor.execute("ALTER TABLE t DROP COLUMN b, ALGORITHM = COPY")
            except Exception as error:
                failures.append(error)

    owner = threading.Thread(target=change, daemon=True)
    owner.start()
    shapes = set()
    try:
        with opened(server) as source:
            for number in itertools.count():
                try:
                    with source.cut(["t"]) as cut:
                        names = cut.schemas["t"].schema.names
                        rows = sorted(row for _, row in read_all(cut, ["t"]))
                except SourceError as error:
                    assert error.code == "cut-overtaken"  # noqa: PT017
                    continue
                shapes.add(names)
                plain = [(1, 1), (2, 2)]
                assert rows == (plain if len(names) == 2 else [(7, *row) for row in plain])
                if len(shapes) == 2 and number > 30:
                    break
    finally:
        stop.set()
        owner.join(300)
    assert failures == []
    assert len(shapes) == 2


@pytest.mark.parametrize(
    ("kind", "moment"),
    [(Catalog, "_described"), (MariaDBSnapshot, "_start"), (MariaDBSnapshot, "read")],
)
def test_nobody_changes_a_definition_while_we_rely_on_it(server, writer, monkeypatch, kind, moment):
    """There and back unseen, it would give a cut the columns or the rows of another definition."""
    writer("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1)")
    writer("SET lock_wait_timeout = 0")
    original, refused = getattr(kind, moment), []

    def interrupted(self, *arguments):
        with pytest.raises(pymysql.err.OperationalError) as caught:
            writer("ALTER TABLE t DROP COLUMN a", "ALTER TABLE t ADD COLUMN a INT DEFAULT 9")
        refused.append(caught.value.args[0])
        return original(self, *arguments)

    monkeypatch.setattr(kind, moment, interrupted)
    with opened(server) as source:
        source.schemas(["t"])
        with source.cut(["t"]) as cut:
            assert read_all(cut, ["t"]) == {("t", (1, 1)): 1}
    assert set(refused) == {LOCK_WAIT_TIMEOUT}
    writer("ALTER TABLE t DROP COLUMN a")


def test_a_link_may_be_lost_before_any_statement_of_a_cut_and_that_passes(
    server, writer, monkeypatch
):
    """Whatever was being done: what tidies up after it must not hide that only the link is gone."""
    writer("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    query, statements = _Session.query, []

    def cut_off(link, sql, unbuffered=False):
        statements.append(sql)
        if len(statements) == doomed:
            writer(f"KILL {link.thread_id()}")
        return query(link, sql, unbuffered)

    with opened(server) as source:
        source.start_position()
        for doomed in range(1, 100):
            statements.clear()
            with monkeypatch.context() as patched:
                patched.setattr(_Session, "query", cut_off)
                caught = None
                try:
                    source.start_position()
                    source.cut(["t"]).close()
                except SourceError as error:
                    caught = error
            if len(statements) < doomed:
                break
            assert (caught.code, caught.retryable) == ("connection-lost", True), statements
        with source.cut(["t"]) as cut:
            assert read_all(cut, ["t"]) == {("t", (1,)): 1}
    assert doomed > 10


def test_all_schemas_are_those_of_the_tables_that_the_user_may_read(server, writer):
    writer(
        "CREATE TABLE mine (id INT PRIMARY KEY)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "CREATE OR REPLACE USER clerk IDENTIFIED BY 'x'",
        "GRANT SELECT ON reading.mine TO clerk",
        "GRANT INSERT ON reading.other TO clerk",
    )
    with opened(server, user="clerk", password="x") as source:
        assert list(source.schemas()) == ["mine"]
        with pytest.raises(SourceError) as caught:
            source.cut(["mine", "other"])
    assert caught.value.code == "unknown-relation"
    writer("DROP USER clerk")


def test_stored_generated_and_invisible_columns_are_alike_both_ways(server, writer):
    writer(
        "CREATE TABLE g (id INT PRIMARY KEY, a INT, twice INT AS (a * 2) STORED,"
        " note VARCHAR(9) INVISIBLE DEFAULT 'n')"
    )
    with opened(server) as source:
        start = source.start_position()
        writer(
            "INSERT INTO g (id, a) VALUES (1, 10), (2, 20), (3, NULL)", "DELETE FROM g WHERE id = 2"
        )
        writer("UPDATE g SET a = 11, note = 'x' WHERE id = 1")
        with FeedLog(source, start, ["g"]) as log:
            log.catch_up()
        with source.cut(["g"]) as cut:
            answer = read_all(cut, ["g"])
    assert answer == {("g", (1, 11, 22, "x")): 1, ("g", (3, None, None, "n")): 1}
    assert effect_of(log.transactions) == answer
