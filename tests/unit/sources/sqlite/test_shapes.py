"""When a table's log can be built on, when it is torn, and what a schema is behind a change of it."""

import sqlite3

import pytest

from viewkeeper.sources.sqlite.catalog import read_catalog
from viewkeeper.sources.sqlite.position import Place, order_of, parse_position, position_of
from viewkeeper.sources.sqlite.setup import capture_statements, common_statements
from viewkeeper.sources.sqlite.shapes import (
    ABSENT,
    Shape,
    Tracker,
    captured,
    first_shape,
    is_gone,
    is_torn,
    shape_of,
)

THINGS = "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, size INTEGER)"
FRESH = "CREATE TABLE fresh (id INTEGER PRIMARY KEY, name TEXT, size INTEGER)"
GONE = Shape(ABSENT, 0, 0, 0, "", gap=True)


class Database:
    """A database in memory, set up, and the shape that its table had when it was."""

    def __init__(self):
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.run(THINGS)
        self.set_up()
        self.shape = shape_of(self.catalog.captures["things"])

    def run(self, *statements):
        for statement in statements:
            self.connection.execute(statement)

    def set_up(self, *, only_needed=True):
        self.run(*common_statements(may_prune=True))
        self.run(*capture_statements(self.connection, ("things",), only_needed))

    def triggers(self):
        found = self.connection.execute(
            "SELECT sql FROM sqlite_schema WHERE tbl_name = 'things' AND type = 'trigger'"
        )
        return [sql for (sql,) in found]

    @property
    def catalog(self):
        return read_catalog(self.connection)

    @property
    def unrecorded(self):
        return self.catalog.captures["things"].unrecorded

    @property
    def is_torn(self):
        return is_torn(self.catalog, "things", self.shape)

    def turns(self, *, rewrites=False):
        return Tracker("src", "things", self.shape).skip(self.catalog, 0, rewrites=rewrites)


@pytest.fixture
def database():
    database = Database()
    yield database
    database.connection.close()


REBUILT = (FRESH, "DROP TABLE things", "ALTER TABLE fresh RENAME TO things")
UNRECORDED = {
    "rebuilt": (REBUILT, "a trigger is missing"),
    "dropped and created": (("DROP TABLE things", THINGS), "a trigger is missing"),
    "renamed and created": (
        ("ALTER TABLE things RENAME TO old_things", THINGS),
        "a trigger is missing",
    ),
    "a trigger dropped": (("DROP TRIGGER _viewkeeper_1_update",), "a trigger is missing"),
    "a unique index": (("CREATE UNIQUE INDEX i ON things (name)",), "a unique index was added"),
    "a newer trigger": (
        ("CREATE TRIGGER late AFTER INSERT ON things BEGIN SELECT 1; END",),
        "late",
    ),
}


@pytest.mark.parametrize("name", UNRECORDED)
def test_a_table_that_is_not_recorded_says_why_and_is_torn_once_it_is_again(database, name):
    statements, reason = UNRECORDED[name]
    assert database.unrecorded == ""
    database.run(*statements)
    assert reason in database.unrecorded
    database.set_up()
    assert database.unrecorded == ""
    assert database.is_torn
    assert [turn.rewrites for turn in database.turns(rewrites=True)] == [True]


HARMLESS = {
    "nothing": (),
    "an index": ("CREATE INDEX i ON things (name)",),
    "another table": ("CREATE TABLE others (id INTEGER PRIMARY KEY)",),
    "a unique index fewer": ("CREATE UNIQUE INDEX i ON things (id)", "DROP INDEX i"),
    "a column more": ("ALTER TABLE things ADD COLUMN colour TEXT",),
    "another name for a column": ("ALTER TABLE things RENAME COLUMN name TO title",),
    "a column fewer": ("ALTER TABLE things DROP COLUMN size",),
    "another name": ("ALTER TABLE things RENAME TO objects",),
    "another name and back": (
        "ALTER TABLE things RENAME TO objects",
        "ALTER TABLE objects RENAME TO things",
    ),
}


