"""How the sources are, looked after in the background while somebody watches.

One thread per source, so that one that hangs holds no other up. Nothing is asked of a source that no
page shows.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from viewkeeper.errors import SourceError, UsageError, ViewkeeperError
from viewkeeper.project.config import ProjectConfig, SourceConfig
from viewkeeper.project.open_project import opened_source
from viewkeeper.reports.status import look_at, unreachable
from viewkeeper.sources.interface import Position, Source

EVERY_SECONDS = 2.0
# Somebody who has not asked for so long has gone.
INTEREST_SECONDS = 30.0
# A look that takes longer means that the source does not answer.
SILENT_SECONDS = 6.0


class SourceWatch:
    """The last look at every source. Close it to end its threads."""

    def __init__(self, config: ProjectConfig) -> None:
        self._config = config
        self._closed = threading.Event()
        self._wanted = threading.Event()
        self._wanted_until = 0.0
        # What was found, and when (on the monotonic clock).
        self._looks: dict[str, tuple[dict[str, Any], float]] = {}
        self._kinds: dict[str, str] = {}
        # Where views stand at each.
        self._reached: dict[str, list[Position]] = {}
        self._well_at: dict[str, float] = {}
        self._started: float | None = None
        self._lock = threading.Lock()

    def want(self) -> None:
        """Somebody is looking: keep the figures fresh for a while."""
        with self._lock:
            self._wanted_until = time.monotonic() + INTEREST_SECONDS
            first, self._started = self._started is None, self._started or time.monotonic()
        self._wanted.set()
        if first:
            for source in self._config.sources.values():
                threading.Thread(target=self._watch, args=(source,), daemon=True).start()

    def stands(self, name: str, reached: list[Position]) -> None:
        """Say where views stand at a source: how far they are behind is counted from the newest."""
        self._reached[name] = reached

    def close(self) -> None:
        self._closed.set()
        self._wanted.set()

    def look(self, name: str) -> dict[str, Any]:
        """As `reports.status.look_at` says it, with the source's kind and since when it is not heard of."""
        now = time.monotonic()
        kind = {"kind": self._kinds.get(name)}
        look = self._looks.get(name)
        begun = self._started if self._started is not None else now
        since = now - (look[1] if look is not None else begun)
        if since > SILENT_SECONDS and now < self._wanted_until:
            found = unreachable(_silent(name))
        elif look is None:
            return kind | {"state": "not looked at yet", "lag_seconds": None}
        else:
            found = look[0]
        unseen = {"unseen_seconds": self._unseen(name)} if "error" in found else {}
        return kind | found | unseen

    def states(self) -> tuple[tuple[str, str], ...]:
        """Which source is in which state: changes when there is news."""
        return tuple((name, self.look(name)["state"]) for name in self._config.sources)

    def _unseen(self, name: str) -> float:
        begun = self._started if self._started is not None else time.monotonic()
        return round(time.monotonic() - self._well_at.get(name, begun), 1)

    def _watch(self, config: SourceConfig) -> None:
        source: Source | None = None
        while not self._closed.is_set():
            try:
                if source is None:
                    source = opened_source(config)
                    self._kinds[config.name] = source.kind
                found = look_at(source, self._reached.get(config.name, []))
                self._well_at[config.name] = time.monotonic()
            except (SourceError, UsageError) as error:
                found = unreachable(error)
                _close(source)
                source = None
            self._looks[config.name] = found, time.monotonic()
            self._closed.wait(EVERY_SECONDS)
            if time.monotonic() > self._wanted_until:
                self._wanted.clear()
                # Asked for between the two lines: then it is set again, or the time has moved on.
                if time.monotonic() > self._wanted_until:
                    self._wanted.wait()
        _close(source)


def _silent(name: str) -> SourceError:
    return SourceError(
        "source-silent",
        f"source {name} does not answer",
        source=name,
        retryable=True,
        hint="it is asked again; look at the server and at the way to it",
    )


def _close(source: Source | None) -> None:
    """A new one is opened at the next look: a link that failed once is not trusted again."""
    if source is not None:
        try:
            source.close()
        except ViewkeeperError:
            return
