"""A run in the lab as a document: what happened step by step, the states, the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viewkeeper.lab.journals import (
    Facts,
    FactsJournal,
    MedwrapFactsJournal,
    RingFactsJournal,
    rows_document,
)
from viewkeeper.lab.trials.choosing import chosen_trial, wish
from viewkeeper.lab.trials.trial import Trial
from viewkeeper.protocols.registry import protocol_named
from viewkeeper.simulator.charts import words
from viewkeeper.simulator.journal import WAREHOUSE, Entry
from viewkeeper.simulator.medwrap.journal import MedwrapJournal
from viewkeeper.simulator.rings.journal import RingJournal
from viewkeeper.simulator.run import Outcome
from viewkeeper.simulator.scenario_file import load_scenario, played

SOURCES_MAX, TRANSACTIONS_MAX = 8, 30


def played_scenario(name: str, protocol: str | None) -> dict[str, Any]:
    """A scenario that comes with Viewkeeper, under its protocol or another one."""
    file = load_scenario(name)
    journal = FactsJournal()
    run = played(file, None if protocol is None else protocol_named(protocol), journal)
    return _document(journal, run.outcome) | {
        "scenario": file.name,
        "title": file.title,
        "paper": file.paper,
        # Remarks are about the protocol that the scenario was written for.
        "text": file.text.strip() if run.outcome.protocol == file.protocol.name else "",
        "view": file.view.strip(),
        "left_out": run.left_out,
        "replay": f"viewkeeper lab show {file.name} --protocol {run.outcome.protocol}",
    }


def played_trial(protocol: str, seed: int, sources: int, transactions: int) -> dict[str, Any]:
    """A run that a seed determines, in the protocol's own world."""
    sources = min(max(sources, 2), SOURCES_MAX)
    transactions = min(max(transactions, 1), TRANSACTIONS_MAX)
    trial = chosen_trial(protocol, wish(sources=sources, transactions=transactions, shape="chain"))
    journal = _journal_for(trial)
    outcome = trial.outcome(seed, journal)
    return _document(journal, outcome) | {
        "scenario": None,
        "title": f"{protocol}: {transactions} transactions at {sources} sources",
        "paper": "",
        "text": "",
        "view": "",
        "left_out": 0,
        "replay": trial.command(seed),
    }


def _journal_for(trial: Trial) -> FactsJournal:
    match trial.new_journal():
        case RingJournal():
            return RingFactsJournal()
        case MedwrapJournal():
            return MedwrapFactsJournal()
        case _:
            return FactsJournal()


def _document(journal: FactsJournal, outcome: Outcome) -> dict[str, Any]:
    facts = _with_start(journal)
    return outcome.as_dict() | {
        "is_good": outcome.is_good,
        "lanes": _lanes(journal.entries),
        "steps": _steps(journal.entries, facts),
        "states_shown": [
            {"extent": rows_document(found["extent"]), "cut": found.get("cut"), "step": index}
            for index, found in sorted(facts.items())
            if "extent" in found
        ],
    }


def _with_start(journal: FactsJournal) -> dict[int, Facts]:
    """The facts; where the world did not tell its first state, it follows from the first change."""
    facts = dict(journal.facts)
    installs = [index for index, found in sorted(facts.items()) if "change" in found]
    if installs and not any("extent" in found for i, found in facts.items() if i < installs[0]):
        first = facts[installs[0]]
        facts[0] = {"extent": first["extent"] - first["change"]} | facts.get(0, {})
    return facts


def _lanes(entries: Sequence[Entry]) -> list[str]:
    """Every place in order: a source, its wrapper, those who gather, the warehouse."""
    places = {p for e in entries for p in (e.place, e.arrow) if p is not None}
    gathering = [place for place in ("mediator", WAREHOUSE) if place in places]
    return [*sorted(places.difference(gathering)), *gathering]


def _steps(entries: Sequence[Entry], facts: Mapping[int, Facts]) -> list[dict[str, Any]]:
    on_the_way: list[dict[str, str]] = []
    waiting: list[dict[str, Any]] = []
    steps = []
    for index, entry in enumerate(entries):
        found = facts.get(index, {})
        _move(on_the_way, entry)
        _queue(waiting, entry, found)
        steps.append(
            {
                "kind": entry.kind,
                "place": entry.place,
                "arrow": entry.arrow,
                "sends": entry.sends,
                "receives": entry.receives,
                "text": words(entry) if _is_asking(entry) else entry.text,
                "on_the_way": found.get("on_the_way", list(on_the_way)),
                "waiting": list(waiting),
                "token": found.get("token"),
                "cut": found.get("cut"),
                "changes": {n: rows_document(bag) for n, bag in found.get("changes", {}).items()},
                "change": rows_document(found["change"]) if "change" in found else None,
                "extent": rows_document(found["extent"]) if "extent" in found else None,
            }
        )
    return steps


def _is_asking(entry: Entry) -> bool:
    """Whether the chart's words fit: other worlds' messages have no short names."""
    return bool(entry.sends or entry.receives) or entry.kind not in ("deliver", "ask", "answer")


def _move(on_the_way: list[dict[str, str]], entry: Entry) -> None:
    """Messages leave where they are sent and are gone where they are received."""
    if entry.receives:
        sender = entry.arrow if entry.kind == "deliver" else WAREHOUSE
        for message in on_the_way:
            if (message["label"], message["from"]) == (entry.receives, sender):
                on_the_way.remove(message)
                break
    if entry.sends:
        to = entry.arrow if entry.arrow is not None else WAREHOUSE
        on_the_way.append({"label": entry.sends, "from": entry.place, "to": to})


def _queue(waiting: list[dict[str, Any]], entry: Entry, facts: Facts) -> None:
    """Transactions wait at the warehouse from their arrival until a state includes them."""
    if entry.kind == "deliver" and entry.receives.startswith("#"):
        waiting.append({"source": entry.arrow, "number": int(entry.receives[1:])})
    cut = facts.get("cut")
    if cut is not None:
        waiting[:] = [each for each in waiting if each["number"] > cut.get(each["source"], 0)]
