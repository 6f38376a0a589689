"""Papers to code: everything in the papers is on the page, and everything on the page is there."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from docsite import papers

ROOT = Path(__file__).parents[2]
PAPERS = papers.read(ROOT)
ITEMS = [(key, item) for key, paper in PAPERS.items() for item in paper["items"]]


def numbered(word: str, last: int) -> set[str]:
    return {f"{word} {number}" for number in range(1, last + 1)}


# What the papers number or name, counted in their texts. Sections stand beside it where they hold a claim.
EVERYTHING = {
    "sweep": numbered("Figure", 6) | {"Table 1", "Section 5.2", "Section 6.1"},
    "mvc": numbered("Figure", 3)
    | numbered("Example", 5)
    | numbered("Algorithm", 2)
    | {"Table 1", "Theorem 4.1", "Theorem 5.1", "Definition: consistent with a source state"}
    | {"Definition: strongly consistent", "Definition: complete"}
    | {"Definition: multiple view consistent"},
    "dyda": numbered("Figure", 13)
    | numbered("Example", 12)
    | numbered("Definition", 15)
    | numbered("Lemma", 9)
    | numbered("Theorem", 4)
    | numbered("Table", 8)
    | numbered("Assumption", 2),
    "medwrap": numbered("Figure", 6)
    | numbered("Definition", 3)
    | numbered("Theorem", 4)
    | {"Lemma 1", "Table: space cost", "Table: time cost"},
    "rings": numbered("Figure", 2)
    | {"Theorem 1", "Validity", "Order Consistency", "Up-to-dateness", "Claim in the proof"}
    | {"Latency, case 1", "Latency, case 2"},
}


@cache
def functions_in(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))


@pytest.mark.parametrize("paper", EVERYTHING)
def test_nothing_of_a_paper_is_left_out(paper: str) -> None:
    listed = [item["item"] for item in PAPERS[paper]["items"]]
    assert EVERYTHING[paper] - set(listed) == set()
    assert len(listed) == len(set(listed)), "an item stands there twice"


def test_every_file_and_every_test_is_there() -> None:
    gone = []
    for paper, item in ITEMS:
        place = f"{paper}, {item['item']}"
        gone += [
            f"{place}: {c}" for c in item["code"] if not (ROOT / "src/viewkeeper" / c).exists()
        ]
        for test in item.get("tests", ()):
            file, _, name = test.partition("::")
            path = ROOT / "tests" / file
            if not path.exists() or name not in functions_in(path) or not name.startswith("test_"):
                gone.append(f"{place}: {test}")
    assert gone == []


def test_what_is_not_held_says_why() -> None:
    for _, item in ITEMS:
        status = papers.status_of(item)
        assert status in ("held", "words", "other")
        assert item["code"], item["item"]
        assert (status == "words") == (not item.get("tests")), item["item"]
        assert status != "other" or item.get("note"), item["item"]


def test_the_page_is_the_data() -> None:
    page = (ROOT / "docs" / "papers" / "index.md").read_text(encoding="utf-8")
    assert page == papers.page(ROOT), "run make reference"