@pytest.mark.parametrize("set_up", [False, True])
@pytest.mark.parametrize("name", HARMLESS)
def test_a_table_that_went_on_being_recorded_is_not_torn(database, name, set_up):
    database.run(*HARMLESS[name])
    if set_up:
        database.set_up(only_needed=False)
    assert not database.is_torn
    assert captured(database.catalog, "things", database.shape) is not None


@pytest.mark.parametrize("rebuilt", [REBUILT, ("DROP TABLE things", THINGS)])
def test_a_table_that_took_the_triggers_along_is_told_from_the_one_before_it(database, rebuilt):
    """Also where it has the page of the one that was dropped."""
    triggers = database.triggers()
    database.run(*rebuilt, *triggers)
    assert database.unrecorded == ""
    assert database.is_torn


def test_a_position_of_before_rows_were_noted_is_torn_by_another_page_alone(database):
    old = Shape(*database.shape.as_json()[:6])
    assert not is_torn(database.catalog, "things", old)
    database.run(*REBUILT, *Database().triggers())
    assert is_torn(database.catalog, "things", old)


def test_a_table_that_is_gone_was_dropped_or_has_another_name(database):
    assert not is_gone(database.catalog, "things", database.shape)
    database.run("ALTER TABLE things RENAME TO objects")
    assert is_gone(database.catalog, "things", database.shape)
    assert captured(database.catalog, "things", database.shape).table.name == "objects"
    (turn,) = database.turns()
    assert (turn.after, turn.renamed_to) == (None, "objects")
    database.run("DROP TABLE objects", THINGS.replace("things", "objects"))
    assert captured(database.catalog, "things", database.shape) is None
    (turn,) = database.turns()
    assert (turn.after, turn.renamed_to) == (None, None)
    assert not is_gone(database.catalog, "things", GONE)


def test_a_renamed_table_that_was_dropped_is_not_found_under_the_name_that_it_once_had(database):
    database.run("ALTER TABLE things RENAME TO objects")
    shape = shape_of(database.catalog.captures["objects"])
    database.run("DROP TABLE objects", THINGS)
    assert captured(database.catalog, "objects", shape) is None


def test_a_table_that_came_back_unrecorded_stays_away_until_it_is_set_up(database):
    database.shape = GONE
    database.run("DROP TABLE things", THINGS)
    assert database.turns() == []
    database.set_up()
    (turn,) = database.turns()
    assert (turn.before, turn.rewrites) == (None, True)


def test_a_column_that_was_renamed_is_known_as_such_also_after_setup(database):
    database.run(
        "ALTER TABLE things RENAME COLUMN name TO title",
        "ALTER TABLE things DROP COLUMN size",
        "ALTER TABLE things ADD COLUMN size TEXT",
    )
    database.set_up()
    (turn,) = database.turns()
    assert turn.renamed_columns == {"name": "title"}
    assert turn.after.schema.names == ("id", "title", "size")


def test_a_relation_that_a_position_does_not_know_has_the_shape_that_setup_found(database):
    assert first_shape(database.catalog, "things", 0) == database.shape
    database.run("INSERT INTO things VALUES (1, 'a', 1)")
    database.run(*REBUILT)
    database.set_up()
    assert first_shape(database.catalog, "things", 0) == database.shape
    assert first_shape(database.catalog, "things", 1).layout == 2


def test_positions_are_compared_by_the_log_first_and_then_by_the_schemas_version(database):
    place = Place("aa", 5, 77, 3).with_shapes({"things": database.shape})
    position = position_of(place)
    assert parse_position(position, "src") == place
    without = {word: part for word, part in position.items() if word != "schema"}
    later = position_of(Place("aa", 6, 78, 1))
    assert order_of(without) < order_of(position) < order_of(later)
    assert parse_position(without, "src").schema == 0
