"""Writers that keep their own books: what each transaction must do to the relations, row by row.

Every writer owns its rows, so that its model is exact without asking the database, and any error it
meets was caused by somebody else: by us.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from live.sources.rig import Database, Writer

TABLES = {
    "accounts": "CREATE TABLE accounts (id BIGINT PRIMARY KEY, owner VARCHAR(40), balance BIGINT)",
    "entries": "CREATE TABLE entries (account BIGINT NOT NULL, line BIGINT NOT NULL, note TEXT, "
    "PRIMARY KEY (account, line))",
    # No key, and duplicates on purpose.
    "marks": "CREATE TABLE marks (label VARCHAR(40), weight BIGINT)",
    "journal": "CREATE TABLE journal (writer BIGINT NOT NULL, seq BIGINT NOT NULL, "
    "PRIMARY KEY (writer, seq))",
}
RELATIONS = tuple(TABLES)
SPACING = 1_000_000

# (relation, row) to signed count: a transaction's net effect, or a state.
Effect = Counter


def create_tables(writer: Writer) -> None:
    for statement in TABLES.values():
        writer.run(statement)


def seed(writer: Writer, rows: int = 20) -> None:
    """Rows that are there before anybody looks and that no writer touches."""
    writer.begin()
    for n in range(rows):
        writer.run("INSERT INTO accounts (id, owner, balance) VALUES (?, ?, ?)", -n - 1, "seed", n)
        writer.run("INSERT INTO marks (label, weight) VALUES (?, ?)", "seed", n % 3)
    writer.commit()


@dataclass
class Books:
    """The rows a writer owns, and what its running transaction has done to them so far."""

    rows: dict[str, list[tuple[Any, ...]]] = field(
        default_factory=lambda: {name: [] for name in TABLES}
    )
    effect: Effect = field(default_factory=Counter)

    def copy(self) -> Books:
        return Books({name: list(rows) for name, rows in self.rows.items()}, Counter(self.effect))

    def put(self, table: str, row: tuple[Any, ...]) -> None:
        self.rows[table].append(row)
        self.effect[table, row] += 1

    def take(self, table: str, row: tuple[Any, ...]) -> None:
        self.rows[table].remove(row)
        self.effect[table, row] -= 1


class BookkeepingWriter:
    """Runs random transactions and records, per (writer, seq), what each committed one did."""

    def __init__(self, number: int, writer: Writer, seed: int) -> None:
        self.number, self.writer = number, writer
        self.random = random.Random(f"{seed}-{number}")
        self.books = Books()
        self.seq, self.next_id = 0, number * SPACING
        self.committed: dict[tuple[int, int], Effect] = {}

    def transaction(self) -> None:
        """One transaction: some operations, perhaps a savepoint that is rolled back, perhaps abort."""
        before = self.books.copy()
        self.seq += 1
        self.writer.begin(relaxed=self.random.random() < 0.5)
        for _ in range(self.random.randint(1, 4)):
            self._operation_maybe_undone()
        self.writer.run("INSERT INTO journal (writer, seq) VALUES (?, ?)", self.number, self.seq)
        self.books.put("journal", (self.number, self.seq))
        if self.random.random() < 0.15:
            self.writer.abort()
            self.books = before
            return
        self.writer.commit()
        effect, self.books.effect = self.books.effect, Counter()
        self.committed[self.number, self.seq] = Counter({k: n for k, n in effect.items() if n})

    def _operation_maybe_undone(self) -> None:
        if self.random.random() > 0.25:
            self._operation()
            return
        before = self.books.copy()
        self.writer.savepoint("here")
        self._operation()
        if self.random.random() < 0.6:
            self.writer.rollback_to("here")
            self.books = before

    def _operation(self) -> None:
        operations: list[Callable[[], None]] = [self._open_account, self._note, self._mark]
        if self.books.rows["accounts"]:
            operations += [self._pay, self._pay, self._renumber, self._replace, self._close_account]
        if self.books.rows["entries"]:
            operations.append(self._rewrite_note)
        if self.books.rows["marks"]:
            operations += [self._weigh, self._unmark]
        self.random.choice(operations)()

    def _fresh_id(self) -> int:
        self.next_id += 1
        return self.next_id

    def _any(self, table: str) -> tuple[Any, ...]:
        return self.random.choice(self.books.rows[table])

    def _open_account(self) -> None:
        row = (self._fresh_id(), f"o'w\"ner {self.number} 🦊", self.random.randint(0, 99))
        self.writer.run("INSERT INTO accounts (id, owner, balance) VALUES (?, ?, ?)", *row)
        self.books.put("accounts", row)

    def _pay(self) -> None:
        old = self._any("accounts")
        new = (old[0], old[1], self.random.randint(0, 99))
        self.writer.run("UPDATE accounts SET balance = ? WHERE id = ?", new[2], old[0])
        self._change("accounts", old, new)

    def _renumber(self) -> None:
        old = self._any("accounts")
        new = (self._fresh_id(), *old[1:])
        self.writer.run("UPDATE accounts SET id = ? WHERE id = ?", new[0], old[0])
        self._change("accounts", old, new)

    def _replace(self) -> None:
        old = self._any("accounts")
        new = (old[0], "replaced", self.random.randint(0, 99))
        self.writer.replace("accounts", "id", {"id": new[0], "owner": new[1], "balance": new[2]})
        self._change("accounts", old, new)

    def _close_account(self) -> None:
        old = self._any("accounts")
        self.writer.run("DELETE FROM accounts WHERE id = ?", old[0])
        self.books.take("accounts", old)

    def _note(self) -> None:
        note = self.random.choice([None, "", "x" * 5000, "naïve"])
        row = (self._fresh_id(), self.random.randint(1, 9), note)
        self.writer.run("INSERT INTO entries (account, line, note) VALUES (?, ?, ?)", *row)
        self.books.put("entries", row)

    def _rewrite_note(self) -> None:
        old = self._any("entries")
        new = (old[0], old[1] + 10, old[2])  # a long note stays as it is: an unchanged TOAST value
        self.writer.run(
            "UPDATE entries SET line = ? WHERE account = ? AND line = ?", new[1], old[0], old[1]
        )
        self._change("entries", old, new)

    def _mark(self) -> None:
        row = (f"w{self.number}-{self.random.randint(1, 3)}", self.random.randint(1, 2))
        for _ in range(self.random.randint(1, 3)):
            self.writer.run("INSERT INTO marks (label, weight) VALUES (?, ?)", *row)
            self.books.put("marks", row)

    def _weigh(self) -> None:
        label = self._any("marks")[0]
        self.writer.run("UPDATE marks SET weight = weight + 1 WHERE label = ?", label)
        for old in [row for row in self.books.rows["marks"] if row[0] == label]:
            self._change("marks", old, (label, old[1] + 1))

    def _unmark(self) -> None:
        old = self._any("marks")
        self.writer.run("DELETE FROM marks WHERE label = ? AND weight = ?", *old)
        for row in [row for row in self.books.rows["marks"] if row == old]:
            self.books.take("marks", row)

    def _change(self, table: str, old: tuple[Any, ...], new: tuple[Any, ...]) -> None:
        self.books.take(table, old)
        self.books.put(table, new)


class Workload:
    """Several writers in threads of their own, until the ``with`` is left.

    ``errors`` must be empty afterwards: the writers do nothing that could fail by itself.
    """

    def __init__(self, database: Database, writers: int = 4, seed: int = 1) -> None:
        connections = [database.writer() for _ in range(writers)]
        self.writers = [BookkeepingWriter(n + 1, each, seed) for n, each in enumerate(connections)]
        self.errors: list[BaseException] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(w,), daemon=True) for w in self.writers
        ]

    def _run(self, writer: BookkeepingWriter) -> None:
        try:
            while not self._stop.is_set():
                writer.transaction()
        except Exception as error:
            self.errors.append(error)

    def __enter__(self) -> Workload:
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=600)
        for writer in self.writers:
            writer.writer.close()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def count(self) -> int:
        """How many transactions were acknowledged so far."""
        return sum(len(writer.committed) for writer in self.writers)

    @property
    def committed(self) -> dict[tuple[int, int], Effect]:
        """What each acknowledged transaction did; complete once the workload has stopped."""
        return {key: effect for w in self.writers for key, effect in w.committed.items()}
