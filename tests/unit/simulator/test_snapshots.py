"""Equal worlds are one world, however they came about."""

from __future__ import annotations

from typing import Any, cast

from viewkeeper.simulator.kernel.exploration import Snapshots


def test_a_snapshot_does_not_depend_on_the_order_inside_a_set() -> None:
    # 0 and 8 collide in a small set, so that the one that came first is written first.
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert one == other
    assert list(one) != list(other)
    snapshots = Snapshots()
    assert snapshots.taken(cast(Any, [one])) == snapshots.taken(cast(Any, [other]))
