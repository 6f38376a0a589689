"""Whatever is put in, the answer is an error with a code, a sentence and no traceback, and nothing changes.

The corpus lies beside this file. Each case says which error it expects, so a worse message shows as a change.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shlex
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from viewkeeper.algebra.types import INTEGER, STRING, Field, Schema
from viewkeeper.cli import execute
from viewkeeper.warehouse.commits import EpochCommit, Extent
from viewkeeper.warehouse.entries import Definition
from viewkeeper.warehouse.warehouse import Warehouse

HERE = Path(__file__).parent
CONFIGURATIONS = sorted((HERE / "configurations").glob("*.toml"))
VIEWS = sorted((HERE / "views").glob("*.sql"))
COMMANDS = [
    line for line in (HERE / "commands.txt").read_text().splitlines() if not line.startswith("#")
]
# `run` asks for Java before it looks at anything else, and must not come as far as starting it.
pytestmark = pytest.mark.usefixtures("java_there")
TEXT = "SELECT id, name FROM geo.regions"


@pytest.fixture(scope="module")
def good_project(tmp_path_factory) -> Path:
    """A project over one SQLite file, with a warehouse that has one state of its one view."""
    folder = tmp_path_factory.mktemp("good")
    database = sqlite3.connect(folder / "geo.db")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE regions (id INTEGER PRIMARY KEY, name TEXT)")
    database.execute("INSERT INTO regions VALUES (1, 'north')")
    database.commit()
    database.close()
    (folder / "text.db").write_text("no database at all, and long enough to be looked at" * 20)
    (folder / "viewkeeper.toml").write_text('[sources.geo]\nurl = "sqlite:///geo.db"\n')
    (folder / "views").mkdir()
    (folder / "views" / "regions.sql").write_text(TEXT)
    schema = Schema((Field("id", INTEGER), Field("name", STRING)))
    rows = pa.table({"id": [1], "name": ["north"], "_count": [1]})
    with Warehouse.create(folder / "warehouse").writer() as writer:
        epoch = EpochCommit(
            first_txn=1,
            last_txn=1,
            views={"regions": Extent(rows)},
            definitions={"regions": Definition(schema, TEXT)},
        )
        writer.commit(epoch)
    return folder


@pytest.fixture
def project(good_project, tmp_path) -> Path:
    return Path(shutil.copytree(good_project, tmp_path / "project"))


def everything_in(folder: Path) -> dict[str, str]:
    """Every file with its contents; what SQLite writes beside a database that is read is its own."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def refused(project: Path, *words: str) -> tuple[int, dict]:
    """Run a command that must be refused; gives its exit code and its error."""
    before = everything_in(project)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = execute([*words, "--json"])
    told = out.getvalue() + err.getvalue()
    assert everything_in(project) == before, "something was changed"
    assert "Traceback" not in told
    assert code in (1, 2), told
    document = json.loads(out.getvalue().strip().splitlines()[-1])
    error = document["error"]
    assert error["code"], told
    assert error["family"] != "internal", told
    assert 10 < len(error["message"]) < 500, told
    assert "marked-word" not in told
    return code, error


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: file.stem)
@pytest.mark.parametrize("command", ["status", "run"])
def test_a_broken_configuration(project, file, command):
    shutil.copy(file, project / "viewkeeper.toml")
    expected = file.read_bytes().split(b"\n")[0].decode().removeprefix("# expect: ")
    if command == "status" and expected != "bad-project":
        pytest.skip("status shows such a source as unreachable")
    code, error = refused(project, command, "--project", str(project))
    assert error["code"] == expected, error
    assert code == (1 if error["family"] == "source" else 2)


@pytest.mark.parametrize("file", VIEWS, ids=lambda file: file.stem)
@pytest.mark.parametrize("command", ["explain", "run"])
def test_a_broken_view(project, file, command):
    text = file.read_text()
    # Alone: a run would go on with the others.
    (project / "views" / "regions.sql").unlink()
    shutil.copy(file, project / "views" / file.name)
    words = [command, file.stem] if command == "explain" else [command]
    code, error = refused(project, *words, "--project", str(project))
    assert error["code"] == text.splitlines()[0].removeprefix("-- expect: "), error
    assert code == 2


@pytest.mark.parametrize("name", ["a-b", "a b", "1st", "a'; DROP TABLE x --", "naïve", "a" * 200])
def test_a_view_with_a_bad_name(project, name):
    (project / "views" / "regions.sql").rename(project / "views" / f"{name}.sql")
    if name == "a" * 200:
        return  # long, and good: nothing to refuse
    code, error = refused(project, "run", "--project", str(project))
    assert (code, error["code"]) == (2, "bad-view-name")


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_line_that_can_not_be_carried_out(project, line):
    exit_code, expected, *words = shlex.split(line)
    words = [str(project) if word == "PROJECT" else word for word in words]
    code, error = refused(project, *words)
    assert (code, error["code"]) == (int(exit_code), expected), error


def newest_ledger_file(project: Path) -> Path:
    ledger = project / "warehouse" / "_epochs"
    return max(ledger.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)


def last_log_file(project: Path) -> Path:
    return max((project / "warehouse" / "_epochs" / "_delta_log").glob("*.json"))


def truncate_rows(project: Path) -> None:
    file = newest_ledger_file(project)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def remove_rows(project: Path) -> None:
    newest_ledger_file(project).unlink()


def empty_rows(project: Path) -> None:
    newest_ledger_file(project).write_bytes(b"")


def garbage_log(project: Path) -> None:
    last_log_file(project).write_text("this is not JSON\n")


def truncate_log(project: Path) -> None:
    """All entries of the log but the first are cut in the middle: no crash of ours does that."""
    file = last_log_file(project)
    file.write_text(file.read_text()[: file.stat().st_size // 2])


def newer_version(project: Path) -> None:
    """An entry with a field of a view's state that this version does not know."""
    rewrite(
        project, "views", lambda text: text.replace('"base_txn"', '"base_txn_v9": 1, "base_txn"')
    )


def views_not_json(project: Path) -> None:
    rewrite(project, "views", lambda text: text[:-5])


def foreign_table(project: Path) -> None:
    file = newest_ledger_file(project)
    pq.write_table(pa.table({"something": [1], "else": ["entirely"]}), file)


def rewrite(project: Path, column: str, edit: Callable[[str], str]) -> None:
    file = newest_ledger_file(project)
    table = pq.read_table(file)
    place = table.schema.get_field_index(column)
    values = [edit(value) for value in table.column(column).to_pylist()]
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(values)), file)


LEDGERS = (
    truncate_rows, remove_rows, empty_rows, garbage_log, truncate_log, newer_version, views_not_json,
    foreign_table,
)  # fmt: skip


@pytest.mark.parametrize("damage", LEDGERS, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("command", ["status", "history", "query", "run", "vacuum"])
def test_a_ledger_that_can_not_be_trusted(project, damage, command):
    damage(project)
    words = [command, "SELECT * FROM regions"] if command == "query" else [command]
    code, error = refused(project, *words, "--project", str(project))
    assert error["family"] == "warehouse", error
    assert code == 1
