"""What people ask of a running keeper: small files beside the project, one for each request.

A command that finds the warehouse held writes a file into ``.viewkeeper/requests``; the run that holds it
takes the file up within a second and writes its answer into the same file. Every write replaces the file
as a whole. The process that asked removes it; what it did not fetch is removed by a later run.
"""

from __future__ import annotations

import datetime as dt
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from viewkeeper.errors import UsageError, ViewkeeperError, WarehouseError
from viewkeeper.live.json_files import read_json, write_aside, write_json

FOLDER = ".viewkeeper/requests"
REBUILD, RELOAD, AUDIT, NOTE = "rebuild", "reload", "audit", "note"
ASKED, TAKEN, DONE, FAILED = "asked", "taken", "done", "failed"
POLL_SECONDS = 0.1
# A run looks for requests about twice a second, but not while it commits a large epoch.
TAKEN_SECONDS_MAX = 60.0
FORGOTTEN_SECONDS = 86_400.0


@dataclass(frozen=True)
class Request:
    """Rebuild some views, or all over a source; take the views as they are written now; compare
    some views, or all, with their sources; or note in the ledger that a source was passed up to a
    position."""

    kind: str
    views: tuple[str, ...] = ()
    source: str | None = None
    allow_setup: bool = False
    position: Mapping[str, Any] | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    status: str = ASKED
    answer: Mapping[str, Any] = field(default_factory=dict)
    at: str = field(default_factory=lambda: dt.datetime.now(dt.UTC).isoformat(timespec="seconds"))


class Requests:
    """The requests of one project."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER

    # -- for the run ------------------------------------------------------------------------------

    def waiting(self) -> list[Request]:
        """All that are not answered yet, oldest first: also those that a run took and then died."""
        found = sorted(self._all(), key=lambda request: (request.at, request.id))
        return [request for request in found if request.status in (ASKED, TAKEN)]

    def put(self, request: Request) -> None:
        """Write a request down; raises OSError where that is not possible."""
        write_json(self._path(request), asdict(request))

    def answer(self, request: Request, status: str, answer: Mapping[str, Any]) -> None:
        """Answer the process that asked; it may be waiting no more."""
        if self._path(request).exists():
            told = replace(request, status=status, answer=dict(answer))
            write_aside(self._path(request), asdict(told))

    def forget_old(self) -> None:
        """Remove what was never fetched; what can't be removed lies there for the next run."""
        for path in self._folder.glob("*.json"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > FORGOTTEN_SECONDS:
                    path.unlink(missing_ok=True)

    def _all(self) -> Iterator[Request]:
        for path in self._folder.glob("*.json"):
            found = self._read(path)
            if found is not None:
                yield found

    def _read(self, path: Path) -> Request | None:
        """None for what is no request: somebody else's file, or one that was just removed."""
        try:
            fields = read_json(path)
            request = Request(**(fields | {"views": tuple(map(str, fields["views"]))}))
        except (TypeError, KeyError):
            return None
        return request if self._path(request) == path else None

    def _path(self, request: Request) -> Path:
        return self._folder / f"{request.id}.json"

    def withdraw(self, request: Request) -> None:
        """No process waits for it any more."""
        self._path(request).unlink(missing_ok=True)

    # -- for the process that asks ------------------------------------------------------------------

    def ask_and_wait(
        self,
        request: Request,
        *,
        timeout_seconds: float,
        pause: Callable[[float], object] = time.sleep,
    ) -> Mapping[str, Any]:
        """Ask, wait for the answer, and give it; raises the error that the run met."""
        try:
            self.put(request)
        except OSError as error:
            raise _not_put(self._folder, error) from None
        started = time.monotonic()
        try:
            while True:
                found = self._read(self._path(request)) or request
                if found.status == DONE:
                    return found.answer
                if found.status == FAILED:
                    raise _as_error(found.answer)
                waited = time.monotonic() - started
                if found.status == ASKED and waited > min(TAKEN_SECONDS_MAX, timeout_seconds):
                    raise _not_taken(waited)
                if waited > timeout_seconds:
                    raise _not_done(waited)
                pause(POLL_SECONDS)
        finally:
            self.withdraw(request)


def _as_error(told: Mapping[str, Any]) -> ViewkeeperError:
    return ViewkeeperError(
        str(told.get("code", "request-failed")),
        str(told.get("message", "the running keeper could not do it")),
        detail=str(told.get("detail", "")),
        hint=str(told.get("hint", "")),
    )


def _not_put(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        "can-not-write",
        f"can't write a request for the run into {folder}",
        detail=error.strerror or str(error),
        hint="make room there, or ask as a user who may write to it",
    )


def _not_taken(seconds: float) -> WarehouseError:
    return WarehouseError(
        "request-not-taken",
        "another process holds the warehouse and does not answer",
        detail=f"waited {seconds:.0f} s; only `viewkeeper run` of this very project folder answers",
        hint="stop it and try again",
    )


def _not_done(seconds: float) -> UsageError:
    return UsageError(
        "request-not-done",
        "the running keeper has not finished in time",
        detail=f"waited {seconds:.0f} s; it goes on by itself",
        hint="`viewkeeper status` and `history` tell when it is done; --timeout waits longer",
    )
