"""What each view is and asks, as ``explain`` tells it, also while a source is away.

Explaining needs the sources, to resolve names and types. What was found is kept in a file beside the
project, with the text that it belongs to: a page can be drawn at once, and with a source down.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from typing import Any

from viewkeeper.errors import UsageError, ViewkeeperError
from viewkeeper.live.json_files import read_json, write_json
from viewkeeper.project.config import ProjectConfig
from viewkeeper.project.keeper import Keeper
from viewkeeper.project.views_folder import view_texts
from viewkeeper.reports.check import relations_named
from viewkeeper.reports.explain import explained
from viewkeeper.sql.parser import parse_with_references
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ViewDefinition

FILE = ".viewkeeper/descriptions.json"
RETRY_SECONDS = 10.0


class Descriptions:
    """Descriptions by view, brought up to date in the background. Thread-safe."""

    def __init__(self, config: ProjectConfig) -> None:
        self._config = config
        self._path = config.folder / FILE
        self._lock = threading.Lock()
        self._kept: dict[str, dict[str, Any]] = read_json(self._path)
        self._errors: dict[str, dict[str, object]] = {}
        # Texts that were explained since we started; others are as an earlier run left them.
        self._explained: dict[str, str] = {}
        self._busy = False
        self._tried_at = -RETRY_SECONDS

    def texts(self) -> dict[str, str]:
        """The views' texts as they are in the folder now; empty where there are none."""
        try:
            return dict(view_texts(self._config.views_folder).texts)
        except UsageError:
            return {}

    def of(self, view: str, text: str) -> dict[str, Any] | None:
        """The description of this very text; None while it is not known."""
        with self._lock:
            kept = self._kept.get(view)
        return kept["document"] if kept is not None and kept["text"] == text else None

    def error(self, view: str) -> dict[str, object] | None:
        """Why the view could not be explained the last time."""
        with self._lock:
            return self._errors.get(view)

    def sources_of(self, view: str, text: str) -> dict[str, list[str]]:
        """The relations that a view reads, by source: as understood, or as its text names them."""
        known = self.of(view, text)
        understood = [] if known is None else [n.split(".", 1) for n in known["relations"]]
        found: dict[str, list[str]] = {}
        for source, relation in relations_named(text) if known is None else understood:
            if source in self._config.sources:
                found.setdefault(source, []).append(relation)
        return found

    def want(self) -> None:
        """Explain in the background what is not explained yet, if it was not tried just now."""
        texts = self.texts()
        with self._lock:
            soon = time.monotonic() - self._tried_at < RETRY_SECONDS
            if self._busy or soon or texts == self._explained:
                return
            self._busy, self._tried_at = True, time.monotonic()
        threading.Thread(target=self._explain, args=(texts,), daemon=True).start()

    def _explain(self, texts: Mapping[str, str]) -> None:
        try:
            with Keeper.open(self._config.folder) as keeper:
                catalog = keeper.catalog
                kinds = {name: keeper.source(name).kind for name in keeper.config.sources}
                kept = _kept_definitions(keeper)
            for view in texts:
                self._explain_one(view, texts, kept.get(view), catalog, kinds)
            with contextlib.suppress(OSError):  # a folder that can't be written to
                write_json(self._path, dict(self._kept))
        except ViewkeeperError as error:
            with self._lock:
                self._errors |= {view: error.as_dict() for view in texts}
        finally:
            with self._lock:
                self._busy = False

    def _explain_one(
        self,
        view: str,
        texts: Mapping[str, str],
        kept: ViewDefinition | None,
        catalog: Catalog,
        kinds: dict[str, str],
    ) -> None:
        text = texts[view]
        try:
            definition = kept or parse_with_references(view, text, catalog, texts)[0]
            document = explained(definition, kinds, text)
        except ViewkeeperError as error:
            with self._lock:
                self._errors[view] = error.as_dict()
                self._explained[view] = text
            return
        with self._lock:
            self._errors.pop(view, None)
            self._kept[view] = {"text": text, "document": document}
            self._explained[view] = text


def _kept_definitions(keeper: Keeper) -> dict[str, ViewDefinition]:
    """As a run would keep them; none when one of them is wrong, so that each is looked at alone."""
    try:
        return {name: view.definition for name, view in keeper.views.items()}
    except UsageError:
        return {}
