"""SQLite tables rebuilt as migration tools do it, dropped, renamed and indexed, under their writers.

A rebuild takes our triggers away and may change every row, and SQLite tells nobody. The view must follow
or stop by name, at its last right state; it is compared with what the database itself answers.
"""

from __future__ import annotations

import itertools
import json
import math
import sqlite3
import threading
import time

import pytest
from typer.testing import CliRunner

from live.pipeline.traffic import InBackground
from live.sources.rig_sqlite import SQLiteDatabase
from viewkeeper.cli import app
from viewkeeper.errors import SourceError
from viewkeeper.project.keeper import Keeper
from viewkeeper.sources.sqlite.source import SQLiteSource

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TYPES = "product_id INTEGER PRIMARY KEY, name TEXT, price INTEGER, sku TEXT"
SALES = """
SELECT o.order_id, o.qty, p.name, p.price
FROM geo.orders o JOIN geo.products p ON o.product_id = p.product_id
"""
PRODUCTS, ORDERS = 20, 60
WAIT_SECONDS_MAX = 120.0


def alembic(price="price", types=TYPES):
    """Alembic's batch mode, as `batch_alter_table` prints it."""
    return (
        f"CREATE TABLE _alembic_tmp_products ({types})",
        f"INSERT INTO _alembic_tmp_products SELECT product_id, name, {price}, sku FROM products",
        "DROP TABLE products",
        "ALTER TABLE _alembic_tmp_products RENAME TO products",
    )


def django():
    """Django's `_remake_table`."""
    return (
        (
            'CREATE TABLE "new__products" ("product_id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, '
            '"name" varchar(50) NULL, "price" integer NULL, "sku" text NULL)'
        ),
        (
            'INSERT INTO "new__products" ("product_id", "name", "price", "sku") '
            'SELECT "product_id", coalesce("name", \'\'), "price", "sku" FROM "products"'
        ),
        'DROP TABLE "products"',
        'ALTER TABLE "new__products" RENAME TO "products"',
        'CREATE INDEX "products_price" ON "products" ("price")',
    )


def twelve_steps(writer, price="price + 1"):
    """The procedure of SQLite's own documentation, which puts triggers back."""
    noted = writer.fetch(
        "SELECT sql FROM sqlite_schema WHERE tbl_name = 'products' AND type IN ('trigger', 'index') "
        "AND sql IS NOT NULL ORDER BY rowid"
    )
    return (
        f"CREATE TABLE new_products ({TYPES})",
        f"INSERT INTO new_products SELECT product_id, name, {price}, sku FROM products",
        "DROP TABLE products",
        "ALTER TABLE new_products RENAME TO products",
        *(sql for (sql,) in noted),
    )


DROPPED = (
    "DROP TABLE products",
    f"CREATE TABLE products ({TYPES})",
    "INSERT INTO products SELECT DISTINCT product_id, 'made anew', 7, 'd' || product_id FROM orders",
)
OTHER_COLUMNS = (
    "DROP TABLE products",
    "CREATE TABLE products (colour TEXT, price INTEGER, product_id INTEGER PRIMARY KEY, name TEXT)",
    "INSERT INTO products SELECT DISTINCT 'red', 9, product_id, 'others' FROM orders",
)
RENAMED = (
    "ALTER TABLE products RENAME TO products_old",
    f"CREATE TABLE products ({TYPES})",
    "INSERT INTO products SELECT product_id, name || '!', price, sku FROM products_old",
    "DROP TABLE products_old",
)
RENAMED_AND_KEPT = (
    "ALTER TABLE products RENAME TO products_kept",
    f"CREATE TABLE products ({TYPES})",
    "INSERT INTO products SELECT product_id, name || '?', price, sku FROM products_kept",
)
INDEXED = (
    "CREATE UNIQUE INDEX products_sku ON products (sku)",
    # Takes the row of product 1 away through a key that the triggers do not know.
    "REPLACE INTO products VALUES (900, 'in its place', 3, (SELECT sku FROM products LIMIT 1))",
)
# In this order one after the other: the last one leaves a table that the others could not read.
VARIANTS = {
    "the Alembic way": alembic(),
    "the Django way": django(),
    "in twelve steps": twelve_steps,
    "values changed": alembic(price="price * 100"),
    "dropped and created": DROPPED,
    "renamed and created": RENAMED,
    "a unique index": INDEXED,
    "renamed and kept": RENAMED_AND_KEPT,
    "created with other columns": OTHER_COLUMNS,
}


