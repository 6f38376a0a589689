"""The files of a project's folder of views: SQL, one view each, and Python with any number of them.

Python files are run, like every program of the project's owner; what they print goes where it always does.
"""

from __future__ import annotations

import re
import runpy
import traceback
from collections.abc import Iterator
from pathlib import Path

from viewkeeper.declaring import declared_in
from viewkeeper.errors import UsageError


def written_views(folder: Path) -> dict[str, str]:
    """The text of every view in the folder, by its name, sorted; raises UsageError."""
    texts: dict[str, str] = {}
    places: dict[str, Path] = {}
    for name, text, file in (*_in_sql(folder), *_in_python(folder)):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError(
                "bad-view-name",
                f"a view can't be named {name}",
                hint="letters, digits and underscores: the name stands in SQL",
            )
        if name in places:
            raise UsageError(
                "view-written-twice",
                f"the view {name} is written twice",
                detail=f"in {places[name].name} and in {file.name}",
                hint="give one of them another name",
            )
        texts[name], places[name] = text, file
    return dict(sorted(texts.items()))


def has_views(folder: Path) -> bool:
    """Whether there is a file that may hold a view."""
    return any(folder.glob("*.sql")) or any(folder.glob("*.py"))


def _in_sql(folder: Path) -> Iterator[tuple[str, str, Path]]:
    for file in sorted(folder.glob("*.sql")):
        try:
            yield file.stem, file.read_text(encoding="utf-8"), file
        except UnicodeDecodeError as error:
            raise UsageError(
                "bad-view", f"{file} is not text in UTF-8", detail=str(error)
            ) from None


def _in_python(folder: Path) -> Iterator[tuple[str, str, Path]]:
    for file in sorted(folder.glob("*.py")):
        try:
            namespace = runpy.run_path(str(file), run_name="viewkeeper_views")
            for declared in declared_in(namespace):
                yield declared.name, declared.text(), file
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            lines = [
                f.lineno
                for f in traceback.extract_tb(error.__traceback__)
                if f.filename == str(file)
            ]
            place = lines[-1] if lines else getattr(error, "lineno", None)
            raise UsageError(
                "bad-view-file",
                f"{file.name} can't be run" + (f", line {place}" if place else ""),
                detail=f"{type(error).__name__}: {error}",
                hint="it is run when the project is read, and must declare views with @viewkeeper.view",
            ) from error
