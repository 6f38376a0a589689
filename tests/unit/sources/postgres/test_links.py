from __future__ import annotations

import socket
import threading

import pytest

from viewkeeper.errors import SourceError
from viewkeeper.sources.postgres.connection import ArrowLink
from viewkeeper.sources.urls import parse_source_url


def test_a_server_that_is_away_leaves_no_threads_behind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # nobody listens there any more when we use it
    url = parse_source_url(f"postgresql://keeper@127.0.0.1:{port}/shop", "absent")
    for _ in range(3):
        with pytest.raises(SourceError) as caught:
            ArrowLink("absent", url)
        assert caught.value.retryable
    for thread in threading.enumerate():
        if thread.name == "absent-reader":
            thread.join(300)
            assert not thread.is_alive()
