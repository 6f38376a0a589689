"""The one place that starts Spark: one driver JVM, two sessions on it, and their end.

``tiny`` is tuned for batches of a few thousand rows, where the work is nothing and stages are
everything: one partition, no exchange, no broadcast, no code generation, no adaptive re-planning.
``bulk`` is for initial loads and large batches: adaptive execution, code generation, all cores.
Both mean the same by every expression: ANSI, UTC, case-sensitive names.

The JVM's own output goes to a file, so that nothing but Viewkeeper writes to the terminal.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from viewkeeper.errors import UsageError
from viewkeeper.spark.java import require_java
from viewkeeper.spark.temporary import temporary_folder

JVM_STOP_SECONDS_MAX = 20
LOG_TAIL_LINES = 8

# What expressions mean. These hold in every session, also on a context that somebody else started.
MEANING: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "true",  # two columns of a source may differ in case alone
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 is read by Spark alone
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}

# A plan over one partition needs no exchange; without exchange, compiling it costs more than it saves.
TINY: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
}

BULK: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
}

# For texts of SQL that readers give: a table is a name, and never a path.
READING: Mapping[str, str] = {"spark.sql.runSQLOnFiles": "false"}

# A thread that dies of a full heap would leave its job waiting for ever: better no JVM, and an error.
HONEST_JVM = ("-XX:+ExitOnOutOfMemoryError",)
# C1 compiles at once and the serial collector starts no threads: half the start-up time.
# What a full collection frees is given back: others on the machine want to work too.
QUICK_JVM = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:MinHeapFreeRatio=20",
    "-XX:MaxHeapFreeRatio=40",
)


# Settings of Spark that must not be readable in a list of processes.
SECRET_SETTING = re.compile(r"secret|password|token|credential|access[.]?key", re.IGNORECASE)


@dataclass(frozen=True)
class SparkSettings:
    """What a user may choose about Spark.

    ``quick_start`` trades peak speed of long jobs for half the start-up time. It matters only where
    the driver does the work itself, that is with a local master. ``extra`` wins over everything.
    """

    master: str = "local[*]"
    app_name: str = "viewkeeper"
    driver_memory: str = "2g"
    ui: bool = False
    quick_start: bool = True
    extra: Mapping[str, str] = field(default_factory=dict, repr=False)
    # Environment variables that the JVM must not inherit: they hold passwords of sources.
    hidden: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    @property
    def is_connect(self) -> bool:
        return self.master.startswith("sc://")


class Spark:
    """A running Spark: its ``tiny`` and ``bulk`` sessions. Stop it, or use it in a ``with``."""

    def __init__(self, context: SparkContext, settings: SparkSettings, folder: Path | None) -> None:
        """Use `start_spark`. Without ``folder`` the context is somebody else's and outlives us."""
        self.settings = settings
        self._context = context
        self._folder = folder
        root = SparkSession(context)
        self.tiny = _configured(root.newSession(), {**MEANING, **TINY}, settings)
        self.bulk = _configured(root.newSession(), {**MEANING, **BULK}, settings)
        if folder is not None:
            # Code of the user that asks for "the" session gets one that means what we mean.
            _make_default(self.bulk)

    def fresh(self) -> SparkSession:
        """A session as ``bulk`` is, without the tables, functions and settings that others gave theirs."""
        session = SparkSession(self._context).newSession()
        return _configured(session, {**MEANING, **BULK, **READING}, self.settings)

    @property
    def log_file(self) -> Path | None:
        """Where the JVM writes; None when somebody else started it."""
        return None if self._folder is None else _log_file(self._folder)

    def is_lost(self, wait_seconds: float = 0.0) -> bool:
        """Whether its JVM has ended under us; whatever is asked of it then fails, in many ways.

        A process is gone a moment after its connections are: ``wait_seconds`` for a caller that saw these break.
        """
        gateway: Any = SparkContext._gateway
        process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
        if self._folder is None or process is None:
            return False
        try:
            process.wait(wait_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """End the sessions, the context and its JVM, and remove their files. Harmless when repeated."""
        if self._folder is None:
            return
        if self.is_lost():
            self._context._jsc = None  # there is no process left that could be stopped
        folder, self._folder = self._folder, None
        self._context.stop()
        _stop_jvm()
        shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def start_spark(settings: SparkSettings | None = None) -> Spark:
    """Start Spark, or join the context that this process already runs (in a notebook, say).

    Raises UsageError when there is no fit Java, or when Spark does not come up.
    """
    settings = settings or SparkSettings()
    if settings.is_connect:
        raise UsageError(
            "spark-connect-unsupported",
            f"Viewkeeper can't run on the Spark Connect server {settings.master}",
            detail="it drives Spark from its own JVM",
            hint="name the cluster itself, e.g. spark://host:7077, or local[*]",
        )
    silence_pyspark()
    running = SparkContext._active_spark_context
    if running is not None:
        return Spark(running, settings, folder=None)
    require_java()
    folder = temporary_folder("spark")
    try:
        return Spark(_started_context(settings, folder), settings, folder)
    except Exception as failure:
        # Read both before the JVM goes: an exception of Spark asks it for its own text.
        detail = f"{failure}\n{_log_tail(folder)}".strip()
        _stop_jvm()
        shutil.rmtree(folder, ignore_errors=True)
        raise UsageError(
            "spark-start-failed",
            f"Spark could not be started on {settings.master}",
            detail=detail,
            hint="see the [spark] section of viewkeeper.toml: master, driver_memory",
        ) from failure


def silence_pyspark() -> None:
    """Keep PySpark from logging every failed query as a page of JSON; callers get the exception."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(is_not_py4js)


def _started_context(settings: SparkSettings, folder: Path) -> SparkContext:
    if settings.is_local:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        # Executors live elsewhere; there, a user may have to name another path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    configuration = SparkConf(loadDefaults=False)
    for name, value in _context_settings(settings, folder).items():
        configuration.set(name, value)
    if SparkContext._gateway is None:
        with (
            _log_file(folder).open("wb") as log,
            _children_ignore_sigterm(),
            _without_variables(settings.hidden),
        ):
            launch: Any = launch_gateway
            # Its settings stand on the JVM's command line, which everybody on the machine can read.
            # Secret ones reach Spark afterwards, through the context.
            shown = SparkConf(loadDefaults=False).setAll(
                [(n, v) for n, v in configuration.getAll() if not SECRET_SETTING.search(n)]
            )
            gateway = launch(shown, {"stdout": log, "stderr": subprocess.STDOUT})
    else:
        gateway = SparkContext._gateway
    return SparkContext(gateway=gateway, conf=configuration)


@contextlib.contextmanager
def _without_variables(names: Iterable[str]) -> Iterator[None]:
    """What is started in here does not inherit these variables."""
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


@contextlib.contextmanager
def _children_ignore_sigterm() -> Iterator[None]:
    """What is started in here is not ended by a SIGTERM to all processes of ours, but by us.

    PySpark does the same with Ctrl-C. A JVM respects that a signal is ignored when it starts. One that
    comes meanwhile waits for its turn.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    handler = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if handler is None else handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


def _context_settings(settings: SparkSettings, folder: Path) -> dict[str, str]:
    jvm = [f'-Djava.io.tmpdir="{folder}"', "-Duser.timezone=UTC"]
    chosen = {
        "spark.master": settings.master,
        "spark.app.name": settings.app_name,
        "spark.driver.memory": settings.driver_memory,
        "spark.ui.enabled": "true" if settings.ui else "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "tables"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.scheduler.mode": "FAIR",
        # Spark forgets what jobs left behind only once it is collected, which a large heap puts off.
        "spark.cleaner.periodicGC.interval": "2min",
        # PySpark would otherwise walk the Python stack for every column expression.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        **MEANING,
    }
    if settings.is_local:
        # No other machine has business with a driver that does all the work itself.
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if not settings.master.startswith("local-cluster"):
            # Nor other users of this machine: Spark makes up a secret for itself here.
            chosen["spark.authenticate"] = "true"
        if settings.quick_start:
            jvm += QUICK_JVM
    chosen["spark.driver.extraJavaOptions"] = " ".join([*jvm, *HONEST_JVM])
    return chosen | dict(settings.extra)


def _configured(
    session: SparkSession, chosen: Mapping[str, str], settings: SparkSettings
) -> SparkSession:
    for name, value in chosen.items():
        session.conf.set(name, settings.extra.get(name, value))
    return session


def _make_default(session: SparkSession) -> None:
    jvm: Any = session._jvm
    java_session = session._jsparkSession
    SparkSession._instantiatedSession = session
    java_class = SparkSession._get_j_spark_session_class(jvm)
    java_class.setDefaultSession(java_session)
    java_class.setActiveSession(java_session)


def _stop_jvm() -> None:
    """PySpark keeps its JVM until this process ends; we end it with the context that needed it."""
    gateway: Any = SparkContext._gateway
    SparkContext._gateway = None
    SparkContext._jvm = None
    if gateway is None:
        return
    process: subprocess.Popen[bytes] | None = gateway.proc
    gateway.shutdown()
    if process is None or process.stdin is None:
        return
    process.stdin.close()  # the JVM ends when its input does
    try:
        process.wait(JVM_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def is_not_py4js(record: logging.LogRecord) -> bool:
    """Whether somebody else than py4j wrote it: when a JVM dies in the middle of a call, py4j writes the
    trace into the root's log, past its own logger. Who called is told by an error."""
    return "py4j" not in Path(record.pathname).parts


def _log_file(folder: Path) -> Path:
    return folder / "spark.log"


def _log_tail(folder: Path) -> str:
    """The end of what the JVM said, without stack traces and warnings."""
    try:
        lines = _log_file(folder).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    noise = re.compile(
        r"\s*$|\s+at |\s+\.\.\. |.* (WARN|INFO) |WARNING:|Setting default log|To adjust"
    )
    said = [line for line in lines if not noise.match(line)]
    return "\n".join(said[-LOG_TAIL_LINES:])