@pytest.fixture(autouse=True)
def soon_settled(monkeypatch):
    monkeypatch.setattr(SQLiteSource, "settle_seconds", 0.2, raising=False)


@pytest.fixture
def database():
    with SQLiteDatabase() as database:
        writer = database.writer()
        writer.run(f"CREATE TABLE products ({TYPES})")
        writer.run(
            "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, product_id INTEGER, qty INTEGER)"
        )
        for n in range(PRODUCTS):
            writer.run("INSERT INTO products VALUES (?, ?, ?, ?)", n, f"product {n}", n, f"s{n}")
        for n in range(ORDERS):
            writer.run("INSERT INTO orders VALUES (?, ?, ?)", n, n % (PRODUCTS + 3), n % 7)
        writer.close()
        yield database


@pytest.fixture
def folder(database, tmp_path):
    lines = ['[warehouse]\npath = "warehouse"\n', '[spark]\nmaster = "local[2]"\n']
    lines += [f'[sources.geo]\nurl = "{database.url}"\n']
    (tmp_path / "viewkeeper.toml").write_text("\n".join(lines))
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "sales.sql").write_text(SALES)
    return tmp_path


class Shopper(InBackground):
    """Writes to both tables, whole transactions; what it may not do is an error of ours."""

    def __init__(self, database) -> None:
        super().__init__()
        self._database = database
        self.errors: list[Exception] = []

    def _run(self) -> None:
        writer = self._database.writer()
        for number in itertools.count():
            if self._stop.wait(0.05):
                break
            try:
                writer.begin()
                self._write(writer, number)
                writer.commit()
            except sqlite3.Error as error:
                self.errors.append(error)
                writer.abort()
            self.written += 1
        writer.close()

    def _write(self, writer, number) -> None:
        product, order = number % PRODUCTS, number % ORDERS
        writer.run("UPDATE orders SET qty = ? WHERE order_id = ?", number, order)
        writer.run("UPDATE products SET price = price + 1 WHERE product_id = ?", product)
        writer.run("INSERT INTO orders (product_id, qty) VALUES (?, 1)", product)


def statements_of(variant, writer):
    found = VARIANTS[variant]
    return found(writer) if callable(found) else found


def migrate(database, variant, *, atomic=True, between=lambda: None):
    writer = database.writer()
    statements = statements_of(variant, writer)
    if atomic:
        writer.begin()
    for statement in statements:
        writer.run(statement)
        if not atomic:
            between()
    if atomic:
        writer.commit()
    writer.close()


def shown(keeper):
    rows = keeper.warehouse().read_arrow("sales").to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def expected(database):
    """The view as the database computes it."""
    writer = database.writer()
    rows = writer.fetch(SALES.replace("geo.", ""))
    writer.close()
    return sorted(rows)


def go_on(pipeline) -> None:
    try:
        pipeline.cycle(0.05)
    except SourceError as error:
        if not error.retryable:
            raise


def settle(pipeline, writer=None) -> None:
    """Let the writer write on for a moment, and all of it arrive."""
    seen = writer.written if writer is not None else 0
    while writer is not None and writer.written < seen + 2:
        go_on(pipeline)
    targets = pipeline.committed_now()
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not pipeline.has_applied(targets):
        assert time.monotonic() < deadline
        go_on(pipeline)


def effects_in(events):
    return [
        e["effect"] for each in events if each["event"] == "schema_changed" for e in each["effects"]
    ]


