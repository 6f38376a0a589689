"""Named points in the code at which a test may let the process die or the disk be full.

``VIEWKEEPER_FAILPOINT="after-table:2"`` kills this process (SIGKILL, as a power switch would) when
it passes ``after-table`` for the second time; ``"before-ledger=full"`` raises "no space left on
device" there instead, ``=slow`` stands still there as on a disk that does not answer, and ``=hold`` keeps
Python to itself, so that no other thread gets to run. Both say so in a file that `REACHED` names. Unset, which is always so outside tests, a point costs one look-up.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from collections import Counter
from pathlib import Path

VARIABLE = "VIEWKEEPER_FAILPOINT"

# In the order in which a writer of the warehouse passes them.
WAREHOUSE_POINTS = (
    "after-claim",
    "during-recovery",
    "after-files",
    "after-table",
    "before-ledger",
    "after-ledger",
    "consolidation-after-files",
    "consolidation-after-table",
    "consolidation-after-ledger",
    "vacuum-after-ledger",
    "vacuum-after-file",
    "publish-after-table",
)
# In the order in which a run passes them: before it hands an epoch to the warehouse, and after it.
RUN_POINTS = (
    "before-fill",
    "cuts-open",
    "batch-closed",
    "before-confirm",
    "after-confirm",
    "schema-taken",
)

# Where a point says that it was reached and stands still.
REACHED = "VIEWKEEPER_FAILPOINT_REACHED"

_hits: Counter[tuple[str, str]] = Counter()


def failpoint(name: str) -> None:
    """Die or fail here if the environment asks for it."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    place, _, action = wanted.partition("=")
    point, _, nth = place.partition(":")
    if point != name:
        return
    _hits[wanted, name] += 1
    if _hits[wanted, name] != int(nth or 1):
        return
    if action in ("slow", "hold"):
        _stand_still(action)
    if action == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.kill(os.getpid(), signal.SIGKILL)


def _stand_still(action: str) -> None:
    Path(os.environ[REACHED]).write_text(action)
    if action == "hold":
        # It backtracks for years, and keeps the interpreter's lock meanwhile.
        re.match("(a+)+$", "a" * 60 + "b")
    while True:
        time.sleep(60)
