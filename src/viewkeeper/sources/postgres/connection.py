"""Connections to PostgreSQL: settings pinned, silent links noticed, foreign errors translated.

`Control` asks small questions and gives up after a deadline. `ArrowLink` reads bulk as Arrow; its
driver blocks, so it works in its own thread, and while it is busy the link is tested with a
second connection: a slow query and a dead link look alike from the first one.
"""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

import adbc_driver_manager
import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa
from psycopg.conninfo import make_conninfo

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.urls import INSECURE, SourceUrl, insecure_link

# Text forms must be the same for every role; names are qualified by us, never searched; a policy that
# would hide rows makes a query fail instead.
SETTINGS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "3",
    "search_path": "pg_catalog",
    "row_security": "off",
    "client_encoding": "UTF8",
    # If we vanish, the server shall notice soon: a cut holds locks.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10s",
    "client_connection_check_interval": "5s",
}
QUERY_SETTINGS = SETTINGS | {
    # We queue for a lock only briefly: everybody else queues behind us.
    "lock_timeout": "3s",
    "statement_timeout": "10min",
    "idle_in_transaction_session_timeout": "10min",
}
# A dead link is noticed after about idle + interval × count seconds.
KEEPALIVES = {
    "keepalives": "1",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
    "connect_timeout": "5",
}
PASSED_ON = frozenset(
    {"sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding", "gssencmode", "passfile"}
    | {"require_auth"}
)
OUR_OPTIONS = frozenset({"instance", INSECURE})
VERIFIED = "verify-full"
# What a server may ask for. A password in the clear, or a hash that is as good as one (md5), must not
# reach a stranger who listens where the server should be; only SCRAM proves that it knows the password.
AUTH_PROVEN = "scram-sha-256"
AUTH_NOT_TOLD = "!password,!md5"

ANSWER_SECONDS_MAX = 30.0
PING_SECONDS_MAX = 4.0
PING_EVERY_SECONDS = 2.0

T = TypeVar("T")


def connection_string(url: SourceUrl, settings: dict[str, str], **extra: str) -> str:
    """For libpq. Holds the password: hand it to a driver, never to people."""
    unknown = sorted(set(url.options) - PASSED_ON - OUR_OPTIONS)
    if unknown:
        raise UsageError(
            "bad-source-url",
            f"the URL {url} has options that are not known: {', '.join(unknown)}",
            hint=f"known are {', '.join(sorted(PASSED_ON | OUR_OPTIONS))}",
        )
    return make_conninfo(
        "",
        host=url.host,
        hostaddr="",  # else the environment's would lead elsewhere
        port=str(url.port),
        dbname=url.database,
        **({"user": url.user} if url.user else {}),
        **({"password": url.password.reveal()} if url.password is not None else {}),
        options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
        application_name="viewkeeper",
        **KEEPALIVES,
        **link_options(url),
        **extra,
    )


def link_options(url: SourceUrl) -> dict[str, str]:
    """What libpq gets about encryption and authentication; raises UsageError ``insecure-link``."""
    chosen = {name: value for name, value in url.options.items() if name in PASSED_ON}
    if not url.may_be_insecure:
        mode = chosen.setdefault("sslmode", VERIFIED)
        if mode != VERIFIED:
            raise insecure_link(url, f"sslmode={mode}", f"sslmode={VERIFIED}")
        chosen.setdefault("sslrootcert", _authorities())
    # A client's certificate is proof enough, and a server that takes it asks for nothing more.
    proves = not url.is_near and url.password is not None and "sslcert" not in chosen
    chosen.setdefault("require_auth", AUTH_PROVEN if proves else AUTH_NOT_TOLD)
    return chosen


def _authorities() -> str:
    """The machine's own list of authorities. The drivers' libraries, built elsewhere, look for it elsewhere."""
    found = ssl.get_default_verify_paths().cafile
    return found if found and os.path.exists(found) else "system"


class _Impatient(psycopg.Connection[Any]):
    """A connection that waits for no answer longer than ``seconds_max``."""

    seconds_max = ANSWER_SECONDS_MAX

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, self.seconds_max if timeout is None else timeout)


