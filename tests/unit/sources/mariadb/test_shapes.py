"""What a table was at a place of the log, whatever the catalog has made of it since."""

from dataclasses import replace

import pytest

from viewkeeper.sources.mariadb.catalog import Table
from viewkeeper.sources.mariadb.columns import Column
from viewkeeper.sources.mariadb.ddl import ChangesTables, judged
from viewkeeper.sources.mariadb.feed import shape_after
from viewkeeper.sources.mariadb.position import Place
from viewkeeper.sources.mariadb.shapes import Doubt, TableMemory

WIDE = Column("id", "integer", 8)
NAME = Column("name", "varchar", 160, charset="utf8mb4")
MORE = Column("more", "integer", 4)
THINGS = Table("things", "d", "things", (WIDE, NAME), ("id",))


def after(statement: str, now: Table | None, before: Table | None = THINGS) -> Table | None:
    verdict = judged(statement, "d")
    assert isinstance(verdict, ChangesTables)
    return shape_after(before, now, verdict)


def test_a_rename_is_a_rename_though_the_column_is_called_otherwise_by_now():
    later = replace(THINGS, columns=(WIDE, replace(NAME, name="label")))
    shape = after("ALTER TABLE things RENAME COLUMN NAME TO title", later)
    assert [column.name for column in shape.columns] == ["id", "title"]


@pytest.mark.parametrize("statement", ["ADD more INT", "RENAME COLUMN name TO title", "DROP name"])
def test_a_table_that_has_gone_since_was_still_there(statement):
    shape = after(f"ALTER TABLE things {statement}", None)
    assert shape is not None
    assert shape.columns[0] == WIDE


def test_a_new_column_is_as_the_catalog_has_it_in_its_place():
    now = replace(THINGS, columns=(WIDE, MORE, NAME))
    assert after("ALTER TABLE things ADD more INT AFTER id", now) == now


def test_a_new_column_that_is_called_otherwise_by_now_is_left_to_its_rows():
    now = replace(THINGS, columns=(WIDE, NAME, replace(MORE, name="less")))
    assert after("ALTER TABLE things ADD more INT", now).columns == (WIDE, NAME)


def test_a_key_follows_its_columns():
    now = replace(THINGS, columns=(replace(WIDE, name="number"), NAME), key=("number",))
    assert after("ALTER TABLE things RENAME COLUMN id TO number", None).key == now.key


def test_what_a_statement_does_not_tell_the_catalog_does():
    now = replace(THINGS, columns=(WIDE, replace(NAME, size=40)))
    assert after("ALTER TABLE things MODIFY name VARCHAR(10)", now) == now
    assert after("ALTER TABLE things MODIFY name VARCHAR(10)", None) == THINGS
    assert after("DROP TABLE things", None) is None


def test_a_feed_that_goes_back_finds_the_tables_of_that_place():
    memory = TableMemory()
    shapes = [replace(THINGS, columns=(WIDE, replace(NAME, name=f"name{n}"))) for n in range(4)]
    memory.look({"things": shapes[0]})
    memory.look({"things": shapes[3]})
    for number in (2, 1):
        at = Place("log.000001", number * 100)
        memory.note("things", at, shapes[number], Doubt(f"statement {number}"))
    memory.note("things", Place("log.000002", 4), None, Doubt("gone"))
    assert memory.at("things", Place("log.000001", 99)) == (shapes[0], Doubt())
    assert memory.at("things", Place("log.000001", 100)) == (shapes[1], Doubt("statement 1"))
    assert memory.at("things", Place("log.000001", 999)) == (shapes[2], Doubt("statement 2"))
    assert memory.at("things", Place("log.000010", 4)) == (None, Doubt("gone"))
    assert memory.at("others", Place("log.000001", 4)) == (None, Doubt())
