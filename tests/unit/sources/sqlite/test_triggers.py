"""What the triggers log, against a plain reference: the table itself after every statement."""

import random
import sqlite3
from collections import Counter

import pytest

from slices import seeds
from viewkeeper.sources.sqlite.catalog import read_catalog
from viewkeeper.sources.sqlite.setup import capture_statements, common_statements
from viewkeeper.sources.sqlite.tables import read_table

HISTORIES = seeds(600, "VIEWKEEPER_HISTORIES", least=60)
GROUPS = 12

TABLES = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE, b INT, c TEXT)",
    "CREATE TABLE t (id BIGINT PRIMARY KEY, a TEXT, b INT, c TEXT, UNIQUE (a, b))",
    "CREATE TABLE t (a TEXT, b INT, c TEXT, id INT)",
    (
        "CREATE TABLE t (id INT, a TEXT COLLATE NOCASE, b INT NOT NULL DEFAULT 3 UNIQUE, c TEXT, "
        "PRIMARY KEY (a, id)) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE, b INT, c TEXT, "
        "g TEXT AS (a || b) VIRTUAL, h TEXT AS (c || a) STORED)"
    ),
)
INDEXES = (
    (),
    ("CREATE UNIQUE INDEX i1 ON t (c) WHERE b > 1",),
    ("CREATE UNIQUE INDEX i2 ON t (a COLLATE NOCASE)", "CREATE INDEX i3 ON t (b)"),
)
OWNERS_TRIGGERS = (
    (
        "CREATE TRIGGER touch AFTER INSERT ON t BEGIN "
        "UPDATE t SET b = coalesce(b, 0) + 10 WHERE c = NEW.c AND a = NEW.a; END"
    ),
    (
        "CREATE TRIGGER spread AFTER UPDATE OF c ON t BEGIN "
        "UPDATE t SET b = coalesce(b, 0) + 100 WHERE c = NEW.c AND a = NEW.a; END"
    ),
)
CONFLICTS = ("", "", "OR IGNORE", "OR REPLACE", "OR REPLACE", "OR FAIL", "OR ROLLBACK", "OR ABORT")


