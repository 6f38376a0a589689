"""Retired words: how often each file has them. ``docs/glossary.md`` says which, and what to say instead.

``docs/retired-words.txt`` has a line for every file that still has some: the count, and the file. A count may fall.
`write` puts the counts down again, for files that were moved too, unless there would be more in all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

GLOSSARY = "docs/glossary.md"
TABLE = "docs/retired-words.txt"
KINDS = ("src/viewkeeper/**/*.py", "tools/**/*.py", "docs/**/*.md", "*.md")
# Its words are what must not be said; errors and options in the reference are counted where they are made.
LEFT_OUT = ("docs/glossary.md", "docs/reference/")
# Words may be parted by the end of a line, and by what begins a line of a remark or a quotation.
_BETWEEN = r"(?:\s|\n\s*[#>*|])+"


def retired(root: Path) -> tuple[list[str], list[str]]:
    """The words that are no longer said, and the names that no file should have."""
    text = (root / GLOSSARY).read_text("utf-8").partition("## What we no longer say")[2]
    rows = re.findall(r"^\| (?!retired)([a-z][^|]*) \|", text, re.MULTILINE)
    names = re.findall(r"`(\w+)` \(", text.partition("File names count")[2])
    return [word.strip() for row in rows for word in row.split(",")], names


def counts(root: Path) -> dict[str, int]:
    """How many retired words each file has, its own name included; files without any are left out."""
    words, names = retired(root)
    pattern = re.compile(
        r"\b(?:" + "|".join(word.replace(" ", _BETWEEN) for word in words) + r")\b", re.IGNORECASE
    )
    found = {}
    for file in _files(root):
        count = len(pattern.findall(file.read_text("utf-8"))) + (file.stem in names)
        if count:
            found[file.relative_to(root).as_posix()] = count
    return found


def allowed(root: Path) -> dict[str, int]:
    """What the committed table allows."""
    lines = (root / TABLE).read_text("utf-8").splitlines()
    return {file: int(count) for count, file in (line.split(maxsplit=1) for line in lines)}


def problems(root: Path) -> list[str]:
    """Files that have more than they may, a line each."""
    may = allowed(root)
    return [
        f"{file}: {count} retired words, {may.get(file, 0)} allowed: see {GLOSSARY}"
        for file, count in counts(root).items()
        if count > may.get(file, 0)
    ]


def write(root: Path) -> str | None:
    """Write the table again from what there is; what is wrong, if there are more words than before."""
    now = counts(root)
    before = sum(allowed(root).values()) if (root / TABLE).exists() else sum(now.values())
    if sum(now.values()) > before:
        return f"there are {sum(now.values())} retired words, {before} before: see {GLOSSARY}"
    lines = [f"{count:4} {file}\n" for file, count in sorted(now.items())]
    (root / TABLE).write_text("".join(lines), "utf-8")
    return None


def _files(root: Path) -> Iterator[Path]:
    for kind in KINDS:
        for file in sorted(root.glob(kind)):
            if not file.relative_to(root).as_posix().startswith(LEFT_OUT):
                yield file
