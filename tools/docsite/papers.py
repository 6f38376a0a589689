"""The page "papers to code", made from ``docs/papers/papers.toml``."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

HEAD = """# Papers and code

Viewkeeper implements five papers as one system. For every figure, algorithm, definition, theorem, lemma, table
and example of them: the file that is it, and the tests that hold it. A test fails when a file or a test of this
page is gone, or when an item of a paper is missing here.

*held*: a test fails when it stops being true. *words*: notation, with nothing to test. *other*: we do something
else on purpose, and say what. Theorems are not proved by a machine: they are held by seeds, by every interleaving of
small cases, and by wrong variants that must be caught.

This page is made from `docs/papers/papers.toml` by `make reference`.
"""


def read(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "docs" / "papers" / "papers.toml").read_text(encoding="utf-8"))


def page(root: Path) -> str:
    """The page as Markdown."""
    papers = read(root)
    lines = [HEAD]
    lines.append("| paper | items | held | words | other |\n|---|---|---|---|---|")
    for paper in papers.values():
        count = Counter(status_of(item) for item in paper["items"])
        cells = (len(paper["items"]), count["held"], count["words"], count["other"])
        lines.append(f"| {paper['short']} | {' | '.join(map(str, cells))} |")
    for paper in papers.values():
        lines.append(f"\n## {paper['short']}\n")
        lines.append(f"{paper['authors']}: *{paper['title']}*. {paper['where']}.\n")
        lines.append("| in the paper | what | code | held by |\n|---|---|---|---|")
        lines += [_row(item) for item in paper["items"]]
    return "\n".join(lines) + "\n"


def status_of(item: dict[str, Any]) -> str:
    return str(item.get("status", "held"))


def _row(item: dict[str, Any]) -> str:
    what = item["what"]
    if item.get("note"):
        what += f". *{item['note'][0].upper()}{item['note'][1:]}.*"
    if status_of(item) == "other":
        what += " **other**"
    code = "<br>".join(f"[`{path}`](../../src/viewkeeper/{path})" for path in item["code"])
    held = "<br>".join(_test(test) for test in item.get("tests", ())) or "*words*"
    return f"| {item['item']} | {what} | {code} | {held} |"


def _test(test: str) -> str:
    file, _, name = test.partition("::")
    return (
        f"[`{Path(file).stem}`](../../tests/{file}): {name.removeprefix('test_').replace('_', ' ')}"
    )
