"""Where the run, the sources and the views of a project stand: one document for ``status`` and for the dashboard.

`status_of` makes it, from what was `Observed` at one moment: the run's last words, one entry of the ledger, a look at each
source. ``viewkeeper status`` looks once, at all of it (`status_document`); the dashboard looks all the time, in the background.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from viewkeeper.errors import SourceError, UsageError, ViewkeeperError, WarehouseError
from viewkeeper.live.json_files import read_json
from viewkeeper.project.keeper import Keeper
from viewkeeper.project.security import security_of
from viewkeeper.project.settings import storage_of
from viewkeeper.reports.ledger_tail import at_one_cut, counted_rows
from viewkeeper.reports.run_state import NOBODY_KEEPS, read_run_state
from viewkeeper.reports.standing import (
    BEHIND,
    BEHIND_SECONDS,
    allowances,
    approval_of,
    approvals_of,
    behind_seconds,
    freshness_seconds,
    kept_state,
    period_of,
    reached_by,
    standing_in,
)
from viewkeeper.sources.interface import Position, Source, newest_of
from viewkeeper.warehouse import Entry, ViewState, Warehouse
from viewkeeper.warehouse.head import OLDER
from viewkeeper.warehouse.recovery import damages_of

Document = dict[str, Any]

# Verdicts of audits that somebody asked for on the dashboard, by view.
ASKED_AUDITS_FILE = ".viewkeeper/audits.json"


@dataclass(frozen=True)
class Observed:
    """What was found at one moment."""

    run: Mapping[str, Any]
    latest: Entry | None
    # By source, as `look_at` says it.
    looks: Mapping[str, Mapping[str, Any]]
    rows: Mapping[str, int | None]
    now: dt.datetime
    damages: Mapping[str, WarehouseError] = field(default_factory=dict)
    # The last audits that were asked for, beside those of the run.
    audits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def views(self) -> Mapping[str, ViewState]:
        return {} if self.latest is None else self.latest.shown_views

    @property
    def positions(self) -> Mapping[str, Position]:
        return {} if self.latest is None else self.latest.positions

    def reads(self, view: str) -> tuple[str, ...]:
        """The sources whose changes a view shows."""
        return tuple(self.views[view].positions or self.positions)

    @property
    def allowed_seconds(self) -> dict[str, float]:
        """By source, for how long its changes may wait for a periodic view."""
        return allowances(self.run, {name: self.reads(name) for name in self.views})


# -- the document ---------------------------------------------------------------------------------


def status_of(seen: Observed) -> Document:
    """The run, every source, and every view that the warehouse has. Pure."""
    run, latest, allowed = seen.run, seen.latest, seen.allowed_seconds
    sources = {
        name: _source(seen, name, look, allowed.get(name, 0.0)) for name, look in seen.looks.items()
    }
    return {
        "state": run["state"],
        "approvals": approvals_of(standing_in(run)),
        "frontier": 0 if latest is None else latest.last_txn,
        "epoch": 0 if latest is None else latest.epoch,
        "sources": sources,
        "views": {name: _view(seen, name) for name in seen.views},
        "last_batch": run.get("batch"),
    }


def _source(seen: Observed, name: str, look: Mapping[str, Any], allowed_seconds: float) -> Document:
    """A look at a source, with how far the views are behind it."""
    behind = behind_seconds(standing_in(seen.run), name, _lag(look), seen.now)
    is_late = behind is not None and behind > BEHIND_SECONDS + allowed_seconds
    is_behind = is_late and look["state"] == "ok"
    return dict(look) | {
        "state": BEHIND if is_behind else look["state"],
        "position": seen.positions.get(name),
        "behind_seconds": behind,
    }


def _lag(look: Mapping[str, Any]) -> float | None:
    """How far a source is ahead of what the run has of it; or since when it is not heard of."""
    lag: float | None = look.get("unseen_seconds", look["lag_seconds"])
    return lag


def _view(seen: Observed, name: str) -> Document:
    run, view, standing = seen.run, seen.views[name], standing_in(seen.run)
    told = run["views"].get(name, {})
    has_ended = view.definition.has_ended
    lags = [_lag(seen.looks[source]) for source in seen.reads(name) if source in seen.looks]
    fresh = None if has_ended else freshness_seconds(standing, name, seen.now, lags)
    approval = None if fresh is None else approval_of(standing, name)
    audit = last_audit(view, seen.audits.get(name), run.get("audits", {}).get(name))
    damage = seen.damages.get(name)
    latest = seen.latest
    return {
        "state": view_state(run, view, name),
        "freshness_seconds": fresh,
        "is_late": fresh is not None and fresh > BEHIND_SECONDS + period_of(run, name),
        "waits_for": None if approval is None else approval["id"],
        "error": run.get("stopped_views", {}).get(name),
        "damage": None if damage is None else damage.as_dict(),
        "audit": audit,
        "differs": audit is not None and audit["verdict"] == "different",
        "rebuilt": view.definition.rebuilt,
        "level": told.get("level"),
        "declared": told.get("declared"),
        "protocol": told.get("protocol"),
        "why": told.get("why", []),
        "rows": seen.rows.get(name),
        "epoch": 0 if latest is None else latest.epoch,
        "definition_version": view.definition_version,
        "lag_seconds": lag_seconds(latest, seen.now),
    }


def lag_seconds(latest: Entry | None, now: dt.datetime) -> float | None:
    """How long ago the warehouse changed last."""
    return None if latest is None else round((now - latest.committed_at).total_seconds(), 1)


def view_state(run: Mapping[str, Any], view: ViewState, name: str) -> str:
    if view.definition.has_ended:
        return str(view.definition.ending)
    # A view that can't go on stays so until a run has done something about it, also when none goes.
    if name in run.get("stopped_views", {}):
        return "stopped by its source"
    return kept_state(run, name)


def last_audit(view: ViewState, *audits: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The newest of some audits of a view; one that goes on now is newer than all.

    What was found before the view was filled again says nothing of it.
    """
    current = (None, view.incarnation)
    found = [each for each in audits if each is not None and each.get("incarnation") in current]
    return max(found, key=lambda each: str(each.get("at", "9999")), default=None)


