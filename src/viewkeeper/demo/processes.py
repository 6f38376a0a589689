"""What the demo starts and must end: the servers, and ``viewkeeper`` itself in separate processes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

from viewkeeper.demo.interruption import Interruption
from viewkeeper.demo.scenery import SERVERS, Scene, script_of
from viewkeeper.errors import ViewkeeperError
from viewkeeper.run_events import RunEvent, event_from_dict
from viewkeeper.testing.postgres import EmbeddedPostgres

KILLED_SECONDS = 1.0
STOP_SECONDS_MAX = 60.0


class Servers:
    """The PostgreSQL servers, starting side by side in the background."""

    def __init__(self, interruption: Interruption) -> None:
        self._pool = ThreadPoolExecutor(len(SERVERS))
        with interruption.deferred():
            self._starting: dict[str, Future[EmbeddedPostgres]] = {
                source: self._pool.submit(_started, source) for source in SERVERS
            }

    def urls(self) -> dict[str, str]:
        """Wait until all are there; raises what kept one from starting."""
        return {source: future.result().url() for source, future in self._starting.items()}

    def stop(self) -> None:
        """End those that started, side by side, and remove their folders."""
        self._pool.shutdown(wait=True)
        with ThreadPoolExecutor(len(SERVERS)) as pool:
            for future in self._starting.values():
                if future.exception() is None:
                    pool.submit(future.result().stop)


def _started(source: str) -> EmbeddedPostgres:
    server = EmbeddedPostgres()
    try:
        server.run_script(script_of(source))
    except BaseException:
        server.stop()
        raise
    return server


class Command:
    """``python -m viewkeeper … --json`` on the scene's project, in its own session.

    So Ctrl-C reaches the demo alone, which ends the command in order, and kill −9 takes everything
    that the command started with it. Its temporary files lie in the scene's scratch folder.
    """

    def __init__(self, scene: Scene, *words: str) -> None:
        self.words = words
        self.documents: queue.Queue[dict[str, Any] | None] = queue.Queue()
        command = [sys.executable, "-m", "viewkeeper", *words, "--json", "--project"]
        with (scene.scratch / "messages").open("ab") as messages:
            self._process = subprocess.Popen(
                [*command, str(scene.folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                start_new_session=True,
                env=os.environ | {"TMPDIR": str(scene.scratch.absolute())},
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        output: IO[str] | None = self._process.stdout
        if output is not None:
            with output:
                for line in output:
                    # A line that a kill cut in two is no document.
                    with contextlib.suppress(ValueError):
                        self.documents.put(json.loads(line))
        self.documents.put(None)

    def next_event(self, wait_seconds: float) -> RunEvent | None:
        """The next event; None when none came in time. Raises when the command ended or failed."""
        return event_from_dict(self.next_document(wait_seconds))

    def next_document(self, wait_seconds: float) -> dict[str, Any] | None:
        """The next line of its output, as `next_event`."""
        try:
            document = self.documents.get(timeout=max(wait_seconds, 0.0))
        except queue.Empty:
            return None
        if document is None or document.keys() == {"error"}:
            raise self._ended(document)
        return document

    def _ended(self, document: dict[str, Any] | None) -> ViewkeeperError:
        error = {} if document is None else document["error"]
        told = error.get("message", f"it ended with exit code {self._process.poll()}")
        return ViewkeeperError(
            "command-failed",
            f"viewkeeper {self.words[0]} failed in the demo: {told}",
            detail=error.get("detail", ""),
            hint=error.get("hint", ""),
        )

    def kill(self) -> None:
        """kill −9, at once, of the process and its JVM. Harmless when it has ended."""
        # The reader's end says that all are gone. A process was seen to outlive one signal to its group.
        is_gone = False
        while not is_gone:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._reader.join(KILLED_SECONDS)
            is_gone = not self._reader.is_alive()

    def stop(self) -> None:
        """End it in order; by force if it does not."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS_MAX)
        self.kill()
