"""What the owner of a MariaDB source has to do, as a script; and the part that we may run.

Nothing is created there: the settings of the binary log and a user's grants are all. `run_setup`
changes settings of the running server and returns what they were, for `run_teardown`.

Users get a password that is made up for them, one host to come from, and TLS where that is another machine.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.mariadb.catalog import Catalog
from viewkeeper.sources.mariadb.connection import Link, rows, variables
from viewkeeper.sources.mariadb.quoting import quoted
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


# How a first connection of ours is waited for, when we ask from where the server sees us.
_REACH_SECONDS = 5.0


def setup_script(
    source: str,
    url: SourceUrl,
    feed_url: SourceUrl,
    catalog: Catalog,
    relations: Sequence[str],
) -> str:
    """The whole of it, for an administrator to read and run."""
    reader, feeder = account(url), account(feed_url)
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
        *_user(url, reader, f"{source.upper()}_PASSWORD"),
        *(f"GRANT SELECT ON {_table(catalog, name)} TO {reader};" for name in relations),
        f"GRANT BINLOG MONITOR ON *.* TO {reader};",
        "",
        "-- The user who reads the binary log, which holds the changes of all tables:",
        *(_user(feed_url, feeder, f"{source.upper()}_FEED_PASSWORD") if feeder != reader else ()),
        f"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {feeder};",
    ]
    return "\n".join(lines) + "\n"


def _user(url: SourceUrl, account: str, variable: str) -> Iterator[str]:
    """One that can't get in by its name alone, nor from elsewhere, nor by a link that others can read."""
    password = generated_password()
    tls = "" if url.may_be_insecure else " REQUIRE SSL"
    yield "-- Its password was made up for this script, and is kept nowhere else. Put it where the source's"
    yield f"-- url takes it from, for example ${{{variable}}}:   export {variable}='{password}'"
    yield "-- A user that is there already keeps its password. If the server sees Viewkeeper come"
    yield "-- from another address, write account_host=ADDRESS into the source's url and print this again."
    yield f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{password}'{tls};"
    if tls:
        yield f"ALTER USER {account}{tls};"


def generated_password() -> str:
    """Of 192 random bits, with characters of every kind: servers' rules ask for them, URLs take them."""
    while True:
        made = secrets.token_urlsafe(24)
        kinds = (str.islower, str.isupper, str.isdigit, lambda each: each in "-_")
        if all(any(is_kind(each) for each in made) for is_kind in kinds):
            return made


def account(url: SourceUrl) -> str:
    """The user with the one host from which he comes, as MariaDB writes it."""
    user = (url.user or "viewkeeper").replace("\\", "\\\\").replace("'", "''")
    host = url.options.get("account_host") or _own_address(url)
    return f"'{user}'@'{host.replace(chr(92), chr(92) * 2).replace(chr(39), chr(39) * 2)}'"


def _own_address(url: SourceUrl) -> str:
    """This machine's address on the way to the server; found out without logging in."""
    place = (url.host, url.port)
    try:
        with socket.create_connection(place, _REACH_SECONDS) as link:
            return str(link.getsockname()[0])
    except OSError:
        pass  # it is away, or does not let us; the way there is known all the same
    try:
        family, kind, _, _, address = socket.getaddrinfo(*place, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)  # sends nothing
            return str(probe.getsockname()[0])
    except OSError as error:
        raise UsageError(
            "unknown-account-host",
            f"can't tell from which address {url} would see us",
            detail=error.strerror or str(error),
            hint="write account_host=ADDRESS into the source's url",
        ) from None


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


def _table(catalog: Catalog, relation: str) -> str:
    database, table = catalog.place(relation)
    return f"{quoted(database)}.{quoted(table)}"
