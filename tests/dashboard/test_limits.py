"""What a client may cost the dashboard before anybody knows it: connections, bytes and time."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path

import pytest

from dashboard.serving import ask, dashboard
from viewkeeper.dashboard.limits import BODY_BYTES_MAX, HEAD_BYTES_MAX, LimitedProtocol

HALF = b"GET /api/overview HTTP/1.1\r\nHost: 127.0.0.1\r\n"
PATIENCE_SECONDS = 600


@pytest.fixture
def limited(project, monkeypatch):
    monkeypatch.setattr(LimitedProtocol, "connections_max", 20)
    with dashboard(project.folder, "a token") as running:
        yield running


def connected(server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS)


def is_dropped(client: socket.socket) -> bool:
    """Whether the server has ended the connection; waits for it."""
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize("sent", [b"", HALF[:10], HALF])
def test_300_unfinished_requests_keep_nobody_out(limited, sent, monkeypatch):
    monkeypatch.setattr(LimitedProtocol, "awaited_seconds_max", 3600.0)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(limited)) for _ in range(300)]
        for client in clients:
            with contextlib.suppress(ConnectionError):  # dropped to make room for another
                client.sendall(sent)
        assert ask(limited, "/api/session").document == {"open": False}
        assert is_dropped(clients[0])
        assert len(limited._server.server_state.connections) <= 21


@pytest.mark.parametrize(
    "sent", [b"", HALF, b"POST /api/login HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"]
)
def test_a_request_that_does_not_come_is_not_awaited_for_ever(limited, sent, monkeypatch):
    monkeypatch.setattr(LimitedProtocol, "awaited_seconds_max", 0.5)
    with connected(limited) as client:
        client.sendall(sent)
        assert is_dropped(client)


def test_a_byte_now_and_then_does_not_begin_the_time_again(limited, monkeypatch):
    monkeypatch.setattr(LimitedProtocol, "awaited_seconds_max", 1.0)
    deadline = time.monotonic() + PATIENCE_SECONDS
    with connected(limited) as client, contextlib.suppress(ConnectionError):
        client.sendall(HALF + b"X: ")
        while True:
            client.sendall(b"x")
            time.sleep(0.1)
            assert time.monotonic() < deadline


def test_who_does_not_take_an_answer_is_dropped(project, monkeypatch):
    monkeypatch.setattr(LimitedProtocol, "awaited_seconds_max", 1.0)
    with dashboard(project.folder) as server:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        client.connect(("127.0.0.1", server.port))
        deadline = time.monotonic() + PATIENCE_SECONDS
        with client, contextlib.suppress(ConnectionError):
            while True:  # asks for much, and reads nothing
                client.sendall(b"GET /static/app.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 100)
                assert time.monotonic() < deadline


def memory_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


@pytest.mark.parametrize("path", ["/api/login", "/api/overview", "/", "/api/lab/play"])
def test_a_huge_body_is_refused_and_costs_no_memory(limited, path):
    before = memory_bytes()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{limited.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
    block = b"x" * (1 << 20)
    with connected(limited) as client:
        client.sendall(head.encode())
        with contextlib.suppress(ConnectionError):
            for _ in range(256):
                client.sendall(b"%x\r\n%s\r\n" % (len(block), block))
        is_dropped(client)
    assert memory_bytes() - before < 64 << 20


def test_a_body_that_says_that_it_is_huge_is_refused_unread(limited):
    for length in (str(BODY_BYTES_MAX + 1), "9" * 30):
        head = f"POST /api/login HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
        with connected(limited) as client:
            client.sendall(head.encode())
            answer = client.recv(65536)
            assert answer.startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))
            assert is_dropped(client)
    assert ask(limited, "/api/login", "POST", "x" * BODY_BYTES_MAX).code == "wrong-token"


def test_a_huge_head_is_refused(limited):
    with connected(limited) as client, contextlib.suppress(ConnectionError):
        for _ in range(2 * HEAD_BYTES_MAX // 1000):
            client.sendall(b"X: " + b"x" * 1000 + b"\r\n" if _ else HALF)
        assert is_dropped(client)


def test_live_pages_are_counted(project, monkeypatch):
    monkeypatch.setattr("viewkeeper.dashboard.live.LISTENERS_MAX", 2)
    with dashboard(project.folder) as server, contextlib.ExitStack() as stack:
        for _ in range(2):
            client = stack.enter_context(connected(server))
            client.sendall(b"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            received = b""
            while b"retry" not in received:
                received += client.recv(65536)
        assert ask(server, "/api/events").code == "too-many-pages"
        assert json.loads(ask(server, "/api/session").body)["open"]
