"""What a run tells others, from whichever thread it comes."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from viewkeeper.runtime.run_state import RunState, read_run_state


def test_groups_tell_from_their_own_threads(tmp_path):
    """A schema change is told by its group while the run tells of batches: both must be written."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with RunState(tmp_path, {}) as state, ThreadPoolExecutor(8) as threads:

            def tell(number: int) -> None:
                for _ in range(40):
                    state.on_event({"event": "merge", "groups": [number]})

            list(threads.map(tell, range(8)))
            assert read_run_state(tmp_path)["merge"]["groups"][0] in range(8)
    finally:
        sys.setswitchinterval(interval)
    assert read_run_state(tmp_path)["state"] == "stopped"
