"""Viewkeeper keeps materialized views over several autonomous databases right, and proves it.

```python
import viewkeeper

with viewkeeper.open("project") as keeper:
    keeper.run_until_caught_up()
    keeper.read("sales").show()
```
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from viewkeeper.declaring import view as view

if TYPE_CHECKING:
    from viewkeeper.project.keeper import Keeper

__version__ = "0.1.0"


def open(folder: str | Path = ".", *, allow_setup: bool = False) -> Keeper:
    """The project in ``folder``. Sources are set up only with ``allow_setup``."""
    # Loaded when it is used: the pure parts of the package need no Spark and no driver.
    from viewkeeper.project.keeper import Keeper

    return Keeper.open(folder, allow_setup=allow_setup)