def test_a_run_that_may_set_up_follows_every_rebuild_under_its_writer(
    database, folder, running_spark
):
    events = []
    with (
        Keeper.open(folder, allow_setup=True) as keeper,
        keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline,
    ):
        pipeline.load()
        for variant in VARIANTS:
            events.clear()
            with Shopper(database) as shopper:
                settle(pipeline, shopper)
                migrate(database, variant)
                settle(pipeline, shopper)
            settle(pipeline)
            assert shopper.errors == [], variant
            assert shown(keeper) == expected(database), variant
            assert "read anew" in effects_in(events), (variant, events)
            assert "retired" not in effects_in(events), variant


class Pairs(Shopper):
    """Keeps an order's quantity equal to its product's price, in every transaction."""

    def _write(self, writer, number) -> None:
        pair = number % PRODUCTS
        writer.run("UPDATE orders SET qty = ? WHERE order_id = ?", number, pair)
        writer.run("UPDATE products SET price = ? WHERE product_id = ?", number, pair)


def test_no_state_shows_rows_from_before_a_rebuild_beside_rows_from_after_it(
    database, folder, running_spark
):
    writer = database.writer()
    writer.run("UPDATE products SET price = 0")
    writer.run("DELETE FROM orders WHERE order_id >= ?", PRODUCTS)
    writer.run("UPDATE orders SET qty = 0, product_id = order_id")
    seen = set()
    with Keeper.open(folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        pipeline.load()
        with Pairs(database) as pairs:
            for rebuild in (alembic("price + 1000"), twelve_steps(writer, "price + 1000")) * 2:
                began = pairs.written
                writer.begin()
                for statement in rebuild:
                    writer.run(statement)
                writer.run("UPDATE orders SET qty = qty + 1000")
                writer.commit()
                deadline = time.monotonic() + WAIT_SECONDS_MAX
                targets = pipeline.committed_now()
                while pairs.written < began + 5 or not pipeline.has_applied(targets):
                    assert time.monotonic() < deadline
                    go_on(pipeline)
                    rows = shown(keeper)
                    assert [row for row in rows if row[1] != row[3]] == []
                    seen.add(tuple(rows))
                seen.add(tuple(shown(keeper)))
        assert pairs.errors == []
    writer.close()
    assert len(seen) >= 4  # a state of its own behind each rebuild, at the least


def test_what_waited_from_before_a_rebuild_is_shown_together_with_it(
    database, folder, running_spark
):
    """A view that waits for its hour has not applied what came: the rebuild does not overtake it."""
    (folder / "views" / "sales.sql").write_text(
        f"-- consistency: strong\n-- protocol: periodic\n-- every: 3600 s\n{SALES}"
    )
    writer = database.writer()
    with Keeper.open(folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        pipeline.load()
        group = pipeline.group_of("sales")
        writer.run("UPDATE orders SET qty = 77 WHERE order_id = 3")
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not group.intake.integrator.pending:
            assert time.monotonic() < deadline
            go_on(pipeline)
        migrate(database, "values changed")
        settle(pipeline)
        assert shown(keeper) == expected(database)
    writer.close()


def test_a_rebuild_in_steps_that_the_feed_sees_each_of_retires_nothing(
    database, folder, running_spark, monkeypatch
):
    """Without a transaction around it the table is gone for a moment."""
    events = []
    with (
        Keeper.open(folder, allow_setup=True) as keeper,
        keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline,
    ):
        pipeline.load()
        for variant in VARIANTS:
            events.clear()
            monkeypatch.setattr(SQLiteSource, "settle_seconds", math.inf, raising=False)
            migrate(database, variant, atomic=False, between=lambda: go_on(pipeline))
            if variant == "values changed":
                # Not a number of the log has moved, and all the same this is not caught up with.
                assert not pipeline.has_applied(pipeline.committed_now())
            monkeypatch.setattr(SQLiteSource, "settle_seconds", 0.0, raising=False)
            settle(pipeline)
            assert shown(keeper) == expected(database), variant
            assert "retired" not in effects_in(events), variant


def test_a_table_that_stays_away_is_dropped_and_one_that_is_renamed_is_followed(
    database, folder, running_spark
):
    events = []
    writer = database.writer()
    with (
        Keeper.open(folder, allow_setup=True) as keeper,
        keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline,
    ):
        pipeline.load()
        writer.run("ALTER TABLE products RENAME TO goods")
        settle(pipeline)
        assert effects_in(events) == ["renamed"]
        writer.run("UPDATE goods SET name = 'renamed' WHERE product_id = 3")
        settle(pipeline)
        assert "renamed" in {row[2] for row in shown(keeper)}
        writer.run("DROP TABLE goods")
        await_event(events, "schema_changed", 2)
        assert effects_in(events) == ["renamed", "retired"]
    writer.close()


@pytest.mark.parametrize("way", ["set up", "script"])
def test_what_was_rebuilt_while_no_run_was_there_stops_by_name_and_has_a_way_back(
    database, folder, running_spark, way
):
    with Keeper.open(folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
        for variant in VARIANTS:
            before = shown(keeper)
            assert before == expected(database)
            migrate(database, variant)
            if variant != "values changed":  # there the log's number stays what it was
                writer = database.writer()
                writer.run("UPDATE orders SET qty = qty + 1 WHERE order_id < 5")
                writer.close()
            with Keeper.open(folder) as forbidden:
                if variant == "in twelve steps":
                    forbidden.run_until_caught_up()  # it put our triggers back: nothing is missing
                else:
                    with pytest.raises(SourceError) as caught:
                        forbidden.run_until_caught_up()
                    assert caught.value.code == "not-recorded", variant
                    assert "products" in caught.value.message
                    assert "--allow-setup" in caught.value.hint
                    assert shown(keeper) == before, variant
                    if variant == "values changed":
                        for words in (("rebuild", "sales"), ("audit",)):
                            assert refused(folder, *words) == "not-recorded"
                    mend(database, folder, way)
            assert shown(keeper) == expected(database), variant


def mend(database, folder, way):
    """What the error's hint says."""
    if way == "set up":
        run(folder, "run", "--until-caught-up", "--allow-setup")
        return
    script = run(folder, "check", "--setup-sql", "geo").stdout
    connection = sqlite3.connect(database.path)
    connection.executescript(script)
    connection.close()
    run(folder, "run", "--until-caught-up")


def refused(folder, *words):
    result = CliRunner().invoke(app, [*words, "--project", str(folder)])
    return result.exception.code


def run(folder, *words):
    result = CliRunner().invoke(app, [*words, "--project", str(folder)])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("variant", ["the Alembic way", "a unique index"])
def test_a_run_that_may_not_set_up_stops_by_name_and_a_rebuild_brings_it_back(
    database, folder, running_spark, variant
):
    with Keeper.open(folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    caught, events, stop = [], [], threading.Event()

    def keep() -> None:
        with Keeper.open(folder) as keeper:
            try:
                keeper.run(on_event=lambda event: events.append(event.as_dict()), stop=stop)
            except SourceError as error:
                caught.append(error)

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        with Shopper(database) as shopper:
            await_event(events, "batch")
            migrate(database, variant)
            thread.join(WAIT_SECONDS_MAX)
    finally:
        stop.set()
        thread.join()
    assert [error.code for error in caught] == ["not-recorded"]
    assert shopper.errors == []
    assert "retired" not in effects_in(events)
    told = json.loads(run(folder, "rebuild", "--source", "geo", "--allow-setup", "--json").stdout)
    assert told["views"] == ["sales"]
    with Keeper.open(folder) as keeper:
        assert shown(keeper) == expected(database)
        keeper.run_until_caught_up()
        assert shown(keeper) == expected(database)


def await_event(events, name, count=1):
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while [event["event"] for event in tuple(events)].count(name) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)
