"""Every condition that would make a cut inexact or the feed incomplete, each with its fix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import Finding
from viewkeeper.sources.mariadb import binlog
from viewkeeper.sources.mariadb.catalog import Catalog, Table
from viewkeeper.sources.mariadb.connection import Link, rows, variables
from viewkeeper.sources.mariadb.reading import CHUNK_BYTES_MAX
from viewkeeper.sources.mariadb.setup import DURABLE, NEEDED

# The first version with JSON_TABLE.
VERSION_MIN = (10, 6)
RETENTION_SECONDS_MIN = 24 * 3600
LOG_IN_ENGINE = "log-in-engine"
LOG_VARIABLES = (
    "log_bin",
    "binlog_expire_logs_seconds",
    "max_allowed_packet",
    "wsrep_on",
    "binlog_storage_engine",
)

_WHY = {
    "binlog_format": "changes logged as statements do not tell the rows they changed",
    "binlog_row_image": "changes would come without their old values",
    "binlog_row_metadata": "rows would come without their columns' names and character sets",
    "binlog_alter_two_phase": "a schema change would have two places in the log",
    "binlog_checksum": "a damaged event would be read as other rows",
    "sync_binlog": "after a crash of the machine the log may lack transactions that the tables have",
    "innodb_flush_log_at_trx_commit": "after a crash the tables may lack transactions that the log has",
}


def findings(
    source: str,
    link: Link,
    catalog: Catalog,
    relations: Sequence[str],
    try_feed: Callable[[], object],
    logged: Callable[[], Iterable[binlog.Event]],
) -> list[Finding]:
    """``try_feed`` starts reading the log, to see whether the feed's user may; ``logged`` gives some of
    the newest file's events."""
    found = list(_version(link))
    if not found:
        found += _log(link, source)
        found += _settings(link)
        found += _replication(link, catalog, relations)
        found += _values(link)
        found += _relations(link, catalog, relations)
        if not any(finding.code == LOG_IN_ENGINE for finding in found):
            found += _feed(try_feed, logged)
    if not any(finding.severity == "refused" for finding in found):
        found.insert(0, Finding("exact", "ok", f"source {source} can be kept exactly"))
    return found


def _version(link: Link) -> Iterator[Finding]:
    [(text,)] = rows(link, "SELECT VERSION()")
    numbers = re.match(r"(\d+)\.(\d+)", text)
    if "mariadb" not in text.lower():
        yield Finding(
            "not-mariadb", "refused", f"the server is {text}, not MariaDB: its snapshots do not tell"
            " their place in the log", "use a MariaDB server",
        )  # fmt: skip
    elif numbers is None or (int(numbers[1]), int(numbers[2])) < VERSION_MIN:
        wanted = ".".join(map(str, VERSION_MIN))
        yield Finding(
            "old-server", "refused", f"MariaDB {text} is too old", f"use MariaDB {wanted} or newer"
        )


def _log(link: Link, source: str) -> Iterator[Finding]:
    return log_findings(source, variables(link, *LOG_VARIABLES))


def log_findings(source: str, found: Mapping[str, str]) -> Iterator[Finding]:
    """What the server's variables say of its log. Pure."""
    if (engine := log_engine(found)) is not None:
        yield Finding(
            "log-in-engine", "refused", f"source {source} keeps its binary log in {engine}: its places"
            " are not those of a file, by which cuts and the feed are put in order",
            "remove binlog_storage_engine from the [mysqld] section and restart the server",
        )  # fmt: skip
    if found.get("log_bin") != "ON":
        yield Finding(
            "no-binary-log", "refused", f"source {source} keeps no binary log",
            "write log_bin = binlog into the [mysqld] section and restart the server",
        )  # fmt: skip
    kept_seconds = float(found.get("binlog_expire_logs_seconds", "0"))
    if 0 < kept_seconds < RETENTION_SECONDS_MIN:
        yield Finding(
            "short-log", "warning",
            f"the log is kept {kept_seconds:.0f} s: Viewkeeper may not be away for longer",
            "SET GLOBAL binlog_expire_logs_seconds = 604800",
        )  # fmt: skip
    if int(found.get("max_allowed_packet", CHUNK_BYTES_MAX * 2)) < CHUNK_BYTES_MAX * 2:
        yield Finding(
            "small-packets", "refused", "max_allowed_packet is too small for the keys of a batch",
            f"SET GLOBAL max_allowed_packet = {CHUNK_BYTES_MAX * 2}",
        )  # fmt: skip
    if found.get("wsrep_on") == "ON":
        yield Finding(
            "galera", "refused", "places in the log differ between the nodes of a Galera cluster",
            "read from an asynchronous replica of the cluster with log_slave_updates",
        )  # fmt: skip


