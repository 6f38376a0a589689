"""Reports of runs: medians, ratios within rounds, and no silence about where we lose."""

from __future__ import annotations

from peers.report import BEGIN, END, into_document, summary, text_table


def _run(peer: str, number: int, seconds: float, memory: float = 100.0) -> dict:
    stream = {
        "stream": "1000", "updates": 1_000, "seconds": seconds, "right": True,
        "asked_rows": 500, "asked_queries": 3,
    }  # fmt: skip
    return {
        "peer": peer, "round": number, "orders": 10, "view": "join", "version": "1",
        "memory": {"system": memory, "databases": 0.0}, "load_seconds": 1.0,
        "streams": [stream], "freshness": None,
    }  # fmt: skip


def _results(*runs: dict) -> dict:
    machine = {"processors": 2, "gigabytes": 4, "load_before": 0.0}
    states = {"other": {"shown": 4, "other_size": 1, "never_true": 2, "ends_right": True}}
    return {
        "when": "2026-01-01",
        "machine": machine,
        "rounds": 2,
        "runs": list(runs),
        "states": states,
    }


def test_ratios_are_taken_within_a_round_not_between_medians():
    # The machine was ten times slower in the second round, for both.
    runs = [_run("viewkeeper", 0, 1.0), _run("other", 0, 2.0), _run("viewkeeper", 1, 10.0)]
    found = summary(_results(*runs, _run("other", 1, 20.0)))
    line = next(line for line in found.lines if line.peer == "other")
    assert line.ahead["1000"].smallest == line.ahead["1000"].largest == 2.0
    assert line.seconds["1000"].median == 11.0


def test_where_we_lose_the_table_says_so():
    text = text_table(summary(_results(_run("viewkeeper", 0, 2.0), _run("other", 0, 1.0))))
    assert "slower: 0.50" in text
    assert "2 (50 %)" in text


def test_what_could_not_run_is_told_with_its_reason():
    failed = {
        "peer": "other",
        "round": 0,
        "orders": 10,
        "view": "join",
        "failure": "ended with 3\nx",
    }
    missing = {"peer": "absent", "failure": "not installed: no wheel"}
    text = text_table(summary(_results(_run("viewkeeper", 0, 1.0), failed, missing)))
    assert "other: ended with 3" in text
    assert "absent: not installed: no wheel" in text


def test_the_generated_part_of_a_document_is_replaced_and_nothing_else(tmp_path):
    document = tmp_path / "page.md"
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    results = _results(_run("viewkeeper", 0, 1.0), _run("other", 0, 2.0))
    into_document(results, document)
    once = document.read_text()
    assert once.startswith("before\n")
    assert once.endswith(f"{END}\nafter\n")
    assert "old" not in once
    into_document(results, document)
    assert document.read_text() == once
    assert (tmp_path / "images" / "performance-join-10.svg").read_text().startswith("<svg")
