"""Serving the dashboard: in front until Ctrl-C, or in a thread; for a run, see `beside`."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator

import uvicorn

from viewkeeper.dashboard.access import Access
from viewkeeper.dashboard.app import dashboard_app
from viewkeeper.dashboard.limits import HEAD_BYTES_MAX, LimitedProtocol
from viewkeeper.dashboard.live import Live
from viewkeeper.errors import UsageError
from viewkeeper.project.config import ProjectConfig

PORT = 8642
# What is still being answered then is cut.
GOODBYE_SECONDS = 2


class DashboardServer:
    """Listens from the start, so that ``url`` is good; serve it with `run`, or in a ``with``."""

    def __init__(
        self,
        config: ProjectConfig,
        host: str = "127.0.0.1",
        port: int = PORT,
        token: str | None = None,
    ) -> None:
        self.access = Access.listening_on(host, token)
        self._socket = _listening(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        app = dashboard_app(config, self.access)
        settings = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GOODBYE_SECONDS,
            http=LimitedProtocol,
            ws="none",
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        )
        self._server = _Server(settings, app.state.live)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where a browser finds it; a token stands behind the #, which browsers keep to themselves."""
        shown = "localhost" if self.host in ("0.0.0.0", "::") else self.host
        name = f"[{shown}]" if ":" in shown else shown
        mark = "" if self.access.token is None else f"#token={self.access.token}"
        return f"http://{name}:{self.port}/{mark}"

    def run(self) -> None:
        """Serve until Ctrl-C."""
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> DashboardServer:
        self._thread = threading.Thread(target=self.run, name="dashboard", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=10)


class _Server(uvicorn.Server):
    """Ends the live streams first, so that nothing has to be cut."""

    def __init__(self, settings: uvicorn.Config, live: Live) -> None:
        super().__init__(settings)
        self._live = live

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM end it in order, and that is no error to report."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        kept = {n: signal.signal(n, self.handle_exit) for n in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._live.close()
        await super().shutdown(sockets)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with contextlib.ExitStack() as stack:
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(64)
            stack.pop_all()  # it stays open only if all went well
            return listener
    except OSError as error:
        raise UsageError(
            "port-taken",
            f"can't listen on {host}, port {port}",
            detail=error.strerror or str(error),
            hint="choose another one with --port, or --port 0 for any",
        ) from None