class History:
    """A seeded sequence of statements on one table, and the state that the log adds up to."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.db.execute(self.random.choice(TABLES))
        for statement in self.random.choice(INDEXES):
            self.db.execute(statement)
        self.db.execute(f"PRAGMA recursive_triggers = {self.random.choice((0, 1))}")
        for trigger in OWNERS_TRIGGERS:
            if self.random.random() < 0.3:
                self.db.execute(trigger)
        self.table = read_table(self.db, "t")
        install(self.db)
        self.statements = []

    def step(self):
        chance = self.random.random()
        if chance < 0.1:
            begin = "COMMIT" if self.random.random() < 0.5 else "ROLLBACK"
            self.run(begin if self.db.in_transaction else "BEGIN")
        row = {
            "id": self.random.choice((None, 1, 2, 3, 4)),
            "a": self.random.choice((None, "x", "X", "y", "z")),
            "b": self.random.choice((None, 1, 2, 3)),
            "c": self.random.choice((None, "p", "q", "r")),
        }
        self.random.choice((self.insert, self.insert, self.copy, self.update, self.delete))(row)

    def insert(self, row):
        policy = self.random.choice(CONFLICTS)
        upserts = ("", " ON CONFLICT DO NOTHING", " ON CONFLICT DO UPDATE SET b = excluded.b")
        upsert = "" if policy else self.random.choice(upserts)
        sql = f"INSERT {policy} INTO t (id, a, b, c) VALUES (:id, :a, :b, :c){upsert}"
        self.run(sql, row)

    def copy(self, row):
        policy = self.random.choice(CONFLICTS)
        self.run(f"INSERT {policy} INTO t (id, a, b, c) SELECT id + 1, a, b, c FROM t LIMIT 50")

    def update(self, row):
        columns = ["id", "a", "b", "c"] + ["rowid"] * (self.table.rowid is not None)
        column, where = self.random.choice(columns), self.random.choice(("id", "a", "b", "c"))
        value = row["id" if column == "rowid" else column]
        policy = self.random.choice(CONFLICTS)
        everywhere = " OR 1" if self.random.random() < 0.2 else ""
        self.run(
            f"UPDATE {policy} t SET {column} = :value WHERE {where} = :where{everywhere}",
            {"value": value, "where": row[where]},
        )

    def delete(self, row):
        where = self.random.choice(("id", "a", "b", "c"))
        self.run(f"DELETE FROM t WHERE {where} = :where", {"where": row[where]})

    def run(self, sql, parameters=None):
        self.statements.append((sql, parameters))
        try:
            self.db.execute(sql, parameters or {})
        except sqlite3.IntegrityError as error:
            self.statements.append(str(error))

    def table_state(self):
        return Counter(self.db.execute("SELECT * FROM t"))

    def logged_state(self):
        state = Counter()
        for row in self.db.execute("SELECT * FROM _viewkeeper_log_1 ORDER BY seq"):
            state[row[6:]] += row[3]
        return Counter({row: count for row, count in state.items() if count})


def install(db, relations=("t",)):
    for statement in common_statements(may_prune=True):
        db.execute(statement)
    for statement in capture_statements(db, relations, only_needed=False):
        db.execute(statement)


def first_wrong(history):
    for _ in range(history.random.randint(5, 40)):
        history.step()
        if history.logged_state() != history.table_state():
            return history.statements[-4:]
    return None


@pytest.mark.parametrize("group", range(GROUPS))
def test_the_log_adds_up_to_the_table_after_every_statement_of_random_histories(group):
    for seed in range(group, HISTORIES, GROUPS):
        assert first_wrong(History(seed)) is None, f"History({seed})"


def test_triggers_that_do_not_look_before_are_caught_by_the_same_histories():
    def naive(seed):
        history = History(seed)
        history.db.execute("DROP TRIGGER _viewkeeper_1_before_insert")
        history.db.execute("DROP TRIGGER _viewkeeper_1_before_rekey")
        return first_wrong(history)

    assert any(naive(seed) is not None for seed in range(30))


def test_a_naive_log_with_recursive_triggers_on_would_count_replaced_rows_twice():
    """Why AFTER DELETE takes its row from the stage."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute(TABLES[0])
    db.execute("PRAGMA recursive_triggers = 1")
    install(db)
    db.execute("INSERT INTO t VALUES (1, 'x', 1, 'p')")
    db.execute("REPLACE INTO t VALUES (1, 'y', 2, 'q')")
    logged = db.execute("SELECT sign, v1 FROM _viewkeeper_log_1 ORDER BY seq").fetchall()
    assert logged == [(1, "x"), (-1, "x"), (1, "y")]


def test_cascades_of_foreign_keys_are_logged():
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("PRAGMA foreign_keys = 1")
    db.execute("CREATE TABLE p (id INTEGER PRIMARY KEY)")
    db.execute("CREATE TABLE t (id INT, p INT REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE)")
    install(db)
    db.execute("INSERT INTO p VALUES (1), (2)")
    db.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    db.execute("UPDATE p SET id = 3 WHERE id = 2")
    db.execute("DELETE FROM p WHERE id = 1")
    logged = db.execute("SELECT sign, v0, v1 FROM _viewkeeper_log_1 ORDER BY seq").fetchall()
    assert logged == [(1, 1, 1), (1, 2, 2), (-1, 2, 2), (1, 2, 3), (-1, 1, 1)]


def test_counts_that_a_writer_asks_for_are_its_own():
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute(TABLES[0])
    install(db)
    cursor = db.execute("INSERT INTO t (a) VALUES ('x'), ('y')")
    assert cursor.rowcount == 2
    assert cursor.lastrowid == 2
    assert db.execute("SELECT changes(), last_insert_rowid()").fetchone() == (2, 2)


