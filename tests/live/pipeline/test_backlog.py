"""A backlog comes as columns; every one of its transactions is a state of its own all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from live.pipeline.recording import Recording
from live.pipeline.test_complete import NOTED, SALES
from live.pipeline.traffic import Traffic, fill, write_copies
from viewkeeper.live.auditing.audit import audit_view
from viewkeeper.live.questions.shared_cuts import SharedCuts
from viewkeeper.project import keeper as keepers
from viewkeeper.project.keeper import Keeper
from viewkeeper.sources.postgres import feed
from viewkeeper.sources.transaction_block import TransactionBlock
from viewkeeper.views import Level
from witnessing.books import Books
from witnessing.judging import verdict


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A feed that keeps up with its server never sees thousands at once; here two will do."""
    monkeypatch.setattr(feed, "BLOCK_MESSAGES_MIN", 6)


pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TURNS = 150
# In each turn five transactions of one row or several, of one relation or two; some change nothing.
TURN = (
    ("INSERT INTO orders VALUES (1000 + n, n % 9, n % 7)",),
    ("UPDATE orders SET qty = 7 - qty, cust_id = n % 5 WHERE o_id IN (n % 20, 1000 + n / 2)",),
    (
        "INSERT INTO notes VALUES (1000 + n, NULL), (n % 20, 'late, ''quoted'', é')",
        "UPDATE orders SET qty = n % 8 WHERE o_id = n % 20",
    ),
    ("UPDATE orders SET qty = qty WHERE o_id < 5",),
    ("DELETE FROM orders WHERE o_id = 1000 + n / 3",),
)
BACKLOG = f"""
DO $$ BEGIN
  FOR n IN 1..{TURNS} LOOP
    {" ".join(f"{'; '.join(statements)}; COMMIT;" for statements in TURN)}
  END LOOP;
END $$"""


def write_backlog(shop) -> None:
    """The same transactions, each known by itself."""
    writer = shop.databases["shop"].writer()
    for n in range(1, TURNS + 1):
        for statements in TURN:
            writer.begin()
            for statement in statements:
                writer.run(re.sub(r"\bn\b", str(n), statement))
            shop.commit("shop", writer)
    writer.close()


def caught_up(keeper: Keeper, books: Books, recording: Recording) -> None:
    with keeper.pipeline() as pipeline:
        recording.pipeline = pipeline
        pipeline.load()
        recording.catch_up()
        found = verdict(keeper.warehouse(), recording.definitions, books)
        assert found.meets(Level.COMPLETE), found.problem
        for view in pipeline.views:
            audit = audit_view(pipeline, keeper.warehouse(), view)
            assert audit.is_equal, audit


@contextmanager
def behind(shop) -> Iterator[tuple[Keeper, Books, Recording]]:
    """Two views that were loaded, and a backlog since."""
    fill(shop)
    for name, text in {"sales": SALES, "noted": NOTED}.items():
        shop.write_view(name, text)
    write_copies(shop, "orders", "notes", "customers", "regions")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        with keeper.pipeline() as pipeline:
            pipeline.load()
            recording = Recording(pipeline)
            books = shop.witness(recording.definitions)
        write_backlog(shop)
        yield keeper, books, recording


def test_every_state_of_a_backlog_is_right(shop, running_spark):
    with behind(shop) as (keeper, books, recording):
        Traffic(shop, writers=2, transactions=20).start().join()
        caught_up(keeper, books, recording)
        assert recording.blocks
        assert sum(len(block) for block in recording.blocks) > TURNS


def test_every_state_is_right_where_batches_share_their_cuts(
    shop, running_spark, monkeypatch: pytest.MonkeyPatch
):
    """A backlog of a few, in small batches: at the cuts of the first, as far as all is visible there."""
    few = partial(keepers.Limits, backlog_from=5, batch_transactions_max=40)
    monkeypatch.setattr(keepers, "Limits", few)
    followed: list[bool] = []
    hold = SharedCuts.hold
    monkeypatch.setattr(SharedCuts, "hold", lambda self: (followed.append(True), hold(self))[1])
    with behind(shop) as (keeper, books, recording):
        traffic = Traffic(shop, writers=2, transactions=40).start()
        with keeper.pipeline() as pipeline:
            recording.pipeline = pipeline
            pipeline.load()
            traffic.join()
        caught_up(keeper, books, recording)
        assert len(followed) > 5


def test_a_schema_change_inside_a_backlog_is_taken_in_its_place(shop, running_spark):
    fill(shop)
    shop.write_view("sales", SALES)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        with keeper.pipeline() as pipeline:
            pipeline.load()
        before = keeper.warehouse().latest().last_txn
        shop.run("shop", BACKLOG, "ALTER TABLE orders RENAME COLUMN qty TO quantity")
        shop.run("shop", BACKLOG.replace("qty", "quantity").replace("1000", "9000"))
        with keeper.pipeline() as pipeline:
            pipeline.load()
            targets = pipeline.committed_now()
            cycles = []
            while not pipeline.has_applied(targets):
                cycles.append(pipeline.cycle(0.2))
            while (cycle := pipeline.cycle(0)) is not None:
                cycles.append(cycle)
            arrivals = [arrival for cycle in cycles if cycle is not None for arrival in cycle.batch]
            assert any(isinstance(arrival.origin, TransactionBlock) for arrival in arrivals)
            assert keeper.warehouse().latest().last_txn > before + 2 * TURNS
            assert audit_view(pipeline, keeper.warehouse(), "sales").is_equal