class Control:
    """A connection for small questions, in autocommit; every wait has a deadline."""

    def __init__(self, source: str, url: SourceUrl, **settings: str) -> None:
        self._source = source
        self._lock = threading.RLock()
        text = connection_string(url, SETTINGS | settings)
        try:
            self._connection = _Impatient.connect(text, autocommit=True)
        except psycopg.Error as error:
            raise translated(error, source, "connect") from None

    @property
    def closed(self) -> bool:
        return self._connection.closed

    @property
    def is_encrypted(self) -> bool:
        return bool(self._connection.pgconn.ssl_in_use)

    def ask(
        self,
        sql: str,
        parameters: Sequence[Any] = (),
        seconds_max: float = ANSWER_SECONDS_MAX,
    ) -> list[tuple[Any, ...]]:
        """The rows of the last statement; empty when it gives none."""
        with self._lock:
            self._connection.seconds_max = seconds_max
            try:
                # The text is ours, with every value in the parameters.
                cursor = self._connection.execute(sql.encode(), tuple(parameters) or None)
                while cursor.nextset():
                    pass
                return cursor.fetchall() if cursor.description else []
            except psycopg.Error as error:
                raised = translated(error, self._source, "ask")
                if raised.code == "link-lost":
                    self.close()  # a wait that ran out leaves an answer in the pipe
                raise raised from None

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()


class ArrowLink:
    """A connection that reads bulk. Not safe for several threads at a time."""

    def __init__(self, source: str, url: SourceUrl) -> None:
        self._source, self._url = source, url
        self.broken = False
        self._tasks: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name=f"{source}-reader").start()
        settings = QUERY_SETTINGS
        if url.statement_seconds is not None:
            settings = settings | {"statement_timeout": f"{url.statement_seconds * 1000:.0f}ms"}
        text = connection_string(url, settings)
        try:
            self._connection = self._call(lambda: adbc.connect(text, autocommit=True), "connect")
        except BaseException:
            self._tasks.put(None)  # a source that is away for long is tried very often
            raise

    def run(self, sql: str) -> None:
        """A statement without parameters and without a result."""
        self._call(lambda: self._execute(sql), "run")

    def table(self, sql: str, parameters: pa.RecordBatch | None = None) -> pa.Table:
        """The whole result."""
        return self._call(lambda: self._fetch(sql, parameters), "read")

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """The result piece by piece, as the server sends it."""
        cursor, reader = self._call(lambda: self._open_reader(sql), "read")
        try:
            while (batch := self._call(lambda: _next_batch(reader), "read")) is not None:
                yield batch
        finally:
            if not self.broken:
                self._call(cursor.close, "read")

    def shape(self, sql: str) -> pa.Schema:
        """The result's columns, with PostgreSQL's type names as metadata."""
        return self._call(lambda: self._describe(sql), "describe")

    def close(self) -> None:
        """A broken link is left to its thread: closing it would block just as reading does."""
        if not self.broken:
            with suppress(SourceError):
                self._call(self._connection.close, "close")
        self._tasks.put(None)

    def _execute(self, sql: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)

    def _fetch(self, sql: str, parameters: pa.RecordBatch | None) -> pa.Table:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, parameters=parameters)
            return cursor.fetch_arrow_table()

    def _open_reader(self, sql: str) -> tuple[Any, pa.RecordBatchReader]:
        cursor = self._connection.cursor()
        try:
            cursor.execute(sql)
            return cursor, cursor.fetch_record_batch()
        except BaseException:
            cursor.close()
            raise

    def _describe(self, sql: str) -> pa.Schema:
        with self._connection.cursor() as cursor:
            return cursor.adbc_execute_schema(sql)

    def _call(self, action: Callable[[], T], what: str) -> T:
        if self.broken:
            raise link_lost(self._source, "the connection broke before")
        future: Future[T] = Future()
        self._tasks.put((action, future))
        while True:
            try:
                return future.result(timeout=PING_EVERY_SECONDS)
            except FutureTimeout:
                if not future.done():
                    self._ping()
            except (adbc_driver_manager.Error, pa.ArrowException, OSError) as error:
                raised = translated(error, self._source, what)
                self.broken = self.broken or raised.code == "link-lost"
                raise raised from None

    def _ping(self) -> None:
        """Whether the server still answers somebody; raises, and gives this link up, if not."""
        try:
            probe = Control(self._source, self._url)
            try:
                probe.ask("SELECT 1", seconds_max=PING_SECONDS_MAX)
            finally:
                probe.close()
        except SourceError:
            self.broken = True
            raise

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            action, future = task
            try:
                future.set_result(action())
            except BaseException as error:
                future.set_exception(error)


