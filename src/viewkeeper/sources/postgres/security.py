"""What our links to a PostgreSQL server are, and which rights of our roles are more than they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from viewkeeper.sources.interface import Finding, LinkState
from viewkeeper.sources.postgres.connection import VERIFIED, Control, link_options
from viewkeeper.sources.postgres.quoting import quoted
from viewkeeper.sources.urls import SourceUrl

# The function that names the method of authentication came with version 16.
_SYSTEM_USER = 160000
_LINK = """
SELECT current_user::text, current_setting('server_version_num')::int,
       (SELECT s.version FROM pg_stat_ssl s WHERE s.pid = pg_backend_pid() AND s.ssl)
"""
_ROLE = """
SELECT r.rolname::text, r.rolsuper, r.rolcreaterole, r.rolcreatedb, r.rolbypassrls, r.rolreplication,
       array(SELECT p.rolname::text FROM pg_roles p WHERE p.rolname = ANY(%s)
             AND NOT r.rolsuper AND pg_has_role(r.rolname, p.oid, 'MEMBER') ORDER BY 1)
FROM pg_roles r WHERE r.rolname = current_user
"""
# Roles of the server whose members can write, or get out of the database.
_POWERS = [
    "pg_write_all_data", "pg_read_server_files", "pg_write_server_files",
    "pg_execute_server_program", "pg_create_subscription", "pg_signal_backend", "pg_maintain",
]  # fmt: skip
_WRITABLE = """
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema'
  AND n.nspname <> %s AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
ORDER BY 1 LIMIT 4
"""
_ATTRIBUTES = ("SUPERUSER", "CREATEROLE", "CREATEDB", "BYPASSRLS")


def link_state(source: str, url: SourceUrl) -> LinkState:
    """Of a connection that is made for it; whether it is encrypted, our own end knows best."""
    with closing(Control(source, url)) as control:
        [(user, version, tls)] = control.ask(_LINK)
        encrypted = control.is_encrypted
        told = None
        if version >= _SYSTEM_USER:
            [(named,)] = control.ask("SELECT system_user")
            told = "none" if named is None else str(named).partition(":")[0]
    verified = encrypted and link_options(url).get("sslmode") == VERIFIED
    return LinkState(user, url.place, (tls or "TLS") if encrypted else None, verified, told)


def needless_rights(
    source: str, url: SourceUrl, instance: str, *, feeder: str | None
) -> Iterator[Finding]:
    """``feeder``: the role that reads the feed, where it is another than the one that asks."""
    with closing(Control(source, url)) as control:
        [(user, *has, replicates, powers)] = control.ask(_ROLE, [_POWERS])
        writable = [] if has[0] else [str(row[0]) for row in control.ask(_WRITABLE, [instance])]
    attributes = [name for name, given in zip(_ATTRIBUTES, has, strict=True) if given]
    if replicates and feeder not in (None, user) and not has[0]:
        attributes.append("REPLICATION")
    yield from _judged(user, attributes, powers, writable)


def _judged(
    user: str, attributes: list[str], powers: list[str], writable: list[Any]
) -> Iterator[Finding]:
    role = quoted(user)
    if attributes:
        without = " ".join(f"NO{name}" for name in attributes)
        yield Finding(
            "needless-rights",
            "warning",
            f"the role {user} is {', '.join(attributes)}",
            f"ALTER ROLE {role} {without}",
        )
    if powers:
        yield Finding(
            "needless-rights",
            "warning",
            f"the role {user} is a member of {', '.join(powers)}",
            f"REVOKE {', '.join(powers)} FROM {role}",
        )
    if writable:
        shown = ", ".join(writable[:3]) + (", …" if len(writable) > 3 else "")
        yield Finding(
            "needless-rights",
            "warning",
            f"the role {user} may write to {shown}",
            f"REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON {', '.join(writable[:3])} FROM {role};"
            " or let another role own them",
        )
    if not (attributes or powers or writable):
        yield Finding("least-rights", "ok", f"the role {user} has the rights that it needs")
