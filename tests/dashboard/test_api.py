"""The API over a warehouse whose every row is known."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter

import pytest

from dashboard.serving import ask
from dashboard.small_project import HOSTILE, RENAME
from viewkeeper.cli import execute
from viewkeeper.reports.ledger_tail import LedgerTail
from viewkeeper.sources.opening import open_source

HISTORY = (
    ((1, "one", 1), (2, "two", 2)),
    ((2, "two", -1), (3, None, 1)),
    ((1, "one", -1), (1, "uno", 1)),
    (),
    ((2, "two", -1),),
)


def replayed(upto: int) -> Counter:
    found: Counter = Counter()
    for rows in HISTORY[:upto]:
        for number, name, count in rows:
            found[number, name] += count
    return +found


def as_counter(rows: list[dict]) -> Counter:
    return Counter({tuple(row["values"]): row["count"] for row in rows})


@pytest.mark.parametrize("txn", range(len(HISTORY) + 1))
def test_rows_at_a_transaction_are_those_of_a_replay(project, server, txn):
    project.commit(*HISTORY)
    found = ask(server, f"/api/views/people/rows?as_of={txn}").document
    assert as_counter(found["rows"]) == replayed(txn)
    assert (found["txn"], found["total"]) == (txn, replayed(txn).total())


@pytest.mark.parametrize(("before", "after"), [(0, 5), (1, 3), (3, 1), (2, 2), (5, 0)])
def test_a_difference_leads_from_one_state_to_the_other(project, server, before, after):
    project.commit(*HISTORY)
    found = ask(server, f"/api/views/people/difference?before={before}&after={after}").document
    change = as_counter(found["rows"])
    reached = Counter(replayed(before))
    reached.update(change)
    assert +reached == replayed(after)
    assert (
        found["inserted"] - found["deleted"] == replayed(after).total() - replayed(before).total()
    )
    assert all(count != 0 for count in change.values())


def test_rows_come_in_pages_and_in_one_order(project, server):
    project.commit(tuple((n, f"name {n}", 1) for n in range(250, 0, -1)))
    pages = [
        ask(server, f"/api/views/people/rows?limit=100&first={first}").document["rows"]
        for first in (0, 100, 200)
    ]
    assert [row["values"][0] for page in pages for row in page] == list(range(1, 251))


def test_a_long_value_is_cut_and_says_so(project, server):
    project.commit(tuple((number, name, 1) for number, name in HOSTILE.items()))
    answer = ask(server, "/api/views/people/rows")
    values = {row["values"][0]: row["values"][1] for row in answer.document["rows"]}
    assert values[102]["length"] == 1_000_000
    assert len(answer.body) < 20_000
    assert values[101] == HOSTILE[101]
    assert values[103] == HOSTILE[103]


def test_what_can_not_be_shown_is_told_like_everywhere(project, server):
    assert ask(server, "/api/views/nobody").code == "unknown-view"
    assert ask(server, "/api/views/people/rows?as_of=99").code == "state-not-reached"
    assert ask(server, "/api/views/people/rows?as_of=soon").code == "bad-request"
    assert ask(server, "/api/views/people/difference?before=0").code == "bad-request"
    assert ask(server, "/api/lab/scenario?name=nothing").code == "unknown-scenario"
    assert ask(server, "/api/lab/comparison?name=nothing").code == "unknown-plot"


# What grows between two looks; and what only one of the two surfaces says.
TIMES = {"lag_seconds", "freshness_seconds", "behind_seconds"}
STATUS_ALONE = {"warehouse_error", "security", "ok", "problems"}


def without_times(document: dict) -> dict:
    return {name: value for name, value in document.items() if name not in TIMES}


@pytest.mark.parametrize(
    "case", ["well", "behind", "stopped", "waits", "differs", "rebuilt since", "no run"]
)
def test_status_and_the_overview_are_one_document(project, server, capsys, case):
    """Every figure of ``status --json`` is in the overview, under the same name and with the same value."""
    project.commit(*HISTORY)
    with open_source("depot", f"sqlite:///{project.folder}/depot.db", allow_setup=True) as depot:
        depot.setup(["people"])
    since = (dt.datetime.now(dt.UTC) - dt.timedelta(minutes=10)).isoformat()
    standing = {"views": {"people": None}, "sources": {}, "approvals": []}
    filled = project.warehouse.latest().views["people"].incarnation
    told = {"standing": standing}
    match case:
        case "behind":
            standing |= {"views": {"people": since}, "sources": {"depot": since}}
        case "stopped":
            told |= {"stopped_views": {"people": {"code": "c", "message": "m", "hint": "h"}}}
        case "waits":
            change = {"id": "7", "source": "depot", "relation": "people", "status": "pending"}
            standing |= {"approvals": [change | {"statement": "ALTER …", "views": ["people"]}]}
        case "differs" | "rebuilt since":
            number = filled if case == "differs" else filled - 1
            found = {"verdict": "different", "txn": 3, "incarnation": number, "at": since}
            project.write("audits.json", {"people": found})
        case "no run":
            told |= {"state": "stopped"}
    project.tell(**told)
    looked = ("ok", "behind")
    wait_until(lambda: ask(server, "/api/overview").document["sources"]["depot"]["state"] in looked)
    overview = ask(server, "/api/overview").document
    execute(["status", "--json", "--project", str(project.folder)])
    status = json.loads(capsys.readouterr().out)
    assert status["views"]["people"]["differs"] == (case == "differs")
    for part in ("views", "sources"):
        for name, figures in status[part].items():
            shown = overview[part][name]
            assert figures.keys() <= shown.keys()
            assert without_times({n: shown[n] for n in figures}) == without_times(figures)
            for time_of in TIMES & figures.keys():
                assert (shown[time_of] is None) == (figures[time_of] is None), time_of
    for name in status.keys() - STATUS_ALONE - {"views", "sources"}:
        assert overview[name] == status[name], name


def test_a_change_that_waits_is_red_here_and_in_status(project, server, capsys):
    project.commit(*HISTORY)
    since = (dt.datetime.now(dt.UTC) - dt.timedelta(minutes=10)).isoformat()
    change = {"id": "7", "source": "depot", "relation": "people", "status": "pending"}
    change |= {"statement": "ALTER …", "views": ["people"]}
    standing = {"views": {"people": since}, "sources": {"depot": since}, "approvals": [change]}
    batch = {"epoch": 3, "txn": 3, "freshness_seconds": 0.56}
    project.tell(standing=standing, batch=batch)
    found = ask(server, "/api/overview").document
    view = found["views"]["people"]
    assert (found["health"]["verdict"], view["health"]["verdict"]) == ("bad", "bad")
    assert "waits for your word" in view["health"]["reason"]
    assert view["freshness_seconds"] >= 600  # not what the last batch had
    assert found["approvals"] == [change]
    assert execute(["status", "--check", "--json", "--project", str(project.folder)]) == 1
    status = json.loads(capsys.readouterr().out)
    assert (status["ok"], status["state"]) == (False, found["state"]) == (False, "waiting")
    assert status["views"]["people"]["state"] == view["state"] == "waits for approval"
    assert status["views"]["people"]["freshness_seconds"] >= 600


def test_a_source_that_is_minutes_behind_is_not_in_order(project, server, capsys):
    project.commit(*HISTORY)
    since = (dt.datetime.now(dt.UTC) - dt.timedelta(minutes=10)).isoformat()
    standing = {"views": {"people": since}, "sources": {"depot": since}, "approvals": []}
    with open_source("depot", f"sqlite:///{project.folder}/depot.db", allow_setup=True) as depot:
        depot.setup(["people"])
    project.tell(standing=standing)
    wait_until(
        lambda: ask(server, "/api/overview").document["sources"]["depot"]["state"] == "behind"
    )
    found = ask(server, "/api/overview").document
    assert found["sources"]["depot"]["verdict"] == "bad"
    assert found["views"]["people"]["health"]["verdict"] == "bad"
    assert execute(["status", "--check", "--json", "--project", str(project.folder)]) == 1
    status = json.loads(capsys.readouterr().out)
    assert status["sources"]["depot"]["state"] == "behind"
    # What a periodic view does not show before it is due is not late.
    slow = {"people": {"level": "strong", "protocol": "periodic", "period_seconds": 3600.0}}
    project.tell(standing=standing, views=slow)
    assert execute(["status", "--check", "--json", "--project", str(project.folder)]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []


def wait_until(is_true) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_rows_are_counted_once_and_then_kept_up(project, monkeypatch):
    project.commit(*HISTORY[:2])
    tail = LedgerTail(project.warehouse.storage)
    assert tail.refresh()
    assert tail.rows("people") == replayed(2).total()

    def unread(storage, entry, view):
        raise AssertionError("the view was read again")

    monkeypatch.setattr("viewkeeper.reports.ledger_tail.counted_rows", unread)
    for upto in range(3, len(HISTORY) + 1):
        project.commit(HISTORY[upto - 1])
        assert tail.refresh()
        assert tail.rows("people") == replayed(upto).total()
    assert not tail.refresh()


def test_after_a_long_absence_rows_are_counted_anew(project, monkeypatch):
    monkeypatch.setattr("viewkeeper.reports.ledger_tail.ENTRIES_KEPT", 2)
    tail = LedgerTail(project.warehouse.storage)
    tail.refresh()
    assert tail.rows("people") == 0
    project.commit(*HISTORY)
    tail.refresh()
    assert tail.rows("people") == replayed(len(HISTORY)).total()


def test_one_moment_comes_from_one_entry(project, server):
    """Whatever is committed meanwhile, rows and frontier belong together."""
    for upto in range(1, len(HISTORY) + 1):
        project.commit(HISTORY[upto - 1])
        moment = ask(server, "/api/overview").document
        assert moment["frontier"] == upto
        assert moment["views"]["people"]["rows"] == replayed(moment["frontier"]).total()


def test_the_view_page_knows_versions_and_states(project, server):
    project.commit(*HISTORY)
    found = ask(server, "/api/views/people").document
    assert [version["version"] for version in found["versions"]] == [1]
    assert [state["last_txn"] for state in found["states"]] == [5, 4, 3, 2, 1, 0]
    assert found["states"][0]["cut"] == {"depot": "change 5"}
    assert [(s["inserted"], s["deleted"]) for s in found["states"][:5]] == [
        (0, 1), (0, 0), (1, 1), (1, 1), (3, 0),
    ]  # fmt: skip


def test_decisions_are_written_down_for_the_keeper(project, server):
    project.write(
        "evolution.json", {"changes": [RENAME, RENAME | {"id": "8", "status": "applied"}]}
    )
    change = ask(server, "/api/session").document["change"]

    def decide(number: str, decision: str):
        body = json.dumps({"decision": decision})
        return ask(server, f"/api/evolution/{number}", "POST", body, X_Viewkeeper_Change=change)

    assert decide("7", "perhaps").code == "bad-decision"
    assert decide("8", "approve").code == "already-decided"
    assert decide("9", "approve").code == "unknown-change"
    assert ask(server, "/api/overview").document["changes_waiting"] == 1
    assert decide("7", "approve").status == 200
    assert project.read("decisions.json")["7"]["decision"] == "approve"
    newest, oldest = ask(server, "/api/evolution").document["changes"]
    assert (newest["id"], oldest["decision"]["decision"]) == ("8", "approve")
    assert ask(server, "/api/overview").document["changes_waiting"] == 0


def test_what_a_change_does_not_say_the_ledger_does(project, server):
    """A keeper tells what a view becomes; what it was stands in the ledger."""
    effect = {
        "view": "people",
        "effect": "renamed",
        "sql": "SELECT p.id, p.full_name AS name",
    }
    project.write("evolution.json", {"changes": [RENAME | {"effects": [effect]}]})
    (change,) = ask(server, "/api/evolution").document["changes"]
    (told,) = change["effects"]
    assert "p.name" in told["before"]
    assert told["after"] == effect["sql"]


def test_every_endpoint_is_described_and_answers(project, server):
    document = ask(server, "/api/openapi.json").document
    assert document["openapi"].startswith("3.1")
    needed = {
        "view": "people",
        "before": 0,
        "after": 0,
        "name": "naive-anomaly",
        "protocol": "sweep",
    }
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            assert described["summary"]
            if method != "get" or path == "/api/lab/comparison":
                continue
            given = {
                p["name"]: needed[p["name"]]
                for p in described.get("parameters", ())
                if p["required"]
            }
            query = "&".join(f"{name}={value}" for name, value in given.items())
            answer = ask(server, f"{path.format(**given)}?{query}")
            assert answer.status == 200, (path, answer.body)


def test_live_moments_are_a_stream(project, server):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request("GET", "/api/events")
    response = connection.getresponse()
    assert response.headers["Content-Type"].startswith("text/event-stream")

    def next_frontier() -> int:
        while not (line := response.readline()).startswith(b"data: "):
            pass
        return json.loads(line.removeprefix(b"data: "))["frontier"]

    assert next_frontier() == 0
    project.commit(*HISTORY[:1])
    while next_frontier() != 1:
        pass
    connection.close()
