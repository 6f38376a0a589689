"""The example project that ``viewkeeper init`` writes: all of it, or nothing.

It is made in a folder beside its place and moved there when it is whole; its ``viewkeeper.toml`` comes
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
from viewkeeper.project import PROJECT_FILE, VIEWS_FOLDER
from viewkeeper.sources.opening import open_source

# The sources of the example: SQLite files, each made by the script of its name.
DATABASES = ("shop", "crm")


def write_example(folder: Path) -> tuple[str, ...]:
    """Make the project in ``folder``; the names of its files. Raises UsageError, writing nothing."""
    _require_free(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent))
        try:
            _fill(draft)
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


def _fill(draft: Path) -> None:
    with importlib.resources.as_file(importlib.resources.files("viewkeeper.demo")) as package:
        example = package / "example"
        (draft / VIEWS_FOLDER).mkdir()
        for view in sorted((example / VIEWS_FOLDER).glob("*.sql")):
            shutil.copyfile(view, draft / VIEWS_FOLDER / view.name)
        for name in ("README.md", PROJECT_FILE):
            shutil.copyfile(example / name, draft / name)
        for name in DATABASES:
            script = (example / f"{name}.sql").read_text(encoding="utf-8")
            with closing(sqlite3.connect(draft / f"{name}.db")) as database:
                database.executescript(script)
            _set_up(name, draft / f"{name}.db")


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
