"""The way from `run` to a database server, which can be cut, slowed down or refused.

A proxy of our own: it needs no rights, works wherever Python does, and leaves the writers' way alone.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

CHUNK_BYTES = 16_384


class Way:
    """Forwards to ``target`` from an address of its own, which stays the same for its whole life.

    ``silent``: the cable is out; everything is taken, nothing arrives, nobody says goodbye.
    ``closed``: nobody is at home; connections are broken and new ones refused.
    ``delay_seconds``: each chunk of at most 16 KiB waits so long.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self.silent = threading.Event()
        self.closed = threading.Event()
        self.delay_seconds = 0.0
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._ending = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()[:2]
        threading.Thread(target=self._accept, daemon=True).start()

    def close_all(self) -> None:
        """Refuse from now on, and break what there is."""
        self.closed.set()
        self._break()

    def open_again(self) -> None:
        """As if nothing had been; what was connected through a silent way is gone."""
        if self.silent.is_set():
            self._break()
        self.silent.clear()
        self.closed.clear()
        self.delay_seconds = 0.0

    def __enter__(self) -> Way:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self._ending.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._break()

    def _break(self) -> None:
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads it
            each.close()

    def _accept(self) -> None:
        while not self._ending.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self.closed.is_set():
                    raise ConnectionRefusedError
                server = socket.create_connection(self._target, timeout=10)
                server.settimeout(None)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets |= {client, server}
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if self.delay_seconds:
                    self._ending.wait(self.delay_seconds)
                if not self.silent.is_set():
                    target.sendall(data)
        # Also after a reset: whoever is at the other end must not wait for the dead.
        if not self.silent.is_set():
            with suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)
