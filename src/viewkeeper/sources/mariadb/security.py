"""What our links to a MariaDB server are, and which rights of our users are more than they need."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import closing

from viewkeeper.sources.interface import Finding, LinkState
from viewkeeper.sources.mariadb.connection import connect, is_verified, rows
from viewkeeper.sources.urls import SourceUrl

# What the set-up script gives, at the whole server and below it; USAGE is no right at all.
_SERVER_RIGHTS = frozenset({"USAGE", "REPLICATION SLAVE", "BINLOG MONITOR", "REPLICATION CLIENT"})
_TABLE_RIGHTS = frozenset({"SELECT"})
_GRANT = re.compile(r"GRANT (?P<rights>.+?) ON (?P<place>.+?) TO (?P<rest>.*)", re.DOTALL)


def link_state(source: str, url: SourceUrl) -> LinkState:
    """Of a connection that is made for it."""
    with closing(connect(url, source)) as link:
        [(user,)] = rows(link, "SELECT CURRENT_USER()")
        wire = link._sock
        tls = wire.version() if isinstance(wire, ssl.SSLSocket) else None
        method = link._auth_plugin_name or None
    verified = tls is not None and is_verified(url, source)
    return LinkState(str(user), url.place, tls, verified, method)


def needless_rights(source: str, url: SourceUrl) -> Iterator[Finding]:
    with closing(connect(url, source)) as link:
        [(user,)] = rows(link, "SELECT CURRENT_USER()")
        grants = [str(row[0]) for row in rows(link, "SHOW GRANTS")]
    yield from judged(str(user), grants)


def judged(user: str, grants: Sequence[str]) -> Iterator[Finding]:
    """What the server's own list of a user's rights says. Pure; the hash in it stays here."""
    name, _, host = user.rpartition("@")
    account = f"'{name}'@'{host}'"
    found = []
    if not any("IDENTIFIED " in grant for grant in grants):
        found.append(
            Finding(
                "no-password",
                "warning",
                f"the user {user} has no password",
                f"ALTER USER {account} IDENTIFIED BY '…'",
            )
        )
    if "%" in host:
        found.append(
            Finding(
                "any-host",
                "warning",
                f"the user {user} may come from every host",
                f"DROP USER {account}, after running what viewkeeper check --setup-sql prints",
            )
        )
    for grant in grants:
        if (needless := _beyond(grant)) is not None:
            rights, place = needless
            found.append(
                Finding(
                    "needless-rights",
                    "warning",
                    f"the user {user} has {rights} on {place}",
                    f"REVOKE {rights} ON {place} FROM {account}",
                )
            )
    yield from found or [
        Finding("least-rights", "ok", f"the user {user} has the rights that it needs")
    ]


def _beyond(grant: str) -> tuple[str, str] | None:
    """The rights of one line that are not needed, and where; None when there are none."""
    parts = _GRANT.match(grant)
    if parts is None:
        return None  # of a role, whose rights are in lines of their own
    place = parts["place"]
    needed = _SERVER_RIGHTS if place == "*.*" else _TABLE_RIGHTS
    given = re.split(r", (?![^(]*\))", parts["rights"])
    extra = [right for right in given if right.partition(" (")[0] not in needed]
    if parts["rest"].endswith("WITH GRANT OPTION"):
        extra.append("GRANT OPTION")
    return (", ".join(extra), place) if extra else None