def _next_batch(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None


# SQLSTATE (or its class) to our code, whether trying again can help, and what to do.
_MEANINGS: dict[str, tuple[str, bool, str]] = {
    "28": ("access-denied", False, "check the user and the password in the source's URL"),
    "3D": ("access-denied", False, "check the database's name in the source's URL"),
    "42501": (
        "permission-denied",
        False,
        "viewkeeper check --setup-sql prints the grants that the source's owner runs",
    ),
    "42": ("broken-query", False, "the schema of the source has changed: read it again"),
    "55P03": ("source-busy", True, "a lock is held at the source, probably by a schema change"),
    "57014": ("query-timeout", True, "the query took longer than the limit"),
    "55006": ("slot-in-use", True, "another feed is connected to the slot"),
    "53": ("source-busy", True, "the server is short of connections, memory or disk"),
    "40": ("source-busy", True, "the source asks to try again"),
    "57": ("link-lost", True, "the server is shutting down or starting up"),
    "08": ("link-lost", True, "the connection broke"),
    "25P03": ("link-lost", True, "the server ended the session: it was idle for too long"),
}
# What libpq says of a server that is not to be trusted: our code, whether it may pass, what to do.
_UNTRUSTED = {
    "authentication method requirement": (
        "password-not-told",
        False,
        (
            "it asks for the password in a form that could be read there, or for none; if this is your "
            "server, let it use scram-sha-256, or name its method: require_auth=… in the source's url"
        ),
    ),
    "certificate verify failed": (
        "certificate-refused",
        True,
        "name the authority that signed it: sslrootcert=FILE in the source's url",
    ),
    "does not match host name": (
        "certificate-refused",
        True,
        "write the host into the source's url as the server's certificate has it",
    ),
    "does not support SSL": (
        "certificate-refused",
        True,
        (
            "turn TLS on at the server; or write insecure=yes into the source's url, if the network "
            "itself is trusted"
        ),
    ),
}
# What the drivers say without a SQLSTATE when the link is gone, or was never there.
_LOST = ("server closed", "could not receive", "could not send", "connection to server", "ssl ")


def translated(error: BaseException, source: str, doing: str) -> SourceError:
    """A driver's error as ours. Drivers put no password into their messages; we add none."""
    state = str(getattr(error, "sqlstate", None) or "")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [repr(error)]
    text = next((line[line.index("ERROR:") + 6 :] for line in lines if "ERROR:" in line), lines[0])
    for known in (state, state[:2]):
        if known in _MEANINGS:
            code, retryable, hint = _MEANINGS[known]
            break
    else:
        lost = not state or any(sign in str(error).lower() for sign in _LOST)
        refused = "authentication failed" in str(error) or "does not exist" in text
        untrusted = next((told for sign, told in _UNTRUSTED.items() if sign in str(error)), None)
        if untrusted is not None:
            code, retryable, hint = untrusted
        elif refused and doing == "connect":
            code, retryable, hint = _MEANINGS["28"]
        elif lost:
            code, retryable = "link-lost", True
            hint = "is the server running, and does the network lead there? a run tries again by itself"
        else:
            code, retryable = "source-failed", False
            hint = "look into the server's log; then try `viewkeeper check` again"
    return SourceError(
        code,
        f"PostgreSQL source {source} could not {doing}",
        source=source,
        retryable=retryable,
        detail=f"{text.strip()}{f' (SQLSTATE {state})' if state else ''}",
        hint=hint,
    )


def link_lost(source: str, detail: str) -> SourceError:
    return SourceError(
        "link-lost",
        f"the link to PostgreSQL source {source} is gone",
        source=source,
        retryable=True,
        detail=detail,
        hint="is the server running, and does the network lead there? a run tries again by itself",
    )
