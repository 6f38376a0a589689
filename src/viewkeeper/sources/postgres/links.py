"""The connections of one source: one for small questions, some for cuts, replaced when they die."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from viewkeeper.errors import SourceError
from viewkeeper.sources.postgres.connection import ANSWER_SECONDS_MAX, ArrowLink, Control
from viewkeeper.sources.urls import SourceUrl

# Connections for cuts that are kept open between them: connecting costs far more than a cut.
IDLE_LINKS_MAX = 4
# What a feed waits for while it reads nothing: no longer than for a sign of life from its stream.
LOOK_SECONDS_MAX = 6.0


class Links:
    """May be used from several threads; connects when it is first asked something."""

    def __init__(self, source: str, url: SourceUrl) -> None:
        self._source, self._url = source, url
        self._lock = threading.RLock()
        self._control: Control | None = None
        self._idle: list[ArrowLink] = []
        self._closed = False

    def ask(
        self,
        sql: str,
        parameters: Sequence[Any] = (),
        seconds_max: float = ANSWER_SECONDS_MAX,
    ) -> list[tuple[Any, ...]]:
        """A small question; every one of ours can be asked twice, so a stale link does not matter."""
        control = self._current()
        try:
            return control.ask(sql, parameters, seconds_max)
        except SourceError:
            if not control.closed:
                raise
        return self._current().ask(sql, parameters, seconds_max)

    def look(self, sql: str) -> list[tuple[Any, ...]]:
        """A question that is asked again and again anyway: a link that is silent is noticed soon."""
        return self._current().ask(sql, (), LOOK_SECONDS_MAX)

    def _current(self) -> Control:
        with self._lock:
            if self._control is None or self._control.closed:
                self._control = Control(self._source, self._url)
            return self._control

    def hasten(self) -> None:
        """Have the log written out up to now, so that the feed reaches a cut's bound soon.

        With asynchronous commits that could take wal_writer_delay, and on a quiet server for ever.
        """
        try:
            self.ask(
                "SET synchronous_commit = local; "
                "SELECT pg_logical_emit_message(true, 'viewkeeper', '')"
            )
        except SourceError as error:
            if error.retryable:
                raise

    def lend(self) -> ArrowLink:
        """A connection for one cut; `take_back` wants it again."""
        with self._lock:
            link = self._idle.pop() if self._idle else None
        return link if link is not None else ArrowLink(self._source, self._url)

    def prepare(self) -> None:
        """Have a connection ready for the next cut: the thread that opens it need not wait."""
        with self._lock:
            is_ready = bool(self._idle) or self._closed
        if not is_ready:
            self._keep(ArrowLink(self._source, self._url))

    def take_back(self, link: ArrowLink) -> None:
        try:
            link.run("ROLLBACK")
        except SourceError:
            link.broken = True
        self._keep(link)

    def _keep(self, link: ArrowLink) -> None:
        with self._lock:
            keep = not (self._closed or link.broken or len(self._idle) >= IDLE_LINKS_MAX)
            if keep:
                self._idle.append(link)
        if not keep:
            link.close()

    def forget_idle(self) -> None:
        """After one turned out to be dead: the others that were idle with it are no better."""
        with self._lock:
            links, self._idle = self._idle, []
        for link in links:
            link.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            control, self._control = self._control, None
        self.forget_idle()
        if control is not None:
            control.close()