def problems_of(found: Mapping[str, Any]) -> list[str]:
    """Why not all is well, each in a sentence; empty when it is. Pure."""
    told = []
    if found["state"] not in ("running", "waiting") or (
        found["state"] == "waiting" and not found["approvals"]
    ):
        told.append(f"the run is not running: {found['state']}")
    for change in found["approvals"]:
        told.append(
            f"a change of {change['source']}.{change['relation']} waits for your word "
            f"({change['status']}), and {', '.join(change['views'])} with it: "
            f"viewkeeper evolve shows it, then --approve {change['id']}"
        )
    for name, source in found["sources"].items():
        if source["state"] == BEHIND:
            told.append(f"source {name} is {source['behind_seconds']:,.0f} s behind")
        elif source["state"] != "ok":
            told.append(f"source {name} is not in order: {source['state']}")
    if found.get("warehouse_error"):
        told.append(found["warehouse_error"]["message"])
    for name, view in found["views"].items():
        told += _problems_of_view(name, view)
    return told


def _problems_of_view(name: str, view: Mapping[str, Any]) -> list[str]:
    told = []
    if view.get("damage"):
        told.append(f"{name} is damaged: {view['damage']['message']}: viewkeeper rebuild {name}")
    elif view["error"]:
        told.append(f"{name} is stopped: {view['error']['message']}")
    if view["differs"]:
        told.append(f"{name} differs from its sources, as its audit found")
    if view["is_late"] and view["waits_for"] is None:
        told.append(f"{name} is {view['freshness_seconds']:,.0f} s behind its sources")
    return told


# -- looking, once --------------------------------------------------------------------------------


def status_document(keeper: Keeper) -> Document:
    """`status_of` a project now, its security, and whether all is well. Asks every source; starts no Spark."""
    warehouse, older = _opened(keeper)
    found = status_of(_observed(keeper, warehouse))
    found |= {"warehouse_error": older, "security": security_of(keeper)}
    problems = problems_of(found)
    return found | {"ok": not problems, "problems": problems}


def _observed(keeper: Keeper, warehouse: Warehouse | None) -> Observed:
    folder = keeper.config.folder
    run = read_run_state(folder)
    latest = None if warehouse is None else warehouse.latest()
    damages: dict[str, WarehouseError] = {}
    rows: dict[str, int | None] = {}
    if warehouse is not None and latest is not None:
        damages = damages_of(warehouse.storage, latest)
        for name in latest.shown_views:
            try:
                rows[name] = counted_rows(warehouse.storage, latest, name)
            except WarehouseError as error:
                rows[name] = None
                damages.setdefault(name, error)
        rows = at_one_cut(warehouse.storage, latest, rows)
    is_kept = run["state"] not in NOBODY_KEEPS
    looks = {
        name: _look(keeper, name, reached_by(name, latest, is_kept=is_kept))
        for name in keeper.config.sources
    }
    asked = read_asked_audits(folder)
    return Observed(run, latest, looks, rows, dt.datetime.now(dt.UTC), damages, asked)


def read_asked_audits(folder: Path) -> dict[str, Document]:
    """The verdicts of audits that were asked for on the dashboard; empty where there are none."""
    found = read_json(folder / ASKED_AUDITS_FILE)
    return {
        view: each for view, each in found.items() if isinstance(each, dict) and "verdict" in each
    }


def _opened(keeper: Keeper) -> tuple[Warehouse | None, Document | None]:
    """The warehouse, if there is one; and what there is to say when it is an older copy."""
    try:
        return keeper.warehouse(with_spark=False), None
    except UsageError:
        return None, None
    except WarehouseError as error:
        if error.code != OLDER:
            raise
        return Warehouse(storage_of(keeper.config)), error.as_dict()


def _look(keeper: Keeper, name: str, reached: list[Position]) -> Document:
    try:
        return look_at(keeper.source(name), reached)
    except (SourceError, UsageError) as error:
        return unreachable(error)


def look_at(source: Source, reached: list[Position]) -> Document:
    """How a source is, and how far it is ahead of the newest of some positions; raises SourceError."""
    return asdict(source.health(newest_of(source, reached)))


def unreachable(error: ViewkeeperError) -> Document:
    """The look at a source that can't be asked."""
    return {"state": "unreachable", "lag_seconds": None, "error": error.as_dict()}