def test_a_writer_that_does_not_trust_the_schema_can_write_all_the_same():
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute(TABLES[0])
    install(db)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("INSERT INTO t VALUES (1, 'x', 1, 'p')")
    db.execute("REPLACE INTO t VALUES (1, 'y', 1, 'p')")
    assert db.execute("SELECT seq FROM _viewkeeper_clock").fetchone() == (3,)


class DDL:
    """The same random DDL and writes on two databases: with our triggers, and without."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.plain, self.watched = (
            sqlite3.connect(":memory:", isolation_level=None) for _ in range(2)
        )
        without_rowid = " WITHOUT ROWID" if self.random.random() < 0.3 else ""
        for db in (self.plain, self.watched):
            db.execute(f"CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b INT, u TEXT){without_rowid}")
            db.execute("CREATE UNIQUE INDEX tu ON t (u)")
        install(self.watched)
        self.name, self.next, self.renamed = "t", 0, set()

    def statement(self):
        columns = [row[1] for row in self.plain.execute(f"PRAGMA table_info({self.name})")]
        self.next += 1
        kind = self.random.choice(("write",) * 5 + ("rename", "add", "drop", "index", "table"))
        column = self.random.choice([c for c in columns if c != "id"] or ["id"])
        match kind:
            case "rename" if column != "id":
                self.renamed.add(f"n{self.next}")
                return f"ALTER TABLE {self.name} RENAME COLUMN {column} TO n{self.next}"
            case "add":
                return f"ALTER TABLE {self.name} ADD COLUMN a{self.next} TEXT DEFAULT 'd'"
            case "drop" if column not in self.renamed:
                return f"ALTER TABLE {self.name} DROP COLUMN {column}"
            case "index":
                return "DROP INDEX IF EXISTS tu"
            case "table":
                old, self.name = self.name, f"t{self.next}"
                return f"ALTER TABLE {old} RENAME TO {self.name}"
        number = self.random.randint(1, 5)
        return self.random.choice(
            (
                f"REPLACE INTO {self.name} (id, {column}) VALUES ({number}, 'v{self.next % 3}')",
                f"UPDATE OR REPLACE {self.name} SET {column} = 'w{self.next % 3}', id = {number}",
                f"DELETE FROM {self.name} WHERE id = {number}",
            )
        )


def outcome(db, sql):
    try:
        db.execute(sql)
    except sqlite3.Error as error:
        return str(error)
    return "done"


@pytest.mark.parametrize("group", range(4))
def test_no_ddl_and_no_write_of_the_owner_fails_because_of_us(group):
    for seed in range(group, 60, 4):
        ddl, statements = DDL(seed), []
        for _ in range(30):
            statements.append(ddl.statement())
            without, with_us = (outcome(db, statements[-1]) for db in (ddl.plain, ddl.watched))
            assert with_us == without, (seed, statements)
        rows = [
            db.execute(f"SELECT * FROM {ddl.name}").fetchall() for db in (ddl.plain, ddl.watched)
        ]
        assert rows[0] == rows[1]


def test_a_renamed_column_can_be_dropped_once_setup_was_repeated():
    """The one statement of the owner's that our triggers can refuse: decision 0027."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute(TABLES[2])
    install(db)
    db.execute("ALTER TABLE t RENAME COLUMN c TO d")
    assert "_viewkeeper_1_" in outcome(db, "ALTER TABLE t DROP COLUMN d")
    assert not read_catalog(db).captures["t"].is_complete
    install(db)
    assert outcome(db, "ALTER TABLE t DROP COLUMN d") == "done"


def test_a_dropped_column_is_marked_and_a_renamed_one_goes_on():
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute(TABLES[2])
    install(db)
    db.execute("ALTER TABLE t RENAME COLUMN a TO z")
    db.execute("ALTER TABLE t DROP COLUMN b")
    db.execute("INSERT INTO t VALUES ('value', 'c', 7)")
    mark = db.execute("SELECT mark FROM _viewkeeper_layouts").fetchone()[0]
    logged = db.execute("SELECT vanished, v0, v1, v2, v3 FROM _viewkeeper_log_1").fetchall()
    assert logged == [(0b0011, "value", mark, "c", 7)]
