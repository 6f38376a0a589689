"""Each way to build the pipeline that is known to be wrong is caught: by an error, or by the checker."""

from __future__ import annotations

import pytest

from chaos.wrong import VARIANTS, until
from live.pipeline.recording import view_states
from live.pipeline.witnessed import CUSTOMERS, ORDERS, VIEW, WitnessedWriters
from viewkeeper.consistency import Verdict, check
from viewkeeper.errors import SourceError, WarehouseError
from viewkeeper.runtime.keeper import Keeper
from viewkeeper.runtime.pipeline import Pipeline
from viewkeeper.views import Level
from viewkeeper.warehouse.warehouse import Warehouse
from viewkeeper.warehouse.writer import Writer

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SLOT = "SELECT max(confirmed_flush_lsn)::text FROM pg_replication_slots WHERE database = current_database()"


class Killed(BaseException):
    """The process is gone, as far as this one can play that."""


@pytest.fixture
def writers(shop, running_spark):
    """A view that is loaded, and writers that know all they did since."""
    shop.write_view("sales", VIEW)
    writers = WitnessedWriters(shop, seed=4)
    writers.fill()
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    yield writers
    writers.close()


def kept(pipeline: Pipeline, transactions: int) -> None:
    """Go on until so many states are there."""
    while pipeline.writer.latest.last_txn < transactions:
        pipeline.cycle(0.2)


def run_to_its_death(shop, writers: WitnessedWriters, arm=lambda: None) -> None:
    """A run that is killed while it commits its first transaction."""
    with Keeper.open(shop.folder) as keeper, keeper.pipeline() as live:
        live.load()
        arm()
        writers.commit_alone(ORDERS)
        kept(live, 1)


def verdict_of(shop, writers: WitnessedWriters) -> Verdict:
    """After another run, one that is built right, has got as far as it believes it must."""
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        view = keeper.views["sales"].definition
        states = view_states(keeper.warehouse(), "sales", view.schema, 0)
    return check([view], writers.histories, [(state,) for state in states])


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
    verdict = verdict_of(shop, writers)
    assert verdict.level < Level.CONSISTENT, verdict
    assert verdict.violation is not None


def test_positions_that_are_ignored_lose_what_was_committed_in_between(shop, writers, monkeypatch):
    writers.commit_alone(ORDERS)
    writers.commit_alone(CUSTOMERS)
    with monkeypatch.context() as patch:
        VARIANTS["ignore-restart-positions"](patch.setattr)
        with Keeper.open(shop.folder) as keeper, keeper.pipeline() as live:
            live.load()
            writers.commit_alone(ORDERS)
            kept(live, 1)
    verdict = verdict_of(shop, writers)
    assert verdict.level < Level.STRONG
    assert not verdict.convergent
