"""The example projects that ``viewkeeper init`` writes: all of one, or nothing.

A script ``NAME.sql`` beside an example's ``viewkeeper.toml`` becomes the SQLite file ``NAME.db``, set up as a
source; all else is copied. It is made in a folder beside its place and moved there when it is whole; its ``viewkeeper.toml`` comes
last, so that a folder with that file is a whole project.
"""

from __future__ import annotations

import importlib.resources
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from viewkeeper.errors import UsageError
from viewkeeper.project.config import PROJECT_FILE, VIEWS_FOLDER
from viewkeeper.sources.opening import open_source


def examples() -> tuple[str, ...]:
    """The names of the numbered examples."""
    with importlib.resources.as_file(importlib.resources.files("viewkeeper")) as package:
        return tuple(sorted(path.parent.name for path in package.glob("examples/*/README.md")))


def write_example(folder: Path, example: str | None = None) -> tuple[str, ...]:
    """Make the project in ``folder``; the names of its files. Raises UsageError, writing nothing.

    Without ``example``, two small databases with three views over them. An example may be called by the
    beginning of its name.
    """
    name = None if example is None else _named(example)
    _require_free(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent))
        try:
            _fill(draft, name)
            return _moved(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise UsageError(
            "not-writable", f"can't write to {folder}", detail=error.strerror or str(error)
        ) from None


def _require_free(folder: Path) -> None:
    if (folder / PROJECT_FILE).exists():
        raise UsageError(
            "project-exists",
            f"there is a project in {folder} already",
            detail=f"it has a {PROJECT_FILE}",
            hint="name a new folder: viewkeeper init DIR",
        )
    if folder.exists() and not folder.is_dir():
        raise UsageError(
            "not-a-folder", f"{folder} is a file", hint="name a new folder: viewkeeper init DIR"
        )


def _named(example: str) -> str:
    known = examples()
    matching = [name for name in known if name.startswith(example)]
    if len(matching) != 1:
        raise UsageError(
            "unknown-example",
            f"there is no example {example}",
            detail=f"there are: {', '.join(known)}",
            hint="name one of them, or the number it begins with",
        )
    return matching[0]


def _fill(draft: Path, example: str | None) -> None:
    with importlib.resources.as_file(importlib.resources.files("viewkeeper")) as package:
        folder = package / "demo" / "example" if example is None else package / "examples" / example
        scripts = sorted(folder.glob("*.sql"))
        unwanted = shutil.ignore_patterns("__pycache__", *(script.name for script in scripts))

        def ignored(here: str, names: list[str]) -> set[str]:
            return unwanted(here, names) if Path(here) == folder else {"__pycache__"} & set(names)

        shutil.copytree(folder, draft, dirs_exist_ok=True, ignore=ignored)
        for script in scripts:
            database = draft / f"{script.stem}.db"
            with closing(sqlite3.connect(database)) as link:
                link.executescript(script.read_text(encoding="utf-8"))
            _set_up(script.stem, database)


def _set_up(name: str, file: Path) -> None:
    """What the owner of a source does once, and here we are the owner: a change log in the file."""
    with open_source(name, f"sqlite:///{quote(str(file))}", allow_setup=True) as source:
        source.setup(sorted(source.schemas()))


def _moved(draft: Path, folder: Path) -> tuple[str, ...]:
    """Move everything to its place, never over a file that is there, and take it back if one fails."""
    made = sorted(path.relative_to(draft) for path in draft.rglob("*") if path.is_file())
    names = sorted(made, key=lambda name: name.name == PROJECT_FILE)
    taken = [str(name) for name in names if (folder / name).exists()]
    if taken:
        raise UsageError(
            "files-exist",
            f"{folder} has files that the project would replace",
            detail=", ".join(taken),
            hint="name a new folder: viewkeeper init DIR",
        )
    was_there = folder.exists()
    had_views = (folder / VIEWS_FOLDER).exists()
    moved: list[Path] = []
    try:
        (folder / VIEWS_FOLDER).mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).rename(folder / name)
            moved.append(folder / name)
    except OSError:
        for path in moved:
            path.unlink(missing_ok=True)
        if not had_views:
            shutil.rmtree(folder / VIEWS_FOLDER, ignore_errors=True)
        if not was_there:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return tuple(str(name) for name in made)
