"""``python -m docsite build | reference`` (with ``tools`` on the path; `make docs` does both)."""

from __future__ import annotations

import sys
from pathlib import Path

from docsite import papers, reference
from docsite.build import build

ROOT = Path(__file__).parents[2]


def main(words: list[str]) -> int:
    match words:
        case ["reference"]:
            pages = reference.pages() | {"papers/index.md": papers.page(ROOT)}
            for name, text in pages.items():
                target = ROOT / "docs" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        case ["build"]:
            problems = build(ROOT, ROOT / "build" / "site")
            for problem in problems:
                sys.stderr.write(f"{problem}\n")
            return 1 if problems else 0
        case _:
            sys.stderr.write("usage: python -m docsite build | reference\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
