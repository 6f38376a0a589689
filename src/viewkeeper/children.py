"""What processes of ours that need no secrets may inherit: enough to find Python and an object store."""

from __future__ import annotations

import os

_NAMES = frozenset(
    {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH"}
)  # fmt: skip
# An object store's own credentials, for the process that renews a lease there.
_PREFIXES = ("LC_", "AWS_", "AZURE_", "GOOGLE_")


def environment() -> dict[str, str]:
    """Of this process's variables those that a child needs; the sources' passwords are among the others."""
    return {n: v for n, v in os.environ.items() if n in _NAMES or n.startswith(_PREFIXES)}
