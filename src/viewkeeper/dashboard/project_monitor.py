"""One moment of a project: everything a page shows at once, from one entry of the ledger.

The figures are the document of ``viewkeeper status --json`` (`reports.status`); what is drawn comes beside.
"""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any

from viewkeeper.dashboard.audits import Audits
from viewkeeper.dashboard.batches import Batches
from viewkeeper.dashboard.descriptions import Descriptions
from viewkeeper.dashboard.source_watch import SourceWatch
from viewkeeper.project.config import ProjectConfig
from viewkeeper.project.open_project import unknown_view
from viewkeeper.project.settings import storage_of
from viewkeeper.reports.health import edge_verdict, of_run, of_view, seconds_of, source_verdict
from viewkeeper.reports.ledger_tail import LedgerTail, at_one_cut
from viewkeeper.reports.positions import position_text
from viewkeeper.reports.run_state import NOBODY_KEEPS, read_run_state
from viewkeeper.reports.standing import reached_by
from viewkeeper.reports.status import Observed, lag_seconds, status_of
from viewkeeper.warehouse import Entry

Document = dict[str, Any]

# How often the run's own words are read.
RUN_SECONDS = 0.3


class ProjectMonitor:
    """Watches one project: its ledger, its run, its sources. Thread-safe; close it."""

    def __init__(self, config: ProjectConfig) -> None:
        self.config = config
        self.storage = storage_of(config)
        self.batches = Batches()
        self.audits = Audits(config.folder)
        self.descriptions = Descriptions(config)
        self.sources = SourceWatch(config)
        self._tail = LedgerTail(self.storage)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._follow, name="run watch", daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self.sources.close()

    def _follow(self) -> None:
        """Batches come and go in a small file: read it also while no page is open, for the charts."""
        while not self._closed.wait(RUN_SECONDS):
            self.run()

    # -- what changes -----------------------------------------------------------------------------

    def run(self) -> Document:
        """The run's own words; its batches are remembered for the charts."""
        run = read_run_state(self.config.folder)
        self.batches.saw(run.get("batch"), run.get("at"))
        return run

    def pulse(self) -> object:
        """Equal while there is nothing new to show."""
        run = self.run()
        with self._lock:
            self._tail.refresh()
            latest = self._tail.latest
        entry = -1 if latest is None else latest.entry
        return entry, run["state"], run.get("at"), self.sources.states(), self.audits.revision

    def entries(self) -> list[Entry]:
        """The ledger's newest entries, oldest first."""
        with self._lock:
            self._tail.refresh()
            return list(self._tail.entries)

    # -- a moment ---------------------------------------------------------------------------------

    def moment(self) -> Document:
        """Everything at the ledger's newest entry."""
        self.sources.want()
        self.descriptions.want()
        seen = self._observed()
        latest, found = seen.latest, status_of(seen)
        for name, source in found["sources"].items():
            asked = self.batches.asked(name)
            source |= {
                "position_text": position_text(source["position"]),
                "queries": asked["queries"],
                "rows_fetched": asked["rows"],
                "verdict": source_verdict(source, seen.allowed_seconds.get(name, 0.0)),
            }
        texts = self.descriptions.texts()
        return found | {
            "now": seen.now.isoformat(timespec="milliseconds"),
            "oldest": 0 if latest is None else latest.oldest_txn,
            "entry": None if latest is None else latest.entry,
            "committed_at": None if latest is None else latest.committed_at.isoformat(),
            "health": of_run(seen.run).as_dict(),
            "waiting": seen.run.get("waiting") if seen.run["state"] == "waiting" else None,
            "views": {
                name: self._view(seen, found, name, texts.get(name))
                for name in dict.fromkeys((*texts, *seen.views))
            },
            "merge": seen.run.get("merge"),
        }

    def _observed(self) -> Observed:
        run = self.run()
        with self._lock:
            self._tail.refresh()
            latest = self._tail.latest
            known = {} if latest is None else latest.shown_views
            rows = {view: self._tail.rows(view) for view in known}
            damages = dict(self._tail.damages)
        if latest is not None:
            rows = at_one_cut(self.storage, latest, rows)
        is_kept = run["state"] not in NOBODY_KEEPS
        for name in self.config.sources:
            self.sources.stands(name, reached_by(name, latest, is_kept=is_kept))
        looks = {name: self.sources.look(name) for name in self.config.sources}
        now = dt.datetime.now(dt.UTC)
        return Observed(run, latest, looks, rows, now, damages, self.audits.all())

    def _view(self, seen: Observed, found: Document, name: str, text: str | None) -> Document:
        """A view's part of the status, with what the pages draw of it; also of one that is not loaded."""
        state = seen.views.get(name)
        stored, ending = (
            ("", "") if state is None else (state.definition.text, state.definition.ending)
        )
        current = text if text is not None else stored
        described = self.descriptions.of(name, current)
        declared = (described or {}).get("reaches", {})
        view = found["views"].get(name) or _not_loaded(seen)
        target = seconds_of((described or {}).get("settings", {}).get("freshness"))
        return view | {
            "level": view["level"] or declared.get("declared"),
            "protocol": view["protocol"] or declared.get("protocol"),
            "target_seconds": target,
            "health": of_view(seen.run, name, view, ending, target).as_dict(),
            "columns": None if state is None else len(state.schema.names),
            "in_folder": text is not None,
            "problem": self.descriptions.error(name) if described is None else None,
            "reads": [
                {
                    "source": source,
                    "relations": relations,
                    "behind_seconds": (figures := found["sources"][source])["behind_seconds"],
                    "verdict": edge_verdict(seen.run, figures, view["freshness_seconds"]),
                }
                for source, relations in self.descriptions.sources_of(name, current).items()
            ],
        }

    def incarnation_of(self, view: str) -> int | None:
        """Which filling of a view the warehouse has now."""
        latest = self.entries()[-1:]
        return latest[0].views[view].incarnation if latest and view in latest[0].views else None

    def known_view(self, name: str) -> str:
        """The name itself; raises UsageError when neither folder nor warehouse has such a view."""
        latest = self.entries()[-1:]
        known = {*self.descriptions.texts(), *(latest[0].shown_views if latest else ())}
        if name not in known:
            raise unknown_view(name, sorted(known))
        return name


def _not_loaded(seen: Observed) -> Document:
    """The figures of a view that is written and that no run has filled yet."""
    epoch = 0 if seen.latest is None else seen.latest.epoch
    nothing = dict.fromkeys(
        ("level", "protocol", "rows", "definition_version", "freshness_seconds", "audit", "error")
    )
    lag = lag_seconds(seen.latest, seen.now)
    return nothing | {"state": "not loaded", "epoch": epoch, "lag_seconds": lag}
