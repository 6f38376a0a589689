"""A cut that an owner's change overtook is no trouble of its source: new cuts are opened, and people hear nothing."""

from __future__ import annotations

import pytest

from unit.engine.small_group import SmallGroup
from viewkeeper.engine import messages as out
from viewkeeper.engine.commits import Commits
from viewkeeper.engine.failures import Failures
from viewkeeper.sources.interface import cut_lost, cut_overtaken


@pytest.mark.parametrize(("made", "is_told"), [(cut_overtaken, False), (cut_lost, True)])
def test_a_lost_cut_is_reported_and_an_overtaken_one_is_not(made, is_told):
    group = SmallGroup()
    group.open()
    failures = Failures(group.state, group.cuts, group.batches, Commits(group.state))
    failures.take(made("s", "…"), None, None)
    assert failures.deal_with(10.0)
    done = [type(action) for action in group.done()]
    assert (out.ReportError in done, out.RenewFeed in done) == (is_told, is_told)
    # Both do everything again that is not committed; a source that is away is given time.
    assert out.StartManagers in done
    limits = group.state.limits
    wanted = limits.retry_seconds if is_told else limits.overtaken_seconds
    assert failures.paused_until == 10.0 + wanted
