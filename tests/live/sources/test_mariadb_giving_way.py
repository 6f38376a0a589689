"""An owner of MariaDB tables waits for no cut of ours for long, and a cut that gave way says so."""

from __future__ import annotations

import threading
import time

import pymysql
import pytest

from live.sources.probing import read_all
from viewkeeper.algebra.types import INTEGER, Field, Schema
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import KeyedRead
from viewkeeper.sources.mariadb import giving_way
from viewkeeper.sources.mariadb.connection import LOCK_WAIT_TIMEOUT
from viewkeeper.sources.opening import open_source
from viewkeeper.testing.mariadb import PrivateMariaDB, mariadbd_missing

pytestmark = pytest.mark.skipif(bool(mariadbd_missing()), reason=mariadbd_missing())

ROWS = {("t", (1, 1)): 1}


@pytest.fixture(scope="module")
def server():
    with PrivateMariaDB() as server:
        yield server


@pytest.fixture
def owner(server):
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE DATABASE giving")
        cursor.execute("USE giving")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
        cursor.execute("INSERT INTO t VALUES (1, 1)")
        yield cursor.execute


@pytest.fixture
def source(server, owner):
    with open_source("src", server.url("giving")) as source:
        yield source


def lost(action):
    with pytest.raises(SourceError) as caught:
        action()
    return (
        caught.value.code,
        caught.value.retryable,
        caught.value.detail == "its owner waits to change t",
    )


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE t ADD COLUMN b INT", "TRUNCATE t", "RENAME TABLE t TO u", "DROP TABLE t"],
)
def test_an_owner_goes_on_while_a_cut_is_open(source, owner, change):
    with source.cut(["t"]) as cut:
        assert read_all(cut, ["t"]) == ROWS
        owner(f"SET STATEMENT lock_wait_timeout = 300 FOR {change}")
        assert lost(lambda: read_all(cut, ["t"])) == ("cut-overtaken", True, True)


def test_an_owner_goes_on_while_a_question_is_being_answered(source, owner):
    asked = threading.Event()
    found = []

    def ask():
        with source.cut(["t"]) as cut:
            read_all(cut, ["t"])
            asked.set()
            schema = Schema((Field("s", INTEGER),))
            question = "SELECT SLEEP(300) AS s FROM t"
            found.append(lost(lambda: list(cut.query(question, schema))))

    thread = threading.Thread(target=ask)
    thread.start()
    assert asked.wait(300)
    owner("SET STATEMENT lock_wait_timeout = 300 FOR ALTER TABLE t ADD COLUMN b INT")
    thread.join(300)
    assert found == [("cut-overtaken", True, True)]


def test_a_cut_that_is_in_no_way_stays(source, owner, monkeypatch):
    looks = threading.Semaphore(0)
    original = giving_way.GivingWay._look

    def counted(self, link):
        original(self, link)
        looks.release()

    monkeypatch.setattr(giving_way.GivingWay, "_look", counted)
    with source.cut(["t"]) as cut:
        assert read_all(cut, ["t"]) == ROWS
        owner("CREATE TABLE other (id INT PRIMARY KEY)")
        owner("ALTER TABLE other ADD COLUMN b INT")
        owner("INSERT INTO t VALUES (2, 2)")
        for _ in range(3):
            assert looks.acquire(timeout=300)
        [batch] = cut.read(KeyedRead("t", ("a",)))
        assert batch.to_pylist() == [{"a": 1}]


def test_without_giving_way_an_owner_waits_until_the_cut_is_closed(source, owner, monkeypatch):
    monkeypatch.setattr(giving_way.GivingWay, "watch", lambda self, cut: None)
    with source.cut(["t"]) as cut:
        assert read_all(cut, ["t"]) == ROWS
        with pytest.raises(pymysql.err.OperationalError) as caught:
            owner("SET STATEMENT lock_wait_timeout = 1 FOR ALTER TABLE t ADD COLUMN b INT")
        assert caught.value.args[0] == LOCK_WAIT_TIMEOUT
        assert read_all(cut, ["t"]) == ROWS


def test_the_thread_that_watches_ends_with_its_source(server, owner):
    before = set(threading.enumerate())
    with open_source("src", server.url("giving")) as source, source.cut(["t"]):
        watching = [t for t in threading.enumerate() if t not in before and t.name == "giving-way"]
        assert len(watching) == 1
    deadline = time.monotonic() + 300
    while watching[0].is_alive():
        assert time.monotonic() < deadline
        watching[0].join(0.1)
