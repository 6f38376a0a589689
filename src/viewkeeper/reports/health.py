"""Is all well? A verdict on the run, on a source and on a view, from the figures of `reports.status`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.reports.run_state import NOBODY_KEEPS
from viewkeeper.reports.standing import BEHIND, approval_of, period_of, standing_in

Document = Mapping[str, Any]

# From best to worst; ``idle`` is neither: no run keeps the views, and none is expected to.
RANKS = ("good", "idle", "warning", "bad")

# Without a target, a view or an edge that is so far behind is shown as late, or as bad.
LATE_SECONDS, BAD_SECONDS = 5.0, 30.0

_UNITS = {"ms": 0.001, "s": 1, "sec": 1, "second": 1, "min": 60, "m": 60, "minute": 60, "h": 3600}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


@dataclass(frozen=True)
class Health:
    """A verdict and the reason for it, in a sentence."""

    verdict: str
    reason: str

    def as_dict(self) -> dict[str, str]:
        return {"verdict": self.verdict, "reason": self.reason}


def seconds_of(text: str | None) -> float | None:
    """``5 s``, ``500ms``, ``2 minutes`` as seconds; None for what is no duration."""
    match = _DURATION.fullmatch((text or "").strip().lower())
    if match is None:
        return None
    unit = _UNITS.get(match[2]) or _UNITS.get(match[2].removesuffix("s"))
    return None if unit is None else float(match[1]) * unit


def lag_verdict(seconds: float | None, target: float | None = None) -> str:
    """How a lag is to be judged, against a target where there is one."""
    if seconds is None:
        return "idle"
    late, bad = (LATE_SECONDS, BAD_SECONDS) if target is None else (target, 3 * target)
    return "bad" if seconds > bad else "warning" if seconds > late else "good"


def worst(found: Iterable[Health]) -> Health:
    """The worst of some; of equals the first."""
    return max(found, key=lambda health: RANKS.index(health.verdict))


def of_approval(change: Document | None) -> Health:
    """Whether a schema change that waits for somebody's word holds the view up."""
    if change is None:
        return Health("good", "no schema change holds it up")
    what = f"a change of {change['source']}.{change['relation']}"
    if change["status"] == "pending":
        return Health("bad", f"it stands still: {what} waits for your word")
    return Health("bad", f"it stands still: {what} is {change['status']}")


def of_run(run: Document, view: str | None = None) -> Health:
    """What the run's own state means, as a whole or for one view."""
    match run["state"]:
        case "running":
            return Health("good", "a run keeps the views")
        case "waiting":
            told = run.get("waiting", {})
            if "statement" in told and view is not None:
                return Health("good", "a run keeps the views")  # those it holds up say it
            if "statement" in told:
                return Health("bad", "a schema change waits for your word, and views with it")
            return Health("bad", f"the run waits: {told.get('message', 'a source is away')}")
        case "starting" | "loading":
            return Health("warning", "the run is loading views")
        case "stopped":
            return Health("idle", "no run keeps the views now")
        case _:
            return Health("idle", "no run has been started yet")


def of_view(run: Document, name: str, view: Document, ending: str, target: float | None) -> Health:
    """The worst of what there is to say of a view, ``view`` being its part of the status."""
    if ending == "retired":
        return Health("idle", "a schema change ended it; its last state stays readable")
    if ending:
        return Health("bad", "its text does not fit a schema change: viewkeeper check tells more")
    period = period_of(run, name)
    # What a periodic view does not show before it is due is not late.
    limit = period + LATE_SECONDS if target is None and period else target
    return worst(
        (
            of_damage(view.get("damage")),
            of_source(view["error"]),
            of_audit(view["audit"]),
            of_approval(approval_of(standing_in(run), name)),
            of_run(run, view=name),
            of_freshness(view["freshness_seconds"], limit),
        )
    )


def of_damage(error: Document | None) -> Health:
    """Whether the view's rows can be read."""
    if error is None:
        return Health("good", "its rows can be read")
    return Health("bad", f"damaged: {error['message']}")


def source_verdict(source: Document, allowed_seconds: float) -> str:
    """How a source is to be judged, by its part of the status; what periodic views leave waiting is allowed."""
    if "error" in source:
        return "bad"
    if source["state"] == "not looked at yet":
        return "idle"
    if source["state"] not in ("ok", BEHIND):
        return "warning"
    # While a run goes and nothing is known to be missing, all is there.
    return lag_verdict(max(0.0, (source["behind_seconds"] or 0.0) - allowed_seconds))


def edge_verdict(run: Document, source: Document, fresh: float | None) -> str:
    """How the way from a source into a view is to be judged."""
    if source["verdict"] == "bad":
        return "bad"
    return "idle" if run["state"] in NOBODY_KEEPS else lag_verdict(fresh or 0.0)


def of_freshness(seconds: float | None, target: float | None) -> Health:
    """How fresh, against the target that the view declares."""
    if seconds is None:
        return Health("good", "nothing is known to be missing")
    verdict = lag_verdict(seconds, target)
    told = f"{seconds:.1f} s behind"
    if target is not None:
        told += f", and {target:g} s is the target"
    return Health(verdict, told)


def of_source(error: Document | None) -> Health:
    """Whether the view's source can go on for it."""
    if error is None:
        return Health("good", "its sources can go on")
    return Health("bad", f"stopped: {error['message']}. {error.get('hint', '')}".rstrip(". "))


def of_audit(audit: Document | None) -> Health:
    """What the last audit found."""
    match audit:
        case {"verdict": "different", "txn": txn}:
            return Health("bad", f"the audit at transaction {txn} found differences")
        case {"verdict": "different", "error": {"message": message}}:
            return Health("bad", f"its rows can't be read: {message}")
        case {"verdict": "equal", "txn": txn}:
            return Health("good", f"the audit at transaction {txn} found no difference")
        case _:
            return Health("good", "not audited from here yet")
