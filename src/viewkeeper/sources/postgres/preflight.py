"""Every condition that would make a PostgreSQL source inexact or harm it, each with its fix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import Finding
from viewkeeper.sources.postgres.catalog import Described
from viewkeeper.sources.postgres.notes import NOTES
from viewkeeper.sources.postgres.visibility_fence import WOULD_SHOW

if TYPE_CHECKING:
    from viewkeeper.sources.postgres.source import PostgresSource

VERSION_MIN = 140000  # TID range scans, and pgoutput with logical messages

_SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('server_version'),
       current_setting('wal_level'), pg_is_in_recovery(), current_setting('server_encoding'),
       current_setting('max_slot_wal_keep_size'),
       current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots),
       current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_stat_replication)
"""
_FEED_ROLE = "SELECT rolsuper OR rolreplication FROM pg_roles WHERE rolname = %s"
_PUBLICATION = """
SELECT p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate, p.pubviaroot
FROM pg_publication p WHERE p.pubname = %s
"""
# PostgreSQL 15 brought column lists and row filters; before it there are no such columns.
_PUBLISHED = """
SELECT r.prrelid::int8,
       coalesce((to_jsonb(r) ->> 'prqual') IS NOT NULL, false),
       coalesce((to_jsonb(r) ->> 'prattrs') IS NOT NULL, false)
FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = %s
"""
_TABLES = """
SELECT c.oid::int8, c.oid::regclass::text, c.relkind::text, c.relpersistence::text,
       c.relrowsecurity, c.relreplident::text
FROM pg_class c WHERE c.oid = ANY(%s::oid[])
"""
_TRIGGERS = (
    "SELECT evtname::text FROM pg_event_trigger WHERE evtname = ANY(%s) AND evtenabled = 'A'"
)
# Our table of schema changes, if it is in the publication.
_NOTES = """
SELECT 1 FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = %s AND n.nspname = %s AND c.relname = %s
"""


def findings(source: PostgresSource, relations: Sequence[str]) -> list[Finding]:
    """One finding per condition; a condition that holds is reported as ok, once per group."""
    found = [*_of_server(source), *_of_roles(source)]
    known: list[Described] = []
    for relation in relations:
        try:
            known += source.describe(source.resolve([relation])).values()
        except SourceError as error:
            found.append(Finding(error.code, "refused", error.message, error.hint))
    for each in known:
        found += _of_table(source, each)
    found += _of_publication(source, known)
    found += _of_slot(source)
    found += _of_triggers(source, any(each.document["kind"] == "p" for each in known))
    return found


def _of_server(source: PostgresSource) -> Iterator[Finding]:
    number, version, wal_level, standby, encoding, keep, slots, senders = source.links.ask(_SERVER)[
        0
    ]
    yield _judged(
        number >= VERSION_MIN,
        "server-version",
        f"PostgreSQL {version}",
        f"PostgreSQL {version} is too old",
        "use PostgreSQL 14 or newer",
    )
    yield _judged(
        wal_level == "logical",
        "wal-level",
        "wal_level is logical",
        f"wal_level is {wal_level}: there is no change feed",
        "ALTER SYSTEM SET wal_level = 'logical', then restart the server",
    )
    yield _judged(
        not standby,
        "primary",
        "the server is a primary",
        "the server is a standby: its snapshots don't match the primary's log",
        "give the primary's address in the source's URL",
    )
    yield _judged(
        encoding != "SQL_ASCII",
        "encoding",
        f"the database is encoded as {encoding}",
        "the database has no encoding (SQL_ASCII): text may be unreadable",
        "move it to a database with the encoding UTF8",
    )
    if keep == "-1":
        yield Finding(
            "log-limit",
            "warning",
            "the server keeps its log for us without a limit: a stopped feed can fill its disk",
            "ALTER SYSTEM SET max_slot_wal_keep_size = '50GB' (a feed that falls behind further "
            "must be rebuilt), then SELECT pg_reload_conf()",
        )
    if slots < 1 or senders < 1:
        yield Finding(
            "slots-full",
            "warning",
            f"the server has {slots} replication slots and {senders} walsenders left",
            "raise max_replication_slots and max_wal_senders, then restart the server",
        )


def _of_roles(source: PostgresSource) -> Iterator[Finding]:
    user = source.feed_user
    rows = source.links.ask(_FEED_ROLE, [user])
    yield _judged(
        bool(rows) and bool(rows[0][0]),
        "feed-role",
        f"the role {user} may read the change feed",
        f"the role {user} may not read the change feed",
        f'ALTER ROLE "{user}" REPLICATION',
    )
    [(asking, would_show)] = source.links.ask(f"SELECT current_user::text, {WOULD_SHOW}")
    if not would_show:
        yield Finding(
            "standby-waits",
            "warning",
            f"the role {asking} can't see which commits wait for a synchronous standby: while a "
            "transaction runs for long, a view can't be loaded",
            f'GRANT pg_read_all_stats TO "{asking}"',
        )


