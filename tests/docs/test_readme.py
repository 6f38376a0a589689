"""What the README says of protocols, papers and folders is what there is."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from docsite import papers
from viewkeeper.cli import execute

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def rows_below(head: str) -> list[list[str]]:
    table = README.split(f"\n{head}\n")[1].split("\n\n")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]
    ]


def test_its_table_of_protocols_is_that_of_the_lab(capsys) -> None:
    assert execute(["lab", "protocols", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    known = {p["name"]: p for p in told if p["name"] != "naive"}
    listed = {
        row[0].strip("`"): row for row in rows_below("| protocol | level | assumes | paper |")
    }
    assert set(listed) == set(known)
    for name, protocol in known.items():
        assert listed[name][1] == protocol["level"], name
        assert (listed[name][2] == "nothing") == (not any(protocol["assumes"].values())), name


def test_its_count_of_the_papers_items_is_right() -> None:
    items = [item for paper in papers.read(ROOT).values() for item in paper["items"]]
    count = Counter(papers.status_of(item) for item in items)
    told = re.search(r"(\d+) items, (\d+) held by tests", README)
    assert told is not None
    assert (int(told[1]), int(told[2])) == (len(items), count["held"])


def test_its_map_has_every_folder() -> None:
    folder = ROOT / "src" / "viewkeeper"
    packages = {p.name for p in folder.iterdir() if p.is_dir() and p.name != "__pycache__"}
    cells = [row[0] for row in rows_below("| folder of `src/viewkeeper` | one duty |")]
    named = {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}
    assert packages - named == set()
    assert {name for name in named if not (folder / name).exists()} == set()
