"""One moment of a project: everything a page shows at once, from one entry of the ledger.

The figures are those of ``viewkeeper status --json`` under the same names; what is drawn comes beside.
"""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any

from viewkeeper.dashboard.audits import Audits
from viewkeeper.dashboard.batches import Batches
from viewkeeper.dashboard.descriptions import Descriptions
from viewkeeper.dashboard.health import (
    LATE_SECONDS,
    Health,
    lag_verdict,
    later,
    of_approval,
    of_audit,
    of_freshness,
    of_run,
    of_source,
    seconds_of,
    worst,
)
from viewkeeper.dashboard.ledger_tail import Chronicle, at_one_cut
from viewkeeper.dashboard.positions import position_text
from viewkeeper.dashboard.source_watch import SourceWatch
from viewkeeper.errors import UsageError
from viewkeeper.live.standing import age_seconds, allowances, approval_of, kept_state, reached_by
from viewkeeper.project.config import ProjectConfig
from viewkeeper.project.settings import storage_of
from viewkeeper.reports.run_state import NOBODY_KEEPS, read_run_state
from viewkeeper.warehouse import Entry

Document = dict[str, Any]

# How often the run's own words are read.
RUN_SECONDS = 0.3
# While a run goes and nothing is known to be missing, a source's feed is at most so far behind.
_NOTHING_MISSING = 0.0


