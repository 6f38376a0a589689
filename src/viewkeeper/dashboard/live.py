"""Live pages: one loop looks for news while somebody listens, and hands every moment to all.

Server-sent events: one direction, plain HTTP, and browsers connect again by themselves.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool

PULSE_SECONDS = 0.5
# A moment goes out so often also without news: lags grow, and a reader sees that we are alive.
REPEAT_PULSES = 4
# Each keeps a connection for as long as its page is open.
LISTENERS_MAX = 48


class Live:
    """Moments for those who listen. ``pulse`` is cheap and changes with the news."""

    def __init__(self, pulse: Callable[[], object], moment: Callable[[], dict[str, Any]]) -> None:
        self._pulse = pulse
        self._moment = moment
        # None ends a stream.
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._loop: asyncio.Task[None] | None = None

    @property
    def is_full(self) -> bool:
        return len(self._listeners) >= LISTENERS_MAX

    async def events(self) -> AsyncIterator[str]:
        """One listener's stream: the moment there is now, then each new one."""
        mailbox: asyncio.Queue[str | None] = asyncio.Queue(maxsize=1)
        self._listeners.add(mailbox)
        if self._loop is None or self._loop.done():
            self._loop = asyncio.create_task(self._look())
        try:
            yield "retry: 1000\n\n" + await self._message()
            while (message := await mailbox.get()) is not None:
                yield message
        finally:
            self._listeners.discard(mailbox)

    def close(self) -> None:
        """End all streams: they never end by themselves."""
        for mailbox in self._listeners:
            _replace(mailbox, None)

    async def _look(self) -> None:
        seen: object = None
        quiet = 0
        while self._listeners:
            found = await run_in_threadpool(self._pulse)
            quiet += 1
            if found != seen or quiet >= REPEAT_PULSES:
                seen, quiet = found, 0
                message = await self._message()
                for mailbox in self._listeners:
                    _replace(mailbox, message)
            await asyncio.sleep(PULSE_SECONDS)

    async def _message(self) -> str:
        moment = await run_in_threadpool(self._moment)
        return f"event: moment\ndata: {json.dumps(moment, ensure_ascii=False, default=str)}\n\n"


def _replace(mailbox: asyncio.Queue[str | None], message: str | None) -> None:
    """A slow reader gets the newest moment, not all that he missed."""
    if mailbox.full():
        mailbox.get_nowait()
    mailbox.put_nowait(message)
