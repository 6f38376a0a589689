"""Which run of the server, and which log of it: so that a reset or a restart is noticed by a cut.

A cut's place alone can't tell: after RESET MASTER the log starts again at its first file, and every
transaction we know would seem to be later than the cut.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.sources.mariadb.connection import Link, rows

# The server tells its age in whole seconds, and its clock may be corrected a little.
_TOLERANCE_SECONDS = 3


@dataclass(frozen=True)
class History:
    """When the server was started, and how many RESET statements it has run since."""

    started_at: int
    resets: int

    def continues(self, earlier: History) -> bool:
        same_run = abs(self.started_at - earlier.started_at) <= _TOLERANCE_SECONDS
        return same_run and self.resets == earlier.resets


def read_history(link: Link) -> History:
    found = rows(
        link,
        "SELECT VARIABLE_NAME, VARIABLE_VALUE, UNIX_TIMESTAMP() FROM information_schema.GLOBAL_STATUS"
        " WHERE VARIABLE_NAME IN ('UPTIME', 'COM_RESET')",
    )
    values = {str(name).lower(): int(value) for name, value, _ in found}
    now = int(found[0][2])
    return History(now - values["uptime"], values["com_reset"])
