"""TLS in front of a PostgreSQL that was built without: the first bytes of its protocol, then plain copying."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from pathlib import Path

SSL_REQUEST = struct.pack("!II", 8, 80877103)


class TlsFront:
    """Listens on a port of its own and speaks to ``port`` behind it. Use it in a ``with``."""

    def __init__(self, port: int, certificate: Path, key: Path) -> None:
        self._behind = port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.encrypted = 0
        self._open: list[socket.socket] = []

    def __enter__(self) -> TlsFront:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for link in self._open:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if link.recv(8, socket.MSG_WAITALL) != SSL_REQUEST:
                link.close()  # whoever does not ask for TLS gets nothing
                return
            link.sendall(b"S")
            safe = self._context.wrap_socket(link, server_side=True)
            self.encrypted += 1
            behind = socket.create_connection(("127.0.0.1", self._behind))
            self._open += [safe, behind]
            threading.Thread(target=_copied, args=(behind, safe), daemon=True).start()
            _copied(safe, behind)


def _copied(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
