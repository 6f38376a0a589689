"""Each way to build the pipeline that is known to be wrong is caught: by an error, or by the checker."""

from __future__ import annotations

import threading

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


def test_what_is_applied_before_it_is_visible_is_missed_by_joins(shop, writers, monkeypatch):
    """PostgreSQL shows a commit only when its standby has it; its log has it at once."""

    def standby(names: str) -> None:
        shop.run("shop", f"ALTER SYSTEM SET synchronous_standby_names = {names}")
        shop.run("shop", "SELECT pg_reload_conf()")

    VARIANTS["one-way-compensation"](monkeypatch.setattr)
    with Keeper.open(shop.folder) as keeper, keeper.pipeline() as live:
        live.load()
        standby("'nobody'")
        invisible = threading.Thread(target=writers.commit_alone, args=(ORDERS,))
        try:
            invisible.start()
            kept(live, 1)  # shown, though no query of ours can see it
            # Every customer changes: of the order's one, the join must find the order.
            for _ in range(40):
                writers.commit_alone(CUSTOMERS)
            kept(live, 41)
        finally:
            standby("''")
            invisible.join()
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
