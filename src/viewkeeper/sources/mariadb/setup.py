"""What the owner of a MariaDB source has to do, as a script; and the part that we may run.

Nothing is created there: the settings of the binary log and a user's grants are all. `run_setup`
changes settings of the running server and returns what they were, for `run_teardown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.mariadb.catalogue import Catalogue, quoted
from viewkeeper.sources.mariadb.connection import Link, rows, variables
from viewkeeper.sources.urls import SourceUrl

# Settings without which rows, old values or columns' names are missing in the log, or damage goes unseen.
NEEDED = {
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_alter_two_phase": "OFF",
    "binlog_checksum": "CRC32",
}
# Settings without which a crash may lose transactions that the feed has delivered, or the reverse.
DURABLE = {"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1"}


def setup_script(
    url: SourceUrl, feed_url: SourceUrl, catalogue: Catalogue, relations: Sequence[str]
) -> str:
    """The whole of it, for an administrator to read and run."""
    lines = [
        "-- What Viewkeeper needs here. Run it as an administrator.",
        "-- In the [mysqld] section of the server's configuration, so that it survives a restart:",
        "--   log_bin = binlog",
        *(f"--   {name} = {value}" for name, value in (NEEDED | DURABLE).items()),
        "--   binlog_expire_logs_seconds = 604800   (how long Viewkeeper may be away)",
        "",
        "-- For the running server (log_bin alone needs a restart, and sessions that are already",
        "-- open keep their own binlog_format until they reconnect):",
        *(f"SET GLOBAL {name} = {value};" for name, value in (NEEDED | DURABLE).items()),
        "",
        "-- The user who reads tables at cuts:",
        f"CREATE USER IF NOT EXISTS {_account(url)};  -- and ALTER USER … IDENTIFIED BY …",
        *(f"GRANT SELECT ON {_table(catalogue, name)} TO {_account(url)};" for name in relations),
        f"GRANT BINLOG MONITOR ON *.* TO {_account(url)};",
        "",
        "-- The user who reads the binary log, which holds the changes of all tables:",
        f"CREATE USER IF NOT EXISTS {_account(feed_url)};",
        f"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {_account(feed_url)};",
    ]
    return "\n".join(lines) + "\n"


def run_setup(source: str, link: Link) -> dict[str, str]:
    """Set what can be set without a restart; returns the former values of what was changed."""
    if variables(link, "log_bin").get("log_bin") != "ON":
        raise SourceError(
            "no-binary-log",
            f"source {source} keeps no binary log",
            source=source,
            retryable=False,
            detail="log_bin is OFF and can only be set in the server's configuration",
            hint="write log_bin = binlog into the [mysqld] section and restart the server",
        )
    found = variables(link, *NEEDED)
    former = {name: found[name] for name in NEEDED if found.get(name, NEEDED[name]) != NEEDED[name]}
    for name in former:
        rows(link, f"SET GLOBAL {name} = {NEEDED[name]}")
    return former


def run_teardown(link: Link, former: Mapping[str, str]) -> None:
    """Give the settings that `run_setup` changed their former values."""
    for name, value in former.items():
        rows(link, f"SET GLOBAL {name} = %s", (value,))


def refuse_unless(allowed: bool, source: str) -> None:
    if not allowed:
        raise UsageError(
            "setup-not-allowed",
            f"Viewkeeper may not change anything at source {source}",
            hint=f"run viewkeeper check --setup-sql {source} and give the script to its owner,"
            " or start Viewkeeper with --allow-setup",
        )


def _account(url: SourceUrl) -> str:
    user = (url.user or "viewkeeper").replace("\\", "\\\\").replace("'", "''")
    return f"'{user}'@'%'"


def _table(catalogue: Catalogue, relation: str) -> str:
    database, table = catalogue.place(relation)
    return f"{quoted(database)}.{quoted(table)}"
