"""Connections with pinned settings, and MariaDB's errors in our words.

Every session is pinned to one time zone, SQL mode and isolation level, because a value must be the
same whoever reads it, and because READ COMMITTED would void a consistent snapshot without a warning.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeAlias

import pymysql
from pymysql.constants import CLIENT

from viewkeeper.errors import SourceError, UsageError, rebuild_command
from viewkeeper.sources.urls import INSECURE, SourceUrl, insecure_link
from viewkeeper.sources.wire import Malformed

# The driver declares no types.
Link: TypeAlias = pymysql.Connection

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 600
# After so long without a byte a second connection finds out whether the first one is still alive.
PATIENCE_SECONDS = 3
RECEIVE_BYTES = 1 << 18
_PACKET_BYTES_MAX = 0xFFFFFF
# The most that max_allowed_packet can be.
_PAYLOAD_BYTES_MAX = 1 << 30

# `account_host`: where the user of the set-up script may come from.
_OPTIONS = frozenset({"ssl", "ssl_ca", "ssl_cert", "ssl_key", "account_host", INSECURE})
_SSL_FILES = ("ssl_ca", "ssl_cert", "ssl_key")
_SSL_MODES = frozenset({"preferred", "disabled", "verify"})
VERIFIED = "verify"
_NATIVE = "mysql_native_password"
# How we answer a server. By every other method that the driver knows, a stranger who listens where the
# server should be could have the password itself: mysql_clear_password and dialog send it, sha256_password
# and caching_sha2_password wrap it with a key that the server names, mysql_old_password is broken.
_AUTH_METHODS = frozenset({_NATIVE, "client_ed25519"})

_PINNED = (
    "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', "
    "tx_isolation = 'REPEATABLE-READ', lock_wait_timeout = 3, innodb_lock_wait_timeout = 3, "
    f"max_statement_time = {STATEMENT_SECONDS}"
)

# Server and client error numbers that mean: the same request may succeed later.
_PASSING = frozenset(
    {1040, 1053, 1129, 1158, 1159, 1160, 1161, 1203, 1205, 1213, 1317, 1927, 1969, 2002, 2003, 2006,
     2013, 2014, 2055, 3024, 4031}
)  # fmt: skip
_LOST = frozenset({1053, 1158, 1159, 1160, 1161, 1927, 2002, 2003, 2006, 2013, 2014, 2055, 4031})
_DENIED = frozenset({1044, 1045, 1142, 1143, 1227, 1370, 1410, 1698})
_NO_LONGER_THERE = frozenset({1051, 1054, 1109, 1146, 1356, 1412, 1932})
LOG_UNAVAILABLE = 1236
TABLE_CHANGED = 1412
LOCK_WAIT_TIMEOUT = 1205


class _Session(pymysql.connections.Connection):  # type: ignore[misc]
    """The driver's connection, but reading the machine's certificates once instead of every time.

    That alone took 70 ms of each connection.
    """

    _contexts: ClassVar[dict[str, Any]] = {}
    _auth_plugin_name: str

    def _create_ssl_ctx(self, options: Any) -> Any:
        key = repr(sorted(options.items())) if isinstance(options, dict) else repr(options)
        if key not in self._contexts:
            self._contexts[key] = super()._create_ssl_ctx(options)
        return self._contexts[key]

    def _get_server_information(self) -> None:
        super()._get_server_information()
        if self._auth_plugin_name not in _AUTH_METHODS:
            # We begin with our own; a server whose account wants another one asks for it next.
            self._auth_plugin_name = _NATIVE

    def _process_auth(self, plugin_name: bytes, auth_packet: Any, handler: Any = None) -> Any:
        method = plugin_name.decode("ascii", "replace")
        if method not in _AUTH_METHODS:
            raise _TellsPassword(method)
        self._auth_plugin_name = method
        return super()._process_auth(plugin_name, auth_packet, handler)


class _TellsPassword(pymysql.OperationalError):  # type: ignore[misc]
    """The server asks for the password in a form that could be read there."""


class PatientReader:
    """Reads from a socket like a file, and tells a slow answer from a dead link.

    The driver would give up at its timeout. We ask ``is_alive`` then, and wait on if it says yes.
    """

    def __init__(self, link: socket.socket, is_alive: Callable[[], bool]) -> None:
        self._link = link
        self._is_alive = is_alive
        self._buffer = bytearray()
        self._at = 0

    def read(self, size: int) -> bytes:
        """Exactly this number of bytes, fewer only at the end of the stream."""
        while len(self._buffer) - self._at < size:
            if self._at:
                del self._buffer[: self._at]
                self._at = 0
            try:
                data = self._link.recv(max(RECEIVE_BYTES, size - len(self._buffer)))
            except TimeoutError:
                if not self._is_alive():
                    raise
                continue
            if not data:
                break
            self._buffer += data
        end = min(self._at + size, len(self._buffer))
        piece = bytes(memoryview(self._buffer)[self._at : end])
        self._at = end
        return piece

    def packet(self) -> bytes:
        """The next packet's payload; one above 16 MB comes in several. Raises the server's errors."""
        payload = b""
        while True:
            head = self.read(4)
            if len(head) < 4:
                raise EOFError("the server closed the connection")
            size = head[0] | head[1] << 8 | head[2] << 16
            piece = self.read(size)
            payload = payload + piece if payload else piece
            if size < _PACKET_BYTES_MAX:
                break
            if len(payload) > _PAYLOAD_BYTES_MAX:
                raise Malformed(f"a packet has more than {len(payload)} bytes")
        if payload[:1] == b"\xff":
            pymysql.err.raise_mysql_exception(payload)
        return payload

    def close(self) -> None:
        self._buffer.clear()


def _is_working(url: SourceUrl, source: str, number: int) -> bool:
    """Whether the server still knows the session ``number`` and is busy for it."""
    try:
        other = _Session(**_address(url), **_ssl_options(url, source), **_QUICK)
        with contextlib.closing(other):
            found = rows(
                other,
                "SELECT COMMAND FROM information_schema.PROCESSLIST WHERE ID = %s",
                (number,),
            )
    except (pymysql.MySQLError, OSError):
        return False
    return bool(found) and found[0][0] != "Sleep"


_QUICK = {"connect_timeout": 2, "read_timeout": 2, "write_timeout": 2, "program_name": "viewkeeper"}


def _address(url: SourceUrl) -> dict[str, Any]:
    return {
        "host": url.host,
        "port": url.port,
        "user": url.user,
        # Bytes: the driver would encode a text as latin-1.
        "password": (url.password.reveal() if url.password else "").encode(),
        "database": url.database,
        "charset": "utf8mb4",
    }


def connect(url: SourceUrl, source: str) -> Link:
    """A pinned session with autocommit; raises SourceError when the server can't be reached."""
    with translated(source, f"connect to {url}"), _understood(source, url):
        connection = _Session(
            **_address(url),
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=PATIENCE_SECONDS,
            write_timeout=STATEMENT_SECONDS,
            program_name="viewkeeper",
            client_flag=CLIENT.FOUND_ROWS,
            **_ssl_options(url, source),
        )
        _watch_link(connection)
        number = connection.thread_id()
        connection._rfile = PatientReader(
            connection._sock, lambda: _is_working(url, source, number)
        )
        with connection.cursor() as cursor:
            cursor.execute(_PINNED)
            if url.statement_seconds is not None:
                cursor.execute("SET SESSION max_statement_time = %s", (url.statement_seconds,))
    return connection


