"""A dashboard that really listens, and requests to it without a browser."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

from viewkeeper.dashboard.server import DashboardServer
from viewkeeper.project.config import read_project


class Answer:
    """Status, headers and the JSON in it."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.document["error"]["code"])


def dashboard(folder: Path, token: str | None = None) -> DashboardServer:
    """On any free port of loopback; use it in a ``with``."""
    return DashboardServer(read_project(folder), port=0, token=token)


def ask(
    server: DashboardServer,
    path: str,
    method: str = "GET",
    body: str | None = None,
    **headers: str,
) -> Answer:
    """One request; names of headers with underscores for hyphens."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, sent)
        return Answer(connection.getresponse())
    finally:
        connection.close()
