"""Named points of a run at which a test may let the process die; see `viewkeeper.warehouse.faults`.

They lie between what the warehouse's own points cover: what a run does before it hands an epoch to
the warehouse, and after it. Unset, which is always so outside tests, a point costs one look-up.
"""

from __future__ import annotations

from viewkeeper.warehouse.faults import failpoint as failpoint

# In the order in which a run passes them.
FAILPOINTS = (
    "before-fill",
    "cuts-open",
    "batch-closed",
    "before-confirm",
    "after-confirm",
    "schema-taken",
)
