"""Named points in the code at which a test may let the process die or the disk be full.

``VIEWKEEPER_FAILPOINT="after-table:2"`` kills this process (SIGKILL, as a power switch would) when
it passes ``after-table`` for the second time; ``"before-ledger=full"`` raises "no space left on
device" there instead. Unset, which is always so outside tests, a point costs one look-up.
"""

from __future__ import annotations

import errno
import os
import signal
from collections import Counter

VARIABLE = "VIEWKEEPER_FAILPOINT"

# In the order in which a writer passes them.
FAILPOINTS = (
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
    if action == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.kill(os.getpid(), signal.SIGKILL)