def _of_table(source: PostgresSource, each: Described) -> Iterator[Finding]:
    rows = source.links.ask(_TABLES, [[each.oid, *each.partitions]])
    by_oid = {row[0]: row for row in rows}
    root = by_oid[each.oid]
    if root[2] == "r" and each.partitions:
        yield _refused(
            "inheritance",
            f"{each.name} has child tables: a query reads them, its feed does not",
            "make it a partitioned table, or let views read the child tables one by one",
        )
    if root[2] == "p" and not each.relation.key:
        yield _refused(
            "partitions-without-key",
            f"{each.name} is partitioned and has no primary key: a new partition without a replica "
            "identity would make your UPDATE and DELETE fail",
            f"ALTER TABLE {each.quoted} ADD PRIMARY KEY (…)",
        )
    for _, name, kind, persistence, policies, identity in rows:
        yield from _of_storage(name, kind, persistence, policies, identity)
    for column, reason in each.relation.refused.items():
        yield Finding("column-refused", "warning", f"{each.name}.{column}: {reason}", "")


def _of_storage(
    name: str, kind: str, persistence: str, policies: bool, identity: str
) -> Iterator[Finding]:
    if kind == "f":
        yield _refused(
            "foreign-partition",
            f"{name} is a foreign table: its changes are not in this server's log",
            "detach the partition",
        )
    if persistence == "u":
        yield _refused(
            "unlogged", f"{name} is unlogged: its changes are not in the log",
            f"ALTER TABLE {name} SET LOGGED",
        )  # fmt: skip
    if policies:
        yield _refused(
            "row-level-security",
            f"{name} has row-level security: it hides rows from queries but not from the feed",
            f"ALTER TABLE {name} DISABLE ROW LEVEL SECURITY",
        )
    if kind in ("r", "p") and identity != "f":
        yield _refused(
            "replica-identity",
            f"the feed of {name} carries no old values",
            f"ALTER TABLE {name} REPLICA IDENTITY FULL",
        )


def _of_publication(source: PostgresSource, known: Sequence[Described]) -> Iterator[Finding]:
    rows = source.links.ask(_PUBLICATION, [source.instance])
    if not rows:
        yield _refused(
            "publication", f"there is no publication {source.instance}", _run_setup(source)
        )
        return
    everything, via_root = rows[0]
    yield _judged(
        everything and via_root,
        "publication",
        f"the publication {source.instance} publishes every kind of change",
        f"the publication {source.instance} leaves out some kind of change",
        f"ALTER PUBLICATION {source.instance} SET (publish = 'insert, update, delete, truncate', "
        "publish_via_partition_root = true)",
    )
    published: dict[int, Any] = {
        row[0]: row for row in source.links.ask(_PUBLISHED, [source.instance])
    }
    for each in known:
        row = published.get(each.oid)
        if row is None:
            yield _refused(
                "not-published",
                f"{each.name} is not in the publication {source.instance}",
                _run_setup(source),
            )
        elif row[1] or row[2]:
            yield _refused(
                "publication-filtered",
                f"the publication {source.instance} leaves out rows or columns of {each.name}",
                f"ALTER PUBLICATION {source.instance} DROP TABLE {each.quoted}, then ADD TABLE it",
            )


def _of_slot(source: PostgresSource) -> Iterator[Finding]:
    health = source.health()
    yield _judged(
        health.state == "ok",
        "slot",
        f"the slot {source.instance} keeps the log for us ({health.retained_bytes} bytes now)",
        f"the slot {source.instance} is not usable: {health.detail or health.state}",
        _run_setup(source),
    )


def _of_triggers(source: PostgresSource, partitioned: bool) -> Iterator[Finding]:
    names = [f"{source.instance}_ddl", f"{source.instance}_rewrite"]
    there = len(source.links.ask(_TRIGGERS, [names])) == len(names)
    notes = source.links.ask(_NOTES, [source.instance, source.instance, NOTES])
    if there and not notes:
        yield Finding(
            "event-trigger",
            "warning",
            "the event triggers are of an older set-up: any session can switch them off, and they tell "
            "schema changes by messages, which any role can send",
            _run_setup(source) + " (a superuser must run it)",
        )
    elif there:
        yield Finding("event-trigger", "ok", "schema changes are in the feed, in their place")
    elif partitioned:
        yield _refused(
            "event-trigger",
            "no event trigger watches the partitioned tables: the changes of a new partition would "
            "come without their old values, and partitions could come and go unseen",
            _run_setup(source) + " (a superuser must run it)",
        )
    else:
        yield Finding(
            "event-trigger",
            "warning",
            "no event trigger puts schema changes into the feed: they show with the next row or "
            "query, and the relation is then read again",
            _run_setup(source) + " (a superuser must run it)",
        )


def _run_setup(source: PostgresSource) -> str:
    return f"let the source's owner run what viewkeeper check --setup-sql {source.name} prints"


def _judged(holds: bool, code: str, good: str, bad: str, fix: str) -> Finding:
    return Finding(code, "ok", good) if holds else _refused(code, bad, fix)


def _refused(code: str, message: str, fix: str) -> Finding:
    return Finding(code, "refused", message, fix)
