"""``python -m docsite build | reference | decisions | words`` (with ``tools`` on the path; `make docs` does both)."""

from __future__ import annotations

import sys
from pathlib import Path

from docsite import decisions, papers, reference, words
from docsite.build import build

ROOT = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    match arguments:
        case ["reference"]:
            _write(reference.pages() | {"papers/index.md": papers.page(ROOT)} | _decisions())
        case ["decisions"]:
            _write(_decisions())
        case ["words"]:
            problem = words.write(ROOT)
            if problem:
                sys.stderr.write(f"{problem}\n")
                return 1
        case ["build"]:
            problems = build(ROOT, ROOT / "build" / "site")
            for problem in problems:
                sys.stderr.write(f"{problem}\n")
            return 1 if problems else 0
        case _:
            sys.stderr.write("usage: python -m docsite build | reference | decisions | words\n")
            return 2
    return 0


def _decisions() -> dict[str, str]:
    return {decisions.INDEX: decisions.page(ROOT / "docs" / "decisions")}


def _write(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        target = ROOT / "docs" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
