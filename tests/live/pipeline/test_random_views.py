"""Random views live on three databases at once: every state of every view is right.

6 views and 60 transactions; with VIEWKEEPER_LIVE_VIEWS and VIEWKEEPER_LIVE_TRANSACTIONS other numbers
(`make soak-live`: 30 and 200).
"""

from __future__ import annotations

import os

import pytest

from live.pipeline.random_views import random_views
from live.pipeline.recording import Recording
from live.pipeline.traffic import Traffic, fill, write_copies
from viewkeeper.project.keeper import Keeper
from viewkeeper.terminal import write_line
from viewkeeper.views import Level
from witnessing.judging import verdict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VIEWS = int(os.environ.get("VIEWKEEPER_LIVE_VIEWS", "6"))
TRANSACTIONS = int(os.environ.get("VIEWKEEPER_LIVE_TRANSACTIONS", "60"))
WRITERS = 2


def test_every_state_of_random_views_is_complete(shop, running_spark):
    fill(shop)
    for name, text in random_views(VIEWS).items():
        shop.write_view(name, text)
    write_copies(shop, "orders", "notes", "customers", "regions")
    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        recording = Recording(pipeline)
        books = shop.witness(recording.definitions)
        pipeline.load()
        writer = 0
        # Writers abort some of their transactions: they come until there are enough.
        while (committed := sum(books.transactions.values())) < TRANSACTIONS:
            share = (TRANSACTIONS - committed) // WRITERS + 1
            traffic = Traffic(shop, WRITERS, share, first=writer).start()
            while not traffic.is_over:
                recording.add(pipeline.cycle(0.2))
            traffic.join()
            recording.catch_up()
            writer += WRITERS
        assert len(pipeline.groups) == 1
        found = verdict(keeper.warehouse(), recording.definitions, books)
        assert found.meets(Level.COMPLETE), found.problem
        write_line(
            f"{VIEWS} views × {committed} transactions "
            f"in {len(recording.numbers)} states: {found.level}"
        )
