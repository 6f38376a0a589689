"""Open cuts give way to an owner who waits to change one of their tables.

A cut's transaction keeps the definitions of the tables that it has read until it ends: going back to a savepoint does
not let them go while the server keeps a binary log (measured on 10.11). An owner's ALTER TABLE waits for that, and
every new reader of the table waits behind the owner. So, while cuts are open, it is tried again and again whether a
reader of their tables would have to wait. If so, the cuts that have the table open are ended. Their questions fail
with ``cut-overtaken``, and are asked again at a new cut, behind the owner's change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

import pymysql

from viewkeeper.errors import SourceError
from viewkeeper.sources.mariadb.connection import Link, rows

# How often it is tried, and so how long an owner waits at most, but for what the server needs to end a question.
LOOK_SECONDS = 0.05


class OpenCut(Protocol):
    """A cut that can be ended from another thread."""

    relations: tuple[str, ...]
    # What the server calls its connection.
    thread_number: int

    def give_way(self, relation: str) -> None:
        """It is about to be ended, because this relation is to be changed."""


class GivingWay:
    """Watches the open cuts of one source, with a thread and a connection while there are some."""

    def __init__(self, connect: Callable[[], Link], is_wanted: Callable[[Link, str], bool]) -> None:
        """``is_wanted``: whether an owner waits to change a relation."""
        self._connect, self._is_wanted = connect, is_wanted
        self._lock = threading.Condition()
        self._open: dict[int, OpenCut] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def watch(self, cut: OpenCut) -> None:
        with self._lock:
            self._open[cut.thread_number] = cut
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._work, daemon=True, name="giving-way")
                self._thread.start()
            self._lock.notify()

    def forget(self, cut: OpenCut) -> None:
        with self._lock:
            self._open.pop(cut.thread_number, None)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lock.notify()

    def _work(self) -> None:
        link: Link | None = None
        while self._await_cuts():
            try:
                link = link if link is not None and link.open else self._connect()
                self._look(link)
            except (SourceError, pymysql.MySQLError, OSError):
                # The cuts have links of the same kind, and find out by themselves.
                _close(link)
                link = None
        _close(link)

    def _await_cuts(self) -> bool:
        """Wait until cuts have been open for a moment; False at the end."""
        with self._lock:
            while not self._open and not self._closed:
                self._lock.wait()
            self._lock.wait_for(lambda: self._closed, LOOK_SECONDS)
            return not self._closed

    def _look(self, link: Link) -> None:
        with self._lock:
            cuts = tuple(self._open.values())
        for relation in _relations(cuts):
            if self._is_wanted(link, relation):
                for cut in cuts:
                    if relation in cut.relations:
                        self._end(link, cut, relation)

    def _end(self, link: Link, cut: OpenCut, relation: str) -> None:
        cut.give_way(relation)
        self.forget(cut)
        # A user may end connections of the same user without any right.
        with suppress(pymysql.MySQLError):  # it has ended by itself
            rows(link, f"KILL CONNECTION {cut.thread_number:d}")


def _close(link: Link | None) -> None:
    if link is not None:
        link._force_close()


def _relations(cuts: Iterable[OpenCut]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(relation for cut in cuts for relation in cut.relations))
