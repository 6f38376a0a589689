"""What a disk may do to a warehouse, and users to a run, and the judge of it: every read is right or fails by name.

A small warehouse is made that has everything a warehouse has: views with a base and a log, a store, older states in
lists and versions, checkpoints, a published table, a ledger of merged files. Each turn does one thing to its
files (`ACTIONS`), reads all that can be read, and puts the files back. A read that gives other rows than before the
turn is *silently wrong*; an error of ours is what we want; any other exception is a crash.

Between them, users of the sources who mean harm have their turns beside a run that goes on (`hostile.ATTACKS`).

    python -m chaos.rot --seconds 600 --seed 7          a storm of all actions
    python -m chaos.rot --turns 10000 --only flip       single bits only
    python -m chaos.rot --seconds 600 --only forged-message --only hostile-value
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from chaos.hostile import ATTACKS, Victim
from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, Schema
from viewkeeper.errors import ViewkeeperError
from viewkeeper.testing.mariadb import mariadbd_missing
from viewkeeper.warehouse import (
    Changes,
    Definition,
    EpochCommit,
    Extent,
    Snapshot,
    Warehouse,
    consolidate,
    publish,
)
from viewkeeper.warehouse.head import Head, check_remembered
from viewkeeper.warehouse.writer import Writer

SCHEMA = Schema.of(id=INTEGER, name=STRING, amount=DOUBLE)
VIEWS = ("sales", "stock")
STORE = "sales@parts"
TRANSACTIONS = 24


# -- the warehouse ----------------------------------------------------------------------------------


def _rows(rng: random.Random, txn: int | None, number: int) -> pa.Table:
    ids = [rng.randrange(1_000_000) for _ in range(number)]
    columns: dict[str, Any] = {
        "id": pa.array(ids, pa.int64()),
        "name": pa.array([None if i % 11 == 0 else f"name {i % 50}" for i in ids], pa.string()),
        "amount": pa.array([i / 7 for i in ids], pa.float64()),
        "_count": pa.array([1 + i % 3 for i in ids], pa.int64()),
    }
    if txn is not None:
        columns["_txn"] = pa.array([txn] * number, pa.int64())
    return pa.table(columns)


def make_warehouse(folder: Path, rng: random.Random) -> Head:
    """Everything that a warehouse has; its head, as the project would remember it."""
    warehouse = Warehouse.create(folder)
    names = (*VIEWS, STORE)
    with warehouse.writer() as writer:
        definitions = {
            name: Definition(SCHEMA, "SELECT", publish=name == "stock") for name in names
        }
        extents = {name: Extent(_rows(rng, None, 400)) for name in names}
        writer.commit(EpochCommit(1, 0, extents, definitions=definitions))
        for txn in range(1, TRANSACTIONS + 1):
            step(writer, rng, txn)
            if txn == TRANSACTIONS // 2:
                consolidate(writer, fold_all=True)
                publish(writer)
        return Head.of(writer.latest)


def step(writer: Writer, rng: random.Random, txn: int) -> None:
    """One more transaction for all views."""
    changed = {name: Changes(_rows(rng, txn, rng.randrange(1, 9))) for name in (*VIEWS, STORE)}
    writer.commit(EpochCommit(txn, txn, changed, positions={"shop": {"seq": txn, "history": "h"}}))


# -- reading ----------------------------------------------------------------------------------------

Answers = dict[str, Any]


def questions(folder: Path, head: Head | None) -> dict[str, Callable[[], Any]]:
    """Everything that is asked of the warehouse; each answer is a value that can be compared."""

    warehouse = Warehouse.open(folder)
    check_remembered(warehouse.latest(), head, warehouse.storage)

    @cache
    def snapshot(as_of: int | None) -> Snapshot:
        return warehouse.snapshot(as_of)

    def rows(view: str, as_of: int | None) -> list[Any]:
        return _comparable(snapshot(as_of).read_arrow(view, with_count=True))

    return {
        **{f"{view} now": partial(rows, view, None) for view in (*VIEWS, STORE)},
        **{f"{view} before the fold": partial(rows, view, 5) for view in VIEWS},
        "sales in parts": lambda: _comparable(
            pa.concat_tables(snapshot(None).stored_parts("sales"))
        ),
        "stock's changes": lambda: _comparable(warehouse.changes_arrow("stock", 3)),
        "history": lambda: [repr(vars(e) | {"views": None}) for e in warehouse.history()],
    }


def _comparable(table: pa.Table) -> list[Any]:
    return sorted(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def answers(folder: Path, head: Head | None) -> tuple[Answers, Counter[str]]:
    """What is answered, and the codes of the errors for what is not. Other exceptions are raised."""
    found: Answers = {}
    errors: Counter[str] = Counter()
    try:
        asked = questions(folder, head)
    except ViewkeeperError as error:
        return found, Counter([error.code])
    for name, ask in asked.items():
        try:
            found[name] = ask()
        except ViewkeeperError as error:
            errors[error.code] += 1
    return found, errors


# -- what is done to the files ------------------------------------------------------------------------


@dataclass
class Scene:
    """A warehouse on a disk that is about to be hurt, and copies of it at some earlier moments."""

    folder: Path
    older: Path
    rng: random.Random

    def files(self) -> list[Path]:
        return _files(self.folder)

    def some_file(self) -> Path:
        """Any file, small ones as often as large ones: a log is as good a victim as a base."""
        return self.rng.choice([path for path in self.files() if path.stat().st_size])


Action = Callable[[Scene], str]


def flip(scene: Scene) -> str:
    """One bit of one file."""
    path = scene.some_file()
    content = bytearray(path.read_bytes())
    bit = scene.rng.randrange(len(content) * 8)
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    return f"bit {bit} of {path.relative_to(scene.folder)}"


def truncate(scene: Scene) -> str:
    path = scene.some_file()
    size = scene.rng.randrange(path.stat().st_size)
    path.write_bytes(path.read_bytes()[:size])
    return f"{path.relative_to(scene.folder)} cut to {size} bytes"


def delete(scene: Scene) -> str:
    path = scene.some_file()
    path.unlink()
    return f"{path.relative_to(scene.folder)} deleted"


def swap(scene: Scene) -> str:
    """Two files of one kind change places."""
    first = scene.some_file()
    others = [p for p in scene.files() if p.suffix == first.suffix and p != first]
    if not others:
        return "nothing to swap"
    second = scene.rng.choice(others)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    return f"{first.relative_to(scene.folder)} and {second.relative_to(scene.folder)} swapped"


def lose_line(scene: Scene) -> str:
    """A line of a Delta commit is gone: a file that was added is not."""
    path = scene.rng.choice(
        [p for p in scene.files() if p.parent.name == "_delta_log" and p.suffix == ".json"]
    )
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[scene.rng.randrange(len(lines))]
    path.write_bytes(b"".join(lines))
    return f"a line of {path.relative_to(scene.folder)} lost"


def older_table(scene: Scene) -> str:
    """One table is put back from an older copy."""
    tables = ["_epochs", *(f"views/{name}" for name in (*VIEWS, STORE)), "published/stock"]
    table = scene.rng.choice([t for t in tables if (scene.older / t).exists()])
    shutil.rmtree(scene.folder / table)
    shutil.copytree(scene.older / table, scene.folder / table)
    return f"{table} as it was before"


def older_warehouse(scene: Scene) -> str:
    shutil.rmtree(scene.folder)
    shutil.copytree(scene.older, scene.folder)
    return "the whole warehouse as it was before"


ACTIONS: dict[str, Action] = {
    each.__name__.replace("_", "-"): each
    for each in (flip, truncate, delete, swap, lose_line, older_table, older_warehouse)
}


# -- the storm ----------------------------------------------------------------------------------------


@dataclass
class Report:
    turns: int = 0
    by_action: Counter[str] = field(default_factory=Counter)
    harmless: int = 0
    detected: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    # What must never be: told with the action that led to it.
    silent: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return vars(self) | {"by_action": dict(self.by_action), "codes": dict(self.codes)}


def storm(
    seed: int,
    turns: Iterator[int],
    only: tuple[str, ...] = (),
    report: Report | None = None,
    module: str = "viewkeeper",
) -> Report:
    """Hurt the warehouse, or a run, one thing each turn, and judge all reads. ``module``: what runs."""
    report = report or Report()
    rng = random.Random(seed)
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="viewkeeper-rot-"))
        folder, older = Path(place) / "w", Path(place) / "older"
        make_warehouse(folder, rng)
        shutil.copytree(folder, older)
        with Warehouse.open(folder).writer() as writer:
            for txn in range(TRANSACTIONS + 1, TRANSACTIONS + 4):
                step(writer, rng, txn)
            head = Head.of(writer.latest)
        good = Good(folder)
        right, errors = answers(folder, head)
        assert not errors, errors
        scene = Scene(folder, older, rng)
        attackers = stack.enter_context(contextlib.closing(Attackers(rng, module)))
        for _ in turns:
            name = rng.choice(list(only or [*ACTIONS, *ATTACKS]))
            report.turns += 1
            report.by_action[name] += 1
            if name in ATTACKS:
                attackers.turn(name, report)
            else:
                _one_turn(scene, name, right, head, report)
                good.put_back()
    return report


def _one_turn(scene: Scene, name: str, right: Answers, head: Head, report: Report) -> None:
    told = ACTIONS[name](scene)
    try:
        found, errors = answers(scene.folder, head)
    except Exception as error:
        report.crashes.append(f"{name}: {told}: {type(error).__name__}: {error}")
        return
    wrong = [question for question, answer in found.items() if answer != right[question]]
    report.silent += [f"{name}: {told}: {question}" for question in wrong]
    report.codes.update(errors.keys())
    report.detected += bool(errors)
    report.harmless += not errors and not wrong


class Attackers:
    """Users beside a run, which begins with their first turn; after a violation, with another one."""

    def __init__(self, rng: random.Random, module: str) -> None:
        self._rng, self._module = rng, module
        self._victim: Victim | None = None

    def turn(self, name: str, report: Report) -> None:
        victim = self._victim = self._victim or Victim(self._rng, self._module)
        told = ATTACKS[name](victim)
        victim.mark()
        wrong, stopped = victim.judge()
        report.silent += [f"{name}: {told}: {view}" for view in wrong]
        report.crashes += [f"{name}: {told}: {stopped}"] if stopped else []
        report.harmless += not wrong and not stopped
        if wrong or stopped:
            self.close()

    def close(self) -> None:
        victim, self._victim = self._victim, None
        if victim is not None:
            victim.close()


class Good:
    """The files as they were, here in memory; only what was touched is written back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._content = {path: path.read_bytes() for path in _files(folder)}
        self._seen = {path: _stamp(path) for path in self._content}

    def put_back(self) -> None:
        for path in _files(self._folder):
            if path not in self._content:
                path.unlink()
        for path, content in self._content.items():
            if not path.exists() or _stamp(path) != self._seen[path]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                self._seen[path] = _stamp(path)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--turns", type=int, default=None)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", action="append", choices=[*ACTIONS, *ATTACKS], default=[])
    parser.add_argument("--json", type=Path, default=None)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.randrange(2**32)
    until = time.monotonic() + given.seconds

    def turns() -> Iterator[int]:
        number = 0
        while number < given.turns if given.turns is not None else time.monotonic() < until:
            number += 1
            yield number

    sys.stdout.write(f"seed {seed}\n")
    if not given.only and mariadbd_missing():
        sys.stdout.write(f"no users who mean harm: {mariadbd_missing()}\n")
        given.only = list(ACTIONS)
    sys.stdout.flush()
    report = storm(seed, turns(), tuple(given.only))
    told = report.as_dict() | {"seed": seed}
    shown = told | {"silent": told["silent"][:20], "crashes": told["crashes"][:20]}
    sys.stdout.write(json.dumps(shown, indent=1) + "\n")
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(told))
    return 1 if report.silent or report.crashes else 0


if __name__ == "__main__":
    raise SystemExit(main())
