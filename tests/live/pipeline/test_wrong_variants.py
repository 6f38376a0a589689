"""Each way to build the pipeline that is known to be wrong is caught: by an error, or by the checker."""

from __future__ import annotations

import time

import pytest

from chaos.wrong import MOVED, VARIANTS, until
from live.pipeline.witnessed import CUSTOMERS, ORDERS, WitnessedWriters
from viewkeeper.consistency import Verdict
from viewkeeper.errors import SourceError, WarehouseError
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.project.keeper import Keeper
from viewkeeper.views import Level
from viewkeeper.warehouse.warehouse import Warehouse
from viewkeeper.warehouse.writer import Writer
from witnessing.judging import verdict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SLOT = "SELECT max(confirmed_flush_lsn)::text FROM pg_replication_slots WHERE database = current_database()"
PATIENCE_SECONDS = 600


class Killed(BaseException):
    """The process is gone, as far as this one can play that."""


@pytest.fixture
def writers(shop, running_spark):
    """A view that is loaded, and writers that know all they did since."""
    writers = WitnessedWriters(shop, seed=4)
    writers.fill()
    writers.write_views()
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    yield writers
    writers.close()


def kept(pipeline: Pipeline, transactions: int) -> None:
    """Go on until so many states are there."""
    while pipeline.writer.latest.last_txn < transactions:
        pipeline.cycle(0.2)


def await_death(pipeline: Pipeline) -> None:
    """Go on until the pipeline says what ended it.

    The ledger may not be asked instead: a row that is there before its time is there before the kill.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        pipeline.cycle(0.2)
    raise AssertionError(f"it lived on for {PATIENCE_SECONDS} s")


def run_to_its_death(shop, writers: WitnessedWriters, arm=lambda: None) -> None:
    """A run that is killed while it commits its first transaction."""
    with Keeper.open(shop.folder) as keeper, keeper.pipeline() as live:
        live.load()
        arm()
        writers.commit_alone(ORDERS)
        await_death(live)


def verdict_of(shop, writers: WitnessedWriters) -> Verdict:
    """After another run, one that is built right, has got as far as it believes it must."""
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        views = [view.definition for view in keeper.views.values()]
        return verdict(keeper.warehouse(), views, writers.books)


def test_what_is_acknowledged_before_it_is_committed_leaves_a_gap(shop, writers, monkeypatch):
    before = shop.fetch("shop", SLOT)
    with monkeypatch.context() as patch:
        VARIANTS["acknowledge-before-commit"](patch.setattr)

        def killed(self, epoch):
            until(lambda: shop.fetch("shop", SLOT) != before)
            raise Killed

        with pytest.raises(Killed):
            run_to_its_death(shop, writers, lambda: patch.setattr(Writer, "commit", killed))
    with pytest.raises(SourceError) as caught:
        verdict_of(shop, writers)
    assert caught.value.code == "feed-gap"
    assert not caught.value.retryable


def test_a_ledger_row_before_what_it_names_can_not_be_read(shop, writers, monkeypatch):
    with monkeypatch.context() as patch:
        VARIANTS["ledger-before-tables"](patch.setattr)

        def killed(name):
            if name == "between-ledger-and-tables":
                raise Killed

        patch.setattr("chaos.wrong.failpoint", killed)
        with pytest.raises(Killed):
            run_to_its_death(shop, writers)
    with pytest.raises(WarehouseError):
        Warehouse.open(shop.folder / "warehouse").read_arrow("sales")
    with pytest.raises(WarehouseError) as caught:
        verdict_of(shop, writers)
    assert caught.value.code == "table-damaged"


def test_what_a_cut_shows_too_early_has_to_be_taken_out(shop, writers, monkeypatch):
    # All of it waits in the log when the cut is opened that shows it.
    for _ in range(15):
        writers.commit_alone(ORDERS)
        writers.commit_alone(CUSTOMERS)
    with monkeypatch.context() as patch:
        VARIANTS["one-way-compensation"](patch.setattr)
        with Keeper.open(shop.folder) as keeper, keeper.pipeline() as live:
            live.load()
            kept(live, 30)
    found = verdict_of(shop, writers)
    assert found.level < Level.CONSISTENT, found
    assert found.violation is not None


def test_positions_that_are_ignored_lose_what_was_committed_in_between(shop, writers, monkeypatch):
    writers.commit_alone(ORDERS)
    writers.commit_alone(CUSTOMERS)
    with monkeypatch.context() as patch:
        VARIANTS["ignore-restart-positions"](patch.setattr)
        with Keeper.open(shop.folder) as keeper, keeper.pipeline() as live:
            live.load()
            writers.commit_alone(ORDERS)
            kept(live, 1)
    found = verdict_of(shop, writers)
    assert found.level < Level.STRONG
    assert not found.convergent


@pytest.mark.parametrize("variant", MOVED)
def test_a_transaction_that_is_not_shown_in_its_own_state_is_caught(
    shop, writers, monkeypatch, variant
):
    """The rows of a batch are all there in the end, and every number of it is a state: in the wrong one."""
    for _ in range(5):
        writers.commit_alone(ORDERS)
        writers.commit_alone(CUSTOMERS)
    with monkeypatch.context() as patch:
        VARIANTS[variant](patch.setattr)
        with Keeper.open(shop.folder) as keeper, keeper.pipeline() as live:
            live.load()
            kept(live, 10)
    found = verdict_of(shop, writers)
    assert found.convergent, found.problem
    assert found.level is Level.STRONG, found.problem
    assert found.violation.level is Level.COMPLETE


def test_a_feed_that_tears_transactions_is_not_believed(shop, writers, monkeypatch):
    """Every state is what the feed told, one by one: only who asks the tables knows better."""
    for _ in range(3):
        writers.commit_alone(CUSTOMERS)
    with monkeypatch.context() as patch:
        VARIANTS["torn-transactions"](patch.setattr)
        with Keeper.open(shop.folder) as keeper, keeper.pipeline() as live:
            live.load()
            kept(live, 6)
    found = verdict_of(shop, writers)
    assert found.level is Level.NONE
    assert "state 1 shows crm as it was never" in found.problem
