"""The page "papers to code", made from ``docs/papers/papers.toml``."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

# Where the tests are that run the product over real databases.
LIVE = ("live/", "chaos/")

HEAD = """# Papers and code

Viewkeeper implements five papers as one system. For every figure, algorithm, definition, theorem, lemma, table
and example of them: the file that is it, and the tests that hold it. A test fails when a file or a test of this
page is gone, or when an item of a paper is missing here.

*held*: a test fails when it stops being true. *words*: notation, with nothing to test. *other*: we do something
else on purpose, and say what. Theorems are not proved by a machine: they are held by seeds, by every interleaving of
small cases, and by wrong variants that must be caught.

*simulated*: tests of the pure machines, on plain bags. *live*: tests of the running product over real databases. An item
without a live test is proved for the machine alone: what runs may be another form of it.

This page is made from `docs/papers/papers.toml` by `make reference`.
"""


def read(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "docs" / "papers" / "papers.toml").read_text(encoding="utf-8"))


def page(root: Path) -> str:
    """The page as Markdown."""
    papers = read(root)
    lines = [HEAD]
    lines.append("| paper | items | held | simulated | live | words | other |")
    lines.append("|---|---|---|---|---|---|---|")
    for paper in papers.values():
        items = paper["items"]
        count = Counter(status_of(item) for item in items)
        places = (sum(bool(tests_of(item, live)) for item in items) for live in (False, True))
        cells = (len(items), count["held"], *places, count["words"], count["other"])
        lines.append(f"| {paper['short']} | {' | '.join(map(str, cells))} |")
    for paper in papers.values():
        lines.append(f"\n## {paper['short']}\n")
        lines.append(f"{paper['authors']}: *{paper['title']}*. {paper['where']}.\n")
        lines.append("| in the paper | what | code | simulated | live |\n|---|---|---|---|---|")
        lines += [_row(item) for item in paper["items"]]
    return "\n".join(lines) + "\n"


def status_of(item: dict[str, Any]) -> str:
    return str(item.get("status", "held"))


def tests_of(item: dict[str, Any], live: bool) -> list[str]:
    """The tests that hold an item: those over real databases, or the others."""
    return [test for test in item.get("tests", ()) if test.startswith(LIVE) is live]


def _row(item: dict[str, Any]) -> str:
    what = item["what"]
    if item.get("note"):
        what += f". *{item['note'][0].upper()}{item['note'][1:]}.*"
    if status_of(item) == "other":
        what += " **other**"
    code = "<br>".join(f"[`{path}`](../../src/viewkeeper/{path})" for path in item["code"])
    if not item.get("tests"):
        return f"| {item['item']} | {what} | {code} | *words* | |"
    held = ("<br>".join(map(_test, tests_of(item, live))) or "–" for live in (False, True))
    return f"| {item['item']} | {what} | {code} | {' | '.join(held)} |"


def _test(test: str) -> str:
    file, _, name = test.partition("::")
    return (
        f"[`{Path(file).stem}`](../../tests/{file}): {name.removeprefix('test_').replace('_', ' ')}"
    )
