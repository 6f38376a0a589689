"""The log of a run: JSON lines, in a file that rotates or on stderr.

Every line has ``time``, ``level``, ``event`` and ``fields``. The events are those that the terminal and
``--json`` show, so all of them tell the same story; what modules of ours say by `logging` is an event
``note``. The project's secrets are masked wherever they turn up, in whoever's words.
"""

from __future__ import annotations

import datetime as dt
import logging
import logging.handlers
import sys
import traceback
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote

from viewkeeper.errors import UsageError, ViewkeeperError
from viewkeeper.run_events import Event, Noted, RunEvent, RunFailed, RunInterrupted, SourceWentAway
from viewkeeper.visible import json_text

STDERR = "-"
FILE_BYTES_MAX = 10 << 20
OLD_FILES_MAX = 5
MASK = "***"

_LEVELS: dict[type[RunEvent], int] = {
    SourceWentAway: logging.WARNING,
    RunInterrupted: logging.WARNING,
    RunFailed: logging.ERROR,
}


class RunLog:
    """Open while a run goes on; tells of its end, also of one by an error."""

    def __init__(self, target: str, secrets: Iterable[str] = ()) -> None:
        """``target``: a file, or `STDERR`. Raises UsageError where the file can't be written."""
        self._logger = logging.getLogger("viewkeeper")
        self._handler = _handler(target)
        self._handler.setFormatter(JsonLines(secrets))
        self._level = self._logger.level

    def __enter__(self) -> RunLog:
        self._logger.addHandler(self._handler)
        self._logger.setLevel(logging.INFO)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        match error:
            case ViewkeeperError():
                self.on_event(RunFailed(error.as_dict()))
            case KeyboardInterrupt():
                self.on_event(RunInterrupted())
            case Exception():
                told = {"code": type(error).__name__, "message": str(error)}
                lines = traceback.format_exception(error)
                self.on_event(RunFailed(told, "".join(lines)))
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._level)
        self._handler.close()

    def on_event(self, event: RunEvent) -> None:
        level = _LEVELS.get(type(event), logging.INFO)
        self._logger.log(level, event.name, extra={"event": event})


class JsonLines(logging.Formatter):
    """A record as one line of the schema above."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        # Also as URLs write them; the longest first, for one may be a part of another.
        forms = {form for secret in secrets if secret for form in (secret, quote(secret, safe=""))}
        self._secrets = sorted(forms, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        event = getattr(record, "event", None)
        if not isinstance(event, Event):
            trace = self.formatException(record.exc_info) if record.exc_info else None
            event = Noted(record.name, record.getMessage(), trace)
        moment = dt.datetime.fromtimestamp(record.created, dt.UTC)
        line = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": event.name,
            "fields": self._masked(event.as_fields()),
        }
        return json_text(line, default=lambda value: self._masked(str(value)))

    def _masked(self, value: Any) -> Any:
        match value:
            case str():
                for secret in self._secrets:
                    value = value.replace(secret, MASK)
                return value
            case Mapping():
                return {self._masked(str(k)): self._masked(v) for k, v in value.items()}
            case list() | tuple() | set() | frozenset():
                return [self._masked(each) for each in value]
        return value


class _OnDisk(logging.handlers.RotatingFileHandler):
    """Says once that the log can't be written, instead of a traceback for every line; goes on trying."""

    _is_told = False

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not self._is_told and sys.stderr is not None:
            self._is_told = True
            sys.stderr.write(f"can't write the log {self.baseFilename}: {error}; the run goes on\n")


def _handler(target: str) -> logging.Handler:
    if target == STDERR:
        return logging.StreamHandler(sys.stderr)
    try:
        return _OnDisk(target, maxBytes=FILE_BYTES_MAX, backupCount=OLD_FILES_MAX, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            "can-not-write",
            f"can't write the log {target}",
            detail=error.strerror or str(error),
            hint="choose a file in a folder that exists and that you may write to",
        ) from None
