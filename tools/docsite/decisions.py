"""The index of the decisions, made from the pages: number, title, and whether a later one changes it.

A page's first line is its number and title. A later decision that replaces it, or that changes a part of it, is named
in the line below: ``*Superseded by [NNNN](page): what changed.*`` or ``*Refined by …*``. A page that is not carried out
says ``*Proposed: how far it is.*`` there. Otherwise it is accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

INDEX = "decisions/README.md"
_TITLE = re.compile(r"# (\d{4}): (.+)\n")
_STATUS = re.compile(
    r"\n\*(Superseded|Refined) by (\[\d{4}\]\([^)]*\)(?:, \[\d{4}\]\([^)]*\))*): [^\n]+\.\*\n"
)
_PROPOSED = re.compile(r"\n\*Proposed: [^\n]+\.\*\n")
_LINK = re.compile(r"\[(\d{4})\]\(([^)]*)\)")
# A line that was meant as a status and is not written as one.
_MEANT = re.compile(r"^\W*(superseded|refined|replaced) by\b", re.IGNORECASE | re.MULTILINE)

HEAD = """# Decisions

Choices that someone will question, each on a page: what forced it, what was decided, what it costs. A page is not
rewritten when a later decision changes it; it then names that decision in the line below its title. *Refined*: it holds,
but for the part that the later page names. *Superseded*: read the later page instead. *Proposed*: not carried out yet.

A new page takes the next free number. This index is made from the pages by `make decisions`.

| | decision | status |
|---|---|---|
"""


@dataclass(frozen=True)
class Decision:
    """One page: ``word`` is accepted, proposed, refined or superseded, ``later`` the links to the pages that say so."""

    file: str
    number: str
    title: str
    word: str = "accepted"
    later: tuple[tuple[str, str], ...] = ()


def read(folder: Path) -> list[Decision]:
    """All decisions of a folder in their order; those that are not written as one are left out."""
    found = (_decision(file) for file in sorted(folder.glob("[0-9]*.md")))
    return [decision for decision in found if decision is not None]


def page(folder: Path) -> str:
    """The index as Markdown."""
    return HEAD + "".join(f"{_row(decision)}\n" for decision in read(folder))


def problems(folder: Path) -> list[str]:
    """What is wrong with the pages and the index, a line each."""
    decisions = {decision.file: decision for decision in read(folder)}
    files = sorted(file.name for file in folder.glob("[0-9]*.md"))
    found = [
        f"{name}: its first line is not '# NNNN: title'" for name in files if name not in decisions
    ]
    for decision in decisions.values():
        if decision.number != decision.file[:4]:
            found.append(f"{decision.file}: its title has the number {decision.number}")
        text = (folder / decision.file).read_text("utf-8")
        if decision.word == "accepted" and _MEANT.search(text):
            found.append(f"{decision.file}: its status is not written as a status")
        for number, target in decision.later:
            later = decisions.get(target)
            if later is None or later.number != number or number <= decision.number:
                found.append(
                    f"{decision.file}: {decision.word} by {number}, which is no later page"
                )
    index = folder / "README.md"
    if not index.exists() or index.read_text("utf-8") != page(folder):
        found.append("README.md: it is not what the pages say: run make decisions")
    return found


def _decision(file: Path) -> Decision | None:
    text = file.read_text("utf-8")
    title = _TITLE.match(text)
    if title is None:
        return None
    status = _STATUS.match(text, title.end())
    if status is None:
        word = "proposed" if _PROPOSED.match(text, title.end()) else "accepted"
        return Decision(file.name, title[1], title[2], word)
    return Decision(
        file.name, title[1], title[2], status[1].lower(), tuple(_LINK.findall(status[2]))
    )


def _row(decision: Decision) -> str:
    status = decision.word
    if decision.later:
        status += " by " + ", ".join(f"[{number}]({file})" for number, file in decision.later)
    return f"| {decision.number} | [{decision.title}]({decision.file}) | {status} |"
