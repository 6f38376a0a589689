"""Servers that are not what they should be: they ask for the password in a form that they could read.

Each listens on loopback, plays the first messages of its protocol, and keeps every byte that it was sent.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from typing import Any

SALT = b"12345678abcdefghijkl"
SSL_CODES = {80877103, 80877104}  # TLS and GSSAPI are asked for before anything else

_CLIENT_SSL, _CAPABILITIES = 0x800, 0x000F_A2FF | 0x0008_0000 | 0x0020_0000
_OK = b"\x00\x00\x00\x02\x00\x00\x00"


class RogueServer:
    """Use it in a ``with``; ``heard`` is what all clients have sent."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.heard = bytearray()
        self.visits = 0

    def __enter__(self) -> Any:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = self._listener.accept()
                threading.Thread(target=self._visit, args=(link,), daemon=True).start()

    def _visit(self, link: socket.socket) -> None:
        self.visits += 1
        # What is no answer to what was asked, ends the visit.
        with contextlib.suppress(OSError, EOFError, struct.error), link:
            self.serve(link)

    def serve(self, link: socket.socket) -> None:
        raise NotImplementedError

    def _exactly(self, link: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = link.recv(size - len(data))
            if not piece:
                raise EOFError
            self.heard += piece
            data += piece
        return data

    def _rest(self, link: socket.socket) -> None:
        while piece := link.recv(4096):
            self.heard += piece


class RoguePostgres(RogueServer):
    """Asks for the password by method ``asks``: cleartext, md5, or nothing at all."""

    def __init__(self, asks: str) -> None:
        super().__init__()
        self._asks = asks

    def serve(self, link: socket.socket) -> None:
        while True:
            size, code = struct.unpack("!II", self._exactly(link, 8))
            self._exactly(link, size - 8)
            if code not in SSL_CODES:
                break
            link.sendall(b"N")
        methods = {"cleartext": struct.pack("!I", 3), "md5": struct.pack("!I", 5) + b"salt"}
        said = methods.get(self._asks, struct.pack("!I", 0))
        link.sendall(b"R" + struct.pack("!I", len(said) + 4) + said)
        self._rest(link)


class RogueMariaDB(RogueServer):
    """Greets with one method, then switches to another; may ask for a file once somebody is in."""

    def __init__(
        self,
        *,
        greets: str = "mysql_native_password",
        switches: str = "",
        prompt: bytes = b"",
        file: str = "",
        context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__()
        self._greets, self._switches, self._prompt = greets, switches, prompt
        self._file, self._context = file, context

    def serve(self, link: socket.socket) -> None:
        self._send(link, 0, self._greeting())
        answer = self._packet(link)
        number = 2
        if self._context is not None and struct.unpack("<I", answer[:4])[0] & _CLIENT_SSL:
            link = self._context.wrap_socket(link, server_side=True)
            self._packet(link)
            number = 3
        if self._switches:
            data = self._prompt or SALT + b"\0"
            self._send(link, number, b"\xfe" + self._switches.encode() + b"\0" + data)
            self._packet(link)
            number += 2
        self._send(link, number, _OK)
        while self._file:
            self._packet(link)
            self._send(link, 1, b"\xfb" + self._file.encode())
        self._rest(link)

    def _greeting(self) -> bytes:
        able = _CAPABILITIES | (_CLIENT_SSL if self._context is not None else 0)
        return (
            b"\x0a10.11.6-MariaDB\0"
            + struct.pack("<I", 7)
            + SALT[:8]
            + b"\0"
            + struct.pack("<HBHHB", able & 0xFFFF, 45, 2, able >> 16, len(SALT) + 1)
            + bytes(10)
            + SALT[8:]
            + b"\0"
            + self._greets.encode()
            + b"\0"
        )

    def _packet(self, link: socket.socket) -> bytes:
        head = self._exactly(link, 4)
        return self._exactly(link, head[0] | head[1] << 8 | head[2] << 16)

    def _send(self, link: socket.socket, number: int, payload: bytes) -> None:
        link.sendall(struct.pack("<I", len(payload))[:3] + bytes([number]) + payload)
