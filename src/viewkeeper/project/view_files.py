"""The files of a project's folder of views: SQL, one view each, and Python with any number of them.

Python files are run, like every program of the project's owner; what they print goes where it always does.
"""

from __future__ import annotations

import re
import runpy
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from viewkeeper.declaring import declared_in
from viewkeeper.errors import UsageError


@dataclass(frozen=True)
class WrittenViews:
    """The texts in a folder, by view, and what is wrong with the others.

    ``bad`` is by view, or by file where it is not known which views a file has: then ``hides``.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    bad: Mapping[str, UsageError] = field(default_factory=dict)
    hides: bool = False

    def with_text(self, view: str, others: WrittenViews) -> WrittenViews:
        """These views, but one of them as others have it."""
        texts = {name: text for name, text in self.texts.items() if name != view}
        bad = {name: error for name, error in self.bad.items() if name != view}
        texts |= {view: others.texts[view]} if view in others.texts else {}
        bad |= {view: others.bad[view]} if view in others.bad else {}
        return replace(self, texts=dict(sorted(texts.items())), bad=bad)


def written_views(folder: Path) -> WrittenViews:
    """The text of every view in the folder, by its name, sorted. A bad file stands for itself alone."""
    texts: dict[str, str] = {}
    bad: dict[str, UsageError] = {}
    places: dict[str, Path] = {}
    hides = False
    for name, text, file in (*_in_sql(folder), *_in_python(folder)):
        if isinstance(text, UsageError):
            bad[name] = text
            hides = hides or file.suffix == ".py"
        elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            bad[name] = UsageError(
                "bad-view-name",
                f"a view can't be named {name}",
                hint="letters, digits and underscores: the name stands in SQL",
            )
        elif name in places:
            texts.pop(name, None)
            bad[name] = UsageError(
                "view-written-twice",
                f"the view {name} is written twice",
                detail=f"in {places[name].name} and in {file.name}",
                hint="give one of them another name",
            )
        else:
            texts[name], places[name] = text, file
    return WrittenViews(dict(sorted(texts.items())), bad, hides)


def has_views(folder: Path) -> bool:
    """Whether there is a file that may hold a view."""
    return any(folder.glob("*.sql")) or any(folder.glob("*.py"))


# A view's name, its text or why there is none, and its file.
_Found = tuple[str, str | UsageError, Path]


def _in_sql(folder: Path) -> Iterator[_Found]:
    for file in sorted(folder.glob("*.sql")):
        try:
            yield file.stem, file.read_text(encoding="utf-8"), file
        except UnicodeDecodeError as error:
            told = UsageError("bad-view", f"{file} is not text in UTF-8", detail=str(error))
            yield file.stem, told, file


def _in_python(folder: Path) -> Iterator[_Found]:
    for file in sorted(folder.glob("*.py")):
        try:
            namespace = runpy.run_path(str(file), run_name="viewkeeper_views")
            found: list[_Found] = [(d.name, d.text(), file) for d in declared_in(namespace)]
        except UsageError as error:
            found = [(file.name, error, file)]
        except (Exception, SystemExit) as error:
            found = [(file.name, _can_not_be_run(file, error), file)]
        yield from found


def _can_not_be_run(file: Path, error: BaseException) -> UsageError:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    place = lines[-1] if lines else getattr(error, "lineno", None)
    return UsageError(
        "bad-view-file",
        f"{file.name} can't be run" + (f", line {place}" if place else ""),
        detail=f"{type(error).__name__}: {error}",
        hint="it is run when the project is read, and must declare views with @viewkeeper.view",
    )
