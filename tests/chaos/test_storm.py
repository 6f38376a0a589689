"""A slice of the storm with a seed that nobody has seen before; `make chaos` has the whole of it."""

from __future__ import annotations

import os
import random
import sys

import pytest

from chaos.actions import ALL
from chaos.storm import Storm
from viewkeeper.testing.mariadb import mariadbd_missing

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SECONDS = float(os.environ.get("VIEWKEEPER_CHAOS_SECONDS", "180"))
# What takes a minute by itself is for the long storm; a server may keep a log from being purged that long.
LONG = ("second-run", "kill-java", "log-purged")


def test_a_storm_with_a_fresh_seed_finds_nothing_wrong():
    if os.environ.get("CI") != "true" and mariadbd_missing():
        pytest.skip(mariadbd_missing())
    wanted = os.environ.get("VIEWKEEPER_CHAOS_SEED")
    seed = int(wanted) if wanted else random.SystemRandom().randrange(10**6)

    def tell(line: str) -> None:
        sys.stderr.write(line + "\n")

    tell(f"\nthe storm's seed: VIEWKEEPER_CHAOS_SEED={seed}")
    actions = [action for action in ALL if action.name not in LONG]
    report = Storm(seed, actions, bulk_rows=20_000, tell=tell).rage(SECONDS)
    log = "\n".join(report.action_log)
    assert not report.violations, f"seed {seed}\n{log}\n{report.violations}"
    assert report.states > 0