class ProjectMonitor:
    """Watches one project: its ledger, its run, its sources. Thread-safe; close it."""

    def __init__(self, config: ProjectConfig) -> None:
        self.config = config
        self.storage = storage_of(config)
        self.batches = Batches()
        self.audits = Audits(config.folder)
        self.descriptions = Descriptions(config)
        self.sources = SourceWatch(config)
        self._chronicle = Chronicle(self.storage)
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
            self._chronicle.refresh()
            latest = self._chronicle.latest
        entry = -1 if latest is None else latest.entry
        return entry, run["state"], run.get("at"), self.sources.states(), self.audits.revision

    def entries(self) -> list[Entry]:
        """The ledger's newest entries, oldest first."""
        with self._lock:
            self._chronicle.refresh()
            return list(self._chronicle.entries)

    # -- a moment ---------------------------------------------------------------------------------

    def moment(self) -> Document:
        """Everything at the ledger's newest entry."""
        self.sources.want()
        self.descriptions.want()
        run = self.run()
        with self._lock:
            self._chronicle.refresh()
            latest = self._chronicle.latest
            known = {} if latest is None else latest.shown_views
            rows = {view: self._chronicle.rows(view) for view in known}
        if latest is not None:
            rows = at_one_cut(self.storage, latest, rows)
        now = dt.datetime.now(dt.UTC)
        positions = {} if latest is None else latest.positions
        standing = run.get("standing", {}) if run["state"] not in NOBODY_KEEPS else {}
        allowed = allowances(
            run, {name: view.positions or positions for name, view in known.items()}
        )
        is_kept = run["state"] not in NOBODY_KEEPS
        for name in self.config.sources:
            self.sources.stands(name, reached_by(name, latest, is_kept=is_kept))
        sources = {
            name: self._source(
                name,
                positions.get(name),
                standing.get("sources", {}).get(name),
                allowed.get(name, 0.0),
                now,
            )
            for name in self.config.sources
        }
        texts = self.descriptions.texts()
        names = dict.fromkeys((*texts, *known))
        return {
            "now": now.isoformat(timespec="milliseconds"),
            "state": run["state"],
            "frontier": 0 if latest is None else latest.last_txn,
            "oldest": 0 if latest is None else latest.oldest_txn,
            "epoch": 0 if latest is None else latest.epoch,
            "entry": None if latest is None else latest.entry,
            "committed_at": None if latest is None else latest.committed_at.isoformat(),
            "health": of_run(run).as_dict(),
            "waiting": run.get("waiting") if run["state"] == "waiting" else None,
            "approvals": standing.get("approvals", []),
            "sources": sources,
            "views": {
                name: self._view(name, texts.get(name), latest, rows.get(name), run, sources, now)
                for name in names
            },
            "last_batch": run.get("batch"),
            "merge": run.get("merge"),
        }

    def _source(
        self,
        name: str,
        position: Any,
        since: str | None,
        allowed_seconds: float,
        now: dt.datetime,
    ) -> Document:
        """``since``: when the oldest that the run has of it and does not show was committed."""
        found = self.sources.figures(name)
        asked = self.batches.asked(name)
        seconds = found.get("unseen_seconds", found.get("lag_seconds"))
        if since is not None:
            seconds = max(age_seconds(since, now), seconds or 0.0)
        late = None if seconds is None else max(0.0, seconds - allowed_seconds)
        return found | {
            "position": position,
            "position_text": position_text(position),
            "queries": asked["queries"],
            "rows_fetched": asked["rows"],
            "behind_seconds": seconds,
            "verdict": "bad" if "error" in found else _verdict(found["state"], late),
        }

    def _view(
        self,
        name: str,
        text: str | None,
        latest: Entry | None,
        rows: int | None,
        run: Document,
        sources: dict[str, Document],
        now: dt.datetime,
    ) -> Document:
        state = None if latest is None else latest.views.get(name)
        stored = "" if state is None else state.definition.text
        described = self.descriptions.of(name, text if text is not None else stored)
        reads = self.descriptions.sources_of(name, text if text is not None else stored)
        told = run["views"].get(name, {})
        target = seconds_of((described or {}).get("settings", {}).get("freshness"))
        fresh = _freshness(run, name, [sources[source] for source in reads], now)
        # What a periodic view does not show before it is due is not late.
        period = told.get("period_seconds")
        limit = period + LATE_SECONDS if target is None and period else target
        audit = later(self.audits.last(name), run.get("audits", {}).get(name))
        age = None if latest is None else round((now - latest.committed_at).total_seconds(), 1)
        declared = (described or {}).get("reaches", {})
        stopped = run.get("stopped_views", {}).get(name)
        approval = approval_of(run.get("standing", {}), name)
        health = worst(
            (
                of_source(stopped),
                of_audit(audit),
                of_approval(approval),
                of_run(run, view=name),
                of_freshness(fresh, limit),
            )
        )
        ending = "" if state is None else state.definition.ending
        if ending == "retired":
            health = Health("idle", "a schema change ended it; its last state stays readable")
        elif ending:
            health = Health(
                "bad", "its text does not fit a schema change: viewkeeper check tells more"
            )
        return {
            "state": ending
            if ending
            else kept_state(run, name)
            if state is not None
            else "not loaded",
            "level": told.get("level") or declared.get("declared"),
            "protocol": told.get("protocol") or declared.get("protocol"),
            "rows": rows,
            "epoch": 0 if latest is None else latest.epoch,
            "definition_version": None if state is None else state.definition_version,
            "lag_seconds": age,
            "freshness_seconds": fresh,
            "target_seconds": target,
            "health": health.as_dict(),
            "audit": audit,
            "columns": None if state is None else len(state.schema.names),
            "in_folder": text is not None,
            "problem": self.descriptions.error(name) if described is None else None,
            "reads": [
                {
                    "source": source,
                    "relations": relations,
                    "behind_seconds": sources[source]["behind_seconds"],
                    "verdict": _edge_verdict(run, sources[source], fresh),
                }
                for source, relations in reads.items()
            ],
        }

    def known_view(self, name: str) -> str:
        """The name itself; raises UsageError when neither folder nor warehouse has such a view."""
        latest = self.entries()[-1:]
        known = {*self.descriptions.texts(), *(latest[0].shown_views if latest else ())}
        if name not in known:
            raise UsageError(
                "unknown-view",
                f"the project has no view {name}",
                detail=f"its views are {', '.join(sorted(known)) or 'none yet'}",
            )
        return name


def _verdict(state: str, seconds: float | None) -> str:
    if state == "not looked at yet":
        return "idle"
    if state != "ok":
        return "warning"
    return lag_verdict(_NOTHING_MISSING if seconds is None else seconds)


def _edge_verdict(run: Document, source: Document, fresh: float | None) -> str:
    if source["verdict"] == "bad":
        return "bad"
    return lag_verdict(fresh) if run["state"] not in NOBODY_KEEPS else "idle"


def _freshness(run: Document, view: str, sources: list[Document], now: dt.datetime) -> float | None:
    """How old the oldest is that a view is known not to show; None while it is not kept.

    What the run has and does not show, what a source says is waiting, or since when one is not heard of.
    """
    if run["state"] in NOBODY_KEEPS:
        return None
    since = run.get("standing", {}).get("views", {}).get(view)
    known = [age_seconds(since, now), *(source["behind_seconds"] for source in sources)]
    return max(float(seconds) for seconds in known if seconds is not None)
