"""What one client may cost the dashboard, known or not: connections, bytes, and time to send or take them.

A connection that is awaited (its request has not come whole, or it does not take what it asked for) is dropped
after a while, however slowly it drips. When there are too many connections, the one goes that has been
awaited for longest: clients that never finish do not keep out those that do.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from viewkeeper.errors import UsageError

CONNECTIONS_MAX = 128
HEAD_BYTES_MAX = 32 << 10
BODY_BYTES_MAX = 64 << 10
# For a request's head, then for its body, then for taking a part of the answer.
AWAITED_SECONDS_MAX = 10.0


class LimitedProtocol(H11Protocol):
    """uvicorn's connection, which is not awaited for ever. (uvicorn's own timers begin after a request.)"""

    # Of tests.
    connections_max = CONNECTIONS_MAX
    awaited_seconds_max = AWAITED_SECONDS_MAX

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # What the client has still to do, since when, and what drops it.
        self._awaited: object = None
        self._awaited_since = 0.0
        self._dropper: asyncio.TimerHandle | None = None
        self._is_stalled = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()
        if len(self.connections) > self.connections_max:
            self._longest_awaited().drop()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._is_stalled = True
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._is_stalled = False
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._await(None)
        super().connection_lost(exc)

    def drop(self) -> None:
        """Not counted from here on: its end is reported later, and many connections may come first."""
        self._await(None)
        self.connections.discard(self)
        self.transport.abort()

    def _look(self) -> None:
        state = self.conn.their_state
        if self._is_stalled:
            self._await("taking")
        elif state in (h11.IDLE, h11.SEND_BODY):
            self._await(state)
        else:
            self._await(None)

    def _await(self, what: object) -> None:
        """Begin to count when something else is awaited: a byte now and then does not begin it again."""
        if what is self._awaited:
            return
        self._awaited = what
        if self._dropper is not None:
            self._dropper.cancel()
            self._dropper = None
        if what is not None and not self.transport.is_closing():
            self._awaited_since = self.loop.time()
            self._dropper = self.loop.call_later(self.awaited_seconds_max, self.drop)

    def _longest_awaited(self) -> LimitedProtocol:
        """Itself where all others are being answered."""
        others = [
            c for c in self.connections if isinstance(c, LimitedProtocol) and c._awaited is not None
        ]
        return min(others, key=lambda c: c._awaited_since, default=self)


class BodyLimit:
    """ASGI middleware: a body that is too large is refused before it is read, or where it becomes so."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        taken, has_begun, is_over = 0, False, False

        async def counted() -> Message:
            nonlocal taken, is_over
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > BODY_BYTES_MAX:
                is_over = True
                raise _too_large()
            return message

        async def closing(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                if is_over:  # what it still sends is not awaited
                    MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        declared = Headers(scope=scope).get("content-length", "0")
        is_over = not declared.isdecimal() or int(declared) > BODY_BYTES_MAX
        try:
            if is_over:
                raise _too_large()
            await self._app(scope, counted, closing)
        except UsageError as error:
            if error.code != "body-too-large" or has_begun:
                raise
            await JSONResponse({"error": error.as_dict()}, 413)(scope, receive, closing)


def _too_large() -> UsageError:
    return UsageError(
        "body-too-large",
        f"the dashboard takes no request of more than {BODY_BYTES_MAX:,} bytes",
    )
