from dataclasses import replace

import pytest

from paper.figure5 import DEFINITION
from viewkeeper.errors import UsageError
from viewkeeper.runtime.view import require_live


def test_a_protocol_that_only_the_simulator_plays_is_refused_by_name():
    with pytest.raises(UsageError) as caught:
        require_live(replace(DEFINITION, protocol="strobe"))
    assert caught.value.code == "protocol-not-live"
    assert "strobe" in caught.value.message


@pytest.mark.parametrize("protocol", [None, "sweep"])
def test_sweep_runs_live(protocol):
    require_live(replace(DEFINITION, protocol=protocol))
