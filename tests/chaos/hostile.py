"""Users of the sources who mean harm, beside a run that goes on, and the judge of it: every read is right.

Three databases and a run over them live through the whole storm. Each turn somebody does one thing (`ATTACKS`):
a role with CONNECT alone sends messages or tries what else it may, a user of another MariaDB database has statements
logged, those who may write a table choose its values and its columns' names. Then one honest transaction is committed at
each source, and until the views show it, whatever they show must be a state that was. None of these users may stop a
run, so that a run that ends, a view that stops, and a view that never gets there are violations, too.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pymysql

from chaos.run_process import RunProcess
from chaos.scenery import CRM, GEO, SHOP, SOURCES
from chaos.world import DATABASE, World
from live.sources.forged_messages import attempts, send
from live.sources.forged_statements import ATTEMPTS, forged
from live.sources.hostile_names import HOSTILE as NAMES
from viewkeeper.cli import execute

# The table is there in each of the three: a number, and a text of any length.
VIEWS = {
    "odd_all": "SELECT s.id, s.t AS st, c.t AS ct, g.t AS gt FROM shop.odd s "
    "JOIN crm.odd c ON s.id = c.id JOIN geo.odd g ON c.id = g.id",
    # Matching this must not take long, whatever the text.
    "odd_like": "SELECT id, t FROM shop.odd WHERE t LIKE '%a%a%a%b'",
}
IDS_MAX = 12
# Far more than it ever takes: a machine may be busy.
PATIENCE_SECONDS = 600.0
STATUS_EVERY_TURNS = 8

VALUES = (
    *NAMES, "", " ", "[urgent] fix", "[/x]", "[link=http://x.test]y[/link]", ":smile:", "\\N", "NULL", "\x1b[2Jgone",
    "\x1b]0;title\x07", "\x9b31mred", "over\rwritten", "a\nok: all equal", "back\x08space", "\u202ereversed",
    "zero\u200bwidth", "\ufeff", "line\u2028end", "del\x7f", '{"id": "t", "parts": 2}', "a" * 200_000,
    "ab" * 50_000, "[x]" * 30_000, "é漢🦊" * 20_000, "\x01" * 5_000, "'" * 1_000, "\\" * 1_001, '"' * 1_000,
)  # fmt: skip
WITH_NUL = ("\0", "nul\0inside", "\0" * 1_000, "a\0" * 10_000)

Rows = dict[int, str]


class Victim:
    """A run over three databases, and all that its views may show at the moment."""

    def __init__(self, rng: random.Random, module: str = "viewkeeper") -> None:
        self.rng = rng
        self._stack = contextlib.ExitStack()
        try:
            self._start(module)
        except BaseException:
            self.close()
            raise

    def _start(self, module: str) -> None:
        folder = self._stack.enter_context(
            tempfile.TemporaryDirectory(prefix="viewkeeper-hostile-")
        )
        self.world = World(Path(folder), views=VIEWS, direct=True)
        self._stack.callback(self.world.close)
        file = self.world.project / "viewkeeper.toml"
        # Messages that tie transactions are expected; one that was believed would hold back for an hour.
        file.write_text(file.read_text() + "\n[transactions]\ntimeout_seconds = 3600\n")
        self.clients = {
            source: self._stack.enter_context(self.world.client(source)) for source in SOURCES
        }
        self.clients[SHOP].run("CREATE ROLE intruder LOGIN")
        self.clients[CRM].run("CREATE USER intruder@'127.0.0.1' IDENTIFIED BY 'own'")
        self.clients[CRM].run("GRANT ALL ON mine.* TO intruder@'127.0.0.1'")
        self._versions: dict[str, list[Rows]] = {source: [{}] for source in SOURCES}
        self._turns = 0
        self.mark()
        self.run = RunProcess(self.world.project, (module,))
        self._stack.callback(self.run.close)
        self.run.start(allow_setup=True)
        if not self.run.await_loaded(PATIENCE_SECONDS):
            raise RuntimeError(f"the run did not begin: {self.run.endings}")

    def close(self) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def intruder(self) -> Iterator[psycopg.Connection[Any]]:
        """A session of a PostgreSQL role that may connect, and no more."""
        url = self.world.postgres.url(DATABASE)
        with psycopg.connect(url, user="intruder", autocommit=True) as session:
            yield session

    def commit(self, source: str, *statements: tuple[Any, ...]) -> None:
        """One transaction of a user who may write there."""
        client = self.clients[source]
        client.begin()
        for sql, *parameters in statements:
            client.run(sql, *parameters)
        client.commit()
        self._versions[source].append(dict(client.fetch("SELECT id, t FROM odd")))

    def mark(self) -> None:
        """One honest transaction at each source, which the views must get to."""
        self._turns += 1
        for source in SOURCES:
            self.put(source, {0: f"honest {self._turns}"})

    def put(self, source: str, rows: Rows) -> None:
        """Rows in the place of those that were there."""
        statements = [
            statement
            for number, text in rows.items()
            for statement in (
                ("DELETE FROM odd WHERE id = ?", number),
                ("INSERT INTO odd (id, t) VALUES (?, ?)", number, text),
            )
        ]
        self.commit(source, *statements)

    # -- judging ------------------------------------------------------------------------------------

    def judge(self) -> tuple[list[str], str]:
        """What the views showed and may not, until they are where their sources are; and why they never were."""
        allowed = self._allowed()
        latest = {view: _computed(view, [self._versions[s][-1] for s in SOURCES]) for view in VIEWS}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            shown = self._shown()
            wrong = [view for view in VIEWS if shown[view] not in allowed[view]]
            if wrong:
                return wrong, ""
            if shown == latest:
                self._versions = {source: each[-1:] for source, each in self._versions.items()}
                return self._steered(), ""
            if self.run.stopped or not self.run.is_alive:
                self.run.await_end(1.0)
                return [], f"the run stopped: {self.run.stopped[-1:] or self.run.endings[-1:]}"
            if time.monotonic() > deadline:
                return [], "the views never got to their sources"
            self.run.await_batches(1, 0.5)

    def _allowed(self) -> dict[str, list[frozenset[Any]]]:
        """What the views would show of every state that each source had since they last agreed."""
        cuts = list(itertools.product(*(self._versions[source] for source in SOURCES)))
        return {view: [_computed(view, cut) for cut in cuts] for view in VIEWS}

    def _shown(self) -> dict[str, frozenset[Any]]:
        snapshot = self.world.warehouse.snapshot()
        tables = {view: snapshot.read_arrow(view) for view in VIEWS}
        return {
            view: frozenset(zip(*(column.to_pylist() for column in table.columns), strict=True))
            for view, table in tables.items()
        }

    def _steered(self) -> list[str]:
        """Every now and then: whether what a user reads at a terminal holds characters that steer it."""
        if self._turns % STATUS_EVERY_TURNS:
            return []
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            execute(["status", "--project", str(self.world.project)])
        text = told.getvalue().replace("\n", "")
        found = {
            unicodedata.name(c, hex(ord(c))) for c in text if unicodedata.category(c)[0] == "C"
        }
        return [f"status shows {sorted(found)}"] if found or not text else []


def _computed(view: str, cut: Any) -> frozenset[Any]:
    shop, crm, geo = cut
    if view == "odd_like":
        return frozenset(
            (n, t) for n, t in shop.items() if t.endswith("b") and t[:-1].count("a") >= 3
        )
    return frozenset((n, shop[n], crm[n], geo[n]) for n in shop.keys() & crm.keys() & geo.keys())


# -- what they do ---------------------------------------------------------------------------------------

Attack = Callable[[Victim], str]


def forged_message(victim: Victim) -> str:
    """Of a role that may only connect, with our prefixes and in our shapes."""
    known = victim.clients[SHOP].fetch(
        "SELECT description FROM viewkeeper_shop.relation_state s "
        "WHERE s.description->>'name' = 'odd'"
    )
    name, prefix, content, transactional = victim.rng.choice(
        attempts(known[0][0], "viewkeeper_shop")
    )
    with victim.intruder() as session:
        send(session, prefix, content, transactional)
    return f"{name} ({prefix})"


INTRUSIONS = (
    "SET viewkeeper_shop.busy = 'on'",
    "CREATE TEMP TABLE odd (id bigint, d float8, t text)",
    "CREATE TEMP TABLE relation_state (oid oid, description jsonb)",
    "CREATE TEMP VIEW pg_class AS SELECT 1 AS oid",
    "DELETE FROM odd",
    "TRUNCATE odd",
    "LOCK TABLE odd IN ACCESS EXCLUSIVE MODE",
    "ALTER TABLE odd RENAME COLUMN t TO u",
    "DROP PUBLICATION viewkeeper_shop",
    "DROP EVENT TRIGGER viewkeeper_shop_ddl",
    "DROP SCHEMA viewkeeper_shop CASCADE",
    "INSERT INTO viewkeeper_shop.relation_history DEFAULT VALUES",
    "SELECT pg_drop_replication_slot('viewkeeper_shop')",
    "SELECT * FROM pg_logical_slot_get_changes('viewkeeper_shop', NULL, NULL)",
    "SELECT pg_replication_slot_advance('viewkeeper_shop', pg_current_wal_lsn())",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename <> 'intruder'",
    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename <> 'intruder'",
    "SELECT pg_advisory_lock(n) FROM generate_series(1, 50) n",
    # A tie of nothing at all, by the thousand.
    "SELECT count(pg_logical_emit_message(true, 'viewkeeper.transaction', tie)) FROM generate_series(1, 3000), (SELECT jsonb_build_object('id', 't', 'parts', 2)::text AS tie) AS said",
)


def intrusion(victim: Victim) -> str:
    """Whatever else that role may try."""
    tried = victim.rng.choice(INTRUSIONS)
    with victim.intruder() as session, contextlib.suppress(psycopg.Error):
        session.execute(tried)
    return tried


def forged_statement(victim: Victim) -> str:
    """Of a user of another MariaDB database, whose texts speak of a table that views read."""
    mode, charset, text = victim.rng.choice(ATTEMPTS)
    for statement in ("DROP DATABASE IF EXISTS mine", "CREATE DATABASE mine"):
        victim.clients[CRM].run(statement)
    statement = forged(text, DATABASE).replace("things", "odd")
    with pymysql.connect(
        host="127.0.0.1", port=victim.world.mariadb.port, user="intruder", password="own",
        database="mine", charset=charset, autocommit=True,
    ) as session:  # fmt: skip
        cursor = session.cursor()
        cursor.execute(f"SET sql_mode = '{mode}'")
        for prepare in ("CREATE TABLE t (id INT)", "CREATE TABLE e (id INT)"):
            cursor.execute(prepare)
        # Some need what others make; what fails is logged by no server.
        with contextlib.suppress(pymysql.Error):
            cursor.execute(statement)
    return statement


def hostile_value(victim: Victim) -> str:
    """Texts of a user who may write the table."""
    rng, source = victim.rng, victim.rng.choice(SOURCES)
    values = VALUES if source == SHOP else (*VALUES, *WITH_NUL)
    rows = {rng.randrange(1, IDS_MAX): rng.choice(values) for _ in range(rng.randrange(1, 4))}
    # As often in all three, so that they meet in a view.
    for each in SOURCES if rng.random() < 0.5 else (source,):
        victim.put(each, {n: text for n, text in rows.items() if each != SHOP or "\0" not in text})
    return f"{source}: {[text[:40] for text in rows.values()]!r}"


QUOTES = {SHOP: '"', CRM: "`", GEO: '"'}


def hostile_name(victim: Victim) -> str:
    """Names of columns and tables, by a user who may give them."""
    source = victim.rng.choice(SOURCES)
    name = victim.rng.choice([n for n in NAMES if source != CRM or "\n" not in n])
    mark = QUOTES[source]
    quoted = mark + name.replace(mark, mark * 2) + mark
    if victim.rng.random() < 0.5:
        make = [(f"ALTER TABLE odd ADD COLUMN {quoted} INTEGER",)]
        drop = [(f"ALTER TABLE odd DROP COLUMN {quoted}",)]
    else:
        make = [
            (f"CREATE TABLE {quoted} ({quoted} INTEGER)",),
            (f"INSERT INTO {quoted} VALUES (1)",),
        ]
        drop = [(f"DROP TABLE {quoted}",)]
    victim.commit(source, *make)
    victim.put(source, {1: name})
    victim.commit(source, *drop)
    return f"{source}: {name!r}"


ATTACKS: dict[str, Attack] = {
    each.__name__.replace("_", "-"): each
    for each in (forged_message, intrusion, forged_statement, hostile_value, hostile_name)
}
