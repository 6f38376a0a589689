"""A TCP proxy that can fall silent: the cable is out, and nobody says goodbye."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards to ``target`` until `silence`; afterwards it takes everything and answers nothing."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._silent = threading.Event()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> None:
        self._silent.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            self._sockets += [client, server]
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if not self._silent.is_set():
                    target.sendall(data)
            if not self._silent.is_set():
                target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads it
            each.close()
