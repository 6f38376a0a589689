"""Questions ahead of time: while a feed catches up with a cut, what the first batch needs is read already.

A batch can't be worked on before the feed has passed its cuts: what an answer reflects beyond the batch
must be known to be taken out of it. But the answers themselves are there for the asking as soon as the cuts
are open. So they are asked for as if nothing had to be taken out, and remembered; when the batch comes, its
own questions find at the same cuts most of what they need. What was guessed wrong is asked for then: a guess
changes how soon an answer comes, never what it is.

The next batch will be begun while the first one is worked on, with its own cuts: sources make ready for them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress

from viewkeeper.engine.integrator import Arrival
from viewkeeper.errors import ViewkeeperError
from viewkeeper.live.managers.live import LiveManager
from viewkeeper.live.questions.source_queries import AskedEnough, Questions
from viewkeeper.sources.interface import Source


class Prefetching:
    """Lets managers that have no other work ask for a batch in advance, in a separate thread."""

    def __init__(
        self,
        questions: Questions,
        managers: Iterable[LiveManager],
        batch: tuple[Arrival, ...],
        sources: Iterable[Source] = (),
    ) -> None:
        self._questions = questions
        self._managers, self._batch = tuple(managers), batch
        self._sources = tuple(sources)
        self._asking = threading.Thread(target=self._ask, name="prefetch", daemon=True)
        self._asking.start()
        threading.Thread(target=self._prepare, name="prefetch-cuts", daemon=True).start()

    def _ask(self) -> None:
        # The job itself asks the same, meets the same error, and handles it.
        with suppress(AskedEnough, ViewkeeperError):
            for manager in self._managers:
                manager.foresee(self._batch, self._questions)

    def _prepare(self) -> None:
        for source in self._sources:
            with suppress(ViewkeeperError):
                source.expect_cut()

    def end(self) -> None:
        """Ask no more; a question that is under way is waited for: its cut must not be closed."""
        self._questions.stop_asking()
        self._asking.join()