def _settings(link: Link) -> Iterator[Finding]:
    found = variables(link, *NEEDED, *DURABLE)
    for name, wanted in (NEEDED | DURABLE).items():
        value = found.get(name, wanted)
        if value != wanted:
            severity = "refused" if name in NEEDED else "warning"
            yield Finding(
                name.replace("_", "-"), severity, f"{name} is {value}: {_WHY[name]}",
                f"SET GLOBAL {name} = {wanted}, and the same in the server's configuration",
            )  # fmt: skip


def _replication(link: Link, catalog: Catalog, relations: Sequence[str]) -> Iterator[Finding]:
    """Changes that the server applies without logging them, and databases left out of the log."""
    running = rows(link, "SHOW GLOBAL STATUS LIKE 'Slaves_running'")
    updates = variables(link, "log_slave_updates").get("log_slave_updates")
    if running and int(running[0][1]) and updates != "ON":
        yield Finding(
            "replica-without-log", "refused", "the server is a replica and does not log what it applies",
            "write log_slave_updates = ON into the [mysqld] section and restart the server",
        )  # fmt: skip
    status = rows(link, "SHOW MASTER STATUS")
    only, ignored = (
        (set(filter(None, text.split(","))) for text in status[0][2:4])
        if status
        else (set(), set())
    )
    used = {catalog.place(relation)[0] for relation in relations}
    for database in sorted(used):
        if database in ignored or (only and database not in only):
            yield Finding(
                "unlogged-database", "refused", f"changes of database {database} are not logged",
                "remove it from binlog_ignore_db, or add it to binlog_do_db, and restart the server",
            )  # fmt: skip


def _values(link: Link) -> Iterator[Finding]:
    mode = variables(link, "sql_mode").get("sql_mode", "")
    if "NO_ZERO_DATE" not in mode or "NO_ZERO_IN_DATE" not in mode:
        yield Finding(
            "zero-dates", "warning", "the server accepts dates like 0000-00-00, which views see as NULL",
            "add NO_ZERO_DATE and NO_ZERO_IN_DATE to sql_mode",
        )  # fmt: skip
    prepared = rows(link, "XA RECOVER")
    if prepared:
        yield Finding(
            "xa-transaction", "warning",
            f"{len(prepared)} XA transactions are prepared: the feed stops at one that changes a table"
            " it reads", "keep XA transactions away from these tables",
        )  # fmt: skip


def _relations(link: Link, catalog: Catalog, relations: Sequence[str]) -> Iterator[Finding]:
    for relation in relations:
        table = catalog.table(link, relation)
        if table is None:
            yield Finding(
                "unknown-relation", "refused", f"there is no table {relation} that we may read",
                "check the name, or GRANT SELECT on it",
            )  # fmt: skip
        else:
            yield from _table(table)


def _table(table: Table) -> Iterator[Finding]:
    for code, reason, fix in table.problems:
        yield Finding(f"inexact-{code}", "refused", reason, fix)
    for column in table.columns:
        if column.refused:
            yield Finding(
                "refused-column", "warning",
                f"{table.relation}.{column.name} can't be used in views: {column.refused}",
            )  # fmt: skip


def _feed(
    try_feed: Callable[[], object], logged: Callable[[], Iterable[binlog.Event]]
) -> Iterator[Finding]:
    try:
        try_feed()
        yield from event_findings(logged())
    except SourceError as error:
        yield Finding(error.code, "refused", f"{error.message}: {error.detail}", error.hint)


def event_findings(events: Iterable[binlog.Event]) -> Iterator[Finding]:
    """Whether the log has events at which a feed would stop. Pure."""
    unknown = sorted({event.type for event in events if not binlog.is_understood(event)})
    if unknown:
        yield Finding(
            "unknown-event", "refused",
            f"the log holds events of unknown types: {', '.join(map(str, unknown))}; a feed stops there",
            "this server is newer than Viewkeeper knows: turn off the setting that writes them, or"
            " use a newer Viewkeeper",
        )  # fmt: skip


def log_engine(found: Mapping[str, str]) -> str | None:
    """The storage engine that keeps the log, where it is not in files (MariaDB 12.3 and newer)."""
    engine = found.get("binlog_storage_engine") or ""
    return None if engine.lower() in ("", "none", "null") else engine
