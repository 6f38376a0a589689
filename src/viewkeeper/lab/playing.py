"""A run in the lab as a document: what happened step by step, the states, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.lab.trials.choosing import chosen_trial, wish
from viewkeeper.protocols.registry import protocol_named
from viewkeeper.protocols.tokens import Token
from viewkeeper.simulator.charts import words
from viewkeeper.simulator.kernel.journal import WAREHOUSE, Entry, Journal, rows_text
from viewkeeper.simulator.run import Outcome
from viewkeeper.simulator.scenario_file import load_scenario, played

SOURCES_MAX, TRANSACTIONS_MAX = 8, 30


def played_scenario(name: str, protocol: str | None) -> dict[str, Any]:
    """A scenario that comes with Viewkeeper, under its protocol or another one."""
    file = load_scenario(name)
    journal = Journal()
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
    journal = Journal()
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


def _document(journal: Journal, outcome: Outcome) -> dict[str, Any]:
    steps = _steps(journal.entries)
    return outcome.as_dict() | {
        "is_good": outcome.is_good,
        "lanes": _lanes(journal.entries),
        "steps": steps,
        "states_shown": [
            {"extent": step["extent"], "cut": step["cut"], "step": index}
            for index, step in enumerate(steps)
            if step["extent"] is not None
        ],
    }


def _lanes(entries: Sequence[Entry]) -> list[str]:
    """Every place in order: a source, its wrapper, those who gather, the warehouse."""
    places = {p for e in entries for p in (e.place, e.arrow) if p is not None}
    gathering = [place for place in ("mediator", WAREHOUSE) if place in places]
    return [*sorted(places.difference(gathering)), *gathering]


def _steps(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    on_the_way: list[dict[str, str]] = []
    waiting: list[dict[str, Any]] = []
    steps = []
    for entry in entries:
        facts = entry.facts
        _move(on_the_way, entry)
        _queue(waiting, entry)
        changes = facts["transaction"].changes if "transaction" in facts else ()
        steps.append(
            {
                "kind": entry.kind,
                "place": entry.place,
                "arrow": entry.arrow,
                "sends": entry.sends,
                "receives": entry.receives,
                "text": words(entry),
                "on_the_way": list(on_the_way),
                "waiting": list(waiting),
                "token": _token(entry) if "token" in facts else None,
                "cut": dict(facts["cut"]) if "cut" in facts else None,
                "changes": {name.relation: rows_document(rows) for name, rows in changes},
                "change": rows_document(facts["change"]) if "change" in facts else None,
                "extent": rows_document(facts["extent"]) if "extent" in facts else None,
            }
        )
    return steps


def _move(on_the_way: list[dict[str, str]], entry: Entry) -> None:
    """Messages leave where they are sent and are gone where they are received."""
    if entry.receives:
        for message in on_the_way:
            if (message["label"], message["from"]) == (entry.receives, entry.arrow):
                on_the_way.remove(message)
                break
    if entry.sends:
        to = entry.arrow if entry.arrow is not None else WAREHOUSE
        on_the_way.append({"label": entry.sends, "from": entry.place, "to": to})


def _queue(waiting: list[dict[str, Any]], entry: Entry) -> None:
    """Transactions wait from their arrival until a state includes them."""
    if entry.kind == "deliver" and entry.receives.startswith("#"):
        waiting.append({"source": entry.arrow, "number": int(entry.receives[1:])})
    if "cut" in entry.facts:
        cut = dict(entry.facts["cut"])
        waiting[:] = [each for each in waiting if each["number"] > cut.get(each["source"], 0)]


def _token(entry: Entry) -> dict[str, Any]:
    """A token where it is sent or arrives."""
    token: Token = entry.facts["token"]
    carried = zip(token.ring, token.entries, strict=True)
    return {
        "ring": list(token.ring),
        "carries": {s: None if e is None else rows_text(e.rows) for s, e in carried},
        "cut": dict(token.cut),
        "term": token.term,
        "at": entry.place,
        "to": entry.arrow if entry.kind == "send" else None,
    }


def rows_document(rows: Any) -> dict[str, Any]:
    """A small relation as columns and signed rows, in a fixed order."""
    bag: Bag = rows.to_bag()
    return {
        "columns": list(bag.schema.names),
        "rows": [
            {"values": [None if v is None else str(v) for v in row], "count": count}
            for row, count in bag.sorted()
        ],
    }