@contextlib.contextmanager
def _understood(source: str, url: SourceUrl) -> Iterator[None]:
    """What the driver raises where a server speaks otherwise than it should, or asks for our files."""
    try:
        yield
    except (RuntimeError, struct.error, LookupError, ValueError, TypeError) as error:
        raise SourceError(
            "source-failed",
            f"can't connect to {url}",
            source=source,
            retryable=False,
            detail=f"it does not answer as a MariaDB server does: {error}",
            hint="check the host and the port in the source's url",
        ) from error


def rows(connection: Link, sql: str, parameters: Any = ()) -> list[Any]:
    """All rows of a small query about the server itself."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)
        return list(cursor.fetchall())


def variables(connection: Link, *names: str) -> dict[str, str]:
    """Global variables by name; those that this version lacks are left out."""
    found = rows(connection, "SHOW GLOBAL VARIABLES WHERE Variable_name IN %s", (list(names),))
    return {name.lower(): value for name, value in found}


@contextlib.contextmanager
def transaction(link: Link, begin: str) -> Iterator[None]:
    """Inside it, what ``begin`` began; a link that was lost meanwhile has nothing to take back."""
    rows(link, begin)
    try:
        yield
    finally:
        if link.open:
            rows(link, "ROLLBACK")


@contextlib.contextmanager
def translated(source: str, doing: str) -> Iterator[None]:
    """Errors of the driver and the network as SourceError; ``doing`` completes "can't …"."""
    try:
        yield
    except _TellsPassword as error:
        raise SourceError(
            "password-not-told",
            f"can't {doing}",
            source=source,
            retryable=False,
            detail=f"the server asks for the password by {error}, from which it could be read; "
            f"expected {' or '.join(sorted(_AUTH_METHODS))}",
            hint="if this is your server: ALTER USER … IDENTIFIED VIA ed25519 or mysql_native_password",
        ) from None
    except pymysql.InterfaceError as error:
        raise _lost(source, doing, "the connection had ended before") from error
    except pymysql.MySQLError as error:
        raise _in_our_words(error, source, doing) from error
    except (OSError, EOFError) as error:
        raise _lost(source, doing, str(error)) from error
    except Malformed as error:
        raise _lost(source, doing, f"the answer can't be read: {error}") from error


def _in_our_words(error: pymysql.MySQLError, source: str, doing: str) -> SourceError:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    if number in _LOST:
        return _lost(source, doing, text)
    code = "source-failed"
    hint = "look it up in the server's manual and log; then try `viewkeeper check` again"
    if number in _DENIED:
        code = "access-denied"
        hint = f"viewkeeper check --setup-sql {source} prints the grants it needs"
    elif number in _NO_LONGER_THERE:
        code = "broken-query"
        hint = "the schema of the source has changed: read it again"
    elif number == LOG_UNAVAILABLE:
        code = "feed-gap"
        hint = f"the binary log no longer has this place: {rebuild_command(source)}"
    return SourceError(
        code,
        f"can't {doing}",
        source=source,
        retryable=number in _PASSING or number == TABLE_CHANGED,
        detail=f"MariaDB error {number}: {text}",
        hint=hint,
    )


def _lost(source: str, doing: str, reason: str) -> SourceError:
    return SourceError(
        "connection-lost",
        f"can't {doing}",
        source=source,
        retryable=True,
        detail=reason,
        hint="is the server running, and does the network lead there?",
    )


def _watch_link(connection: Link) -> None:
    """A dead peer is noticed in 8 seconds; the defaults of the system take hours."""
    link = connection._sock
    if link.family not in (socket.AF_INET, socket.AF_INET6):
        return
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 2),
        ("TCP_KEEPINTVL", 1),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 5000),
    ):
        if hasattr(socket, option):  # not every system has them all
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _ssl_options(url: SourceUrl, source: str) -> dict[str, Any]:
    mode = _ssl_mode(url, source)
    if mode == "disabled":
        return {"ssl_disabled": True}
    files = {name: url.options[name] for name in _SSL_FILES if name in url.options}
    return {"ssl": _verifying_context(**files)} if mode == VERIFIED else dict(files)


@functools.cache
def _verifying_context(
    ssl_ca: str | None = None, ssl_cert: str | None = None, ssl_key: str | None = None
) -> ssl.SSLContext:
    """Not the driver's own: without ssl_ca that would take the certificate of any name for the server's."""
    context = ssl.create_default_context(cafile=ssl_ca)
    # An authority of one's own may lack fields that newer rules ask for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if ssl_cert is not None:
        context.load_cert_chain(ssl_cert, ssl_key)
    return context


def _ssl_mode(url: SourceUrl, source: str) -> str:
    """What the URL says, or what is safe there; raises UsageError ``insecure-link``."""
    unknown = sorted(set(url.options) - _OPTIONS)
    is_verified = "ssl_ca" in url.options or not url.may_be_insecure
    mode = url.options.get("ssl", VERIFIED if is_verified else "preferred")
    if unknown or mode not in _SSL_MODES:
        raise UsageError(
            "bad-source-url",
            f"the URL of source {source} can't be used",
            detail=f"unknown option {', '.join(unknown)}" if unknown else "unknown value of ssl",
            hint=f"options are {', '.join(sorted(_OPTIONS))}; ssl is one of {', '.join(sorted(_SSL_MODES))}",
        )
    if mode != VERIFIED and not url.may_be_insecure:
        raise insecure_link(url, f"ssl={mode}", f"ssl={VERIFIED}")
    return mode


def is_verified(url: SourceUrl, source: str) -> bool:
    """Whether a link to it is encrypted, and to that very server."""
    return _ssl_mode(url, source) == VERIFIED
