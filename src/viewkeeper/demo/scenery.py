"""The demo's scene: three autonomous databases of a small shop, filled, and a project over them."""

from __future__ import annotations

# Read now: an interruption while a thread loads it would leave Python's lock on it held for ever.
import importlib.readers
import importlib.resources
import re
import shutil
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from string import Template
from urllib.parse import quote

from viewkeeper.project.config import PROJECT_FILE, VIEWS_FOLDER

# The sources that are PostgreSQL servers, each with the script that fills it; the third is a file.
SERVERS = {"shop": "orders.sql", "crm": "customers.sql"}
FILE_SOURCE = "depot"
SOURCES = (*SERVERS, FILE_SOURCE)
SCRATCH = ".scratch"

# Rows of each relation in the beginning.
ROWS = {"orders": 5000, "customers": 500, "products": 100, "regions": 8}

_PROJECT = """\
# The demo's project. Its two PostgreSQL servers ended with the demo, so it can't be run again; the
# warehouse is whole, and `viewkeeper query` and `viewkeeper history` read it.

[warehouse]
path = "warehouse"
{sources}
[spark]
master = "local[2]"
"""


@dataclass(frozen=True)
class Scene:
    """Where everything is. ``scratch`` is for the temporary files of what the demo starts."""

    folder: Path
    urls: Mapping[str, str]

    @property
    def scratch(self) -> Path:
        return self.folder / SCRATCH

    @property
    def file(self) -> Path:
        return self.folder / f"{FILE_SOURCE}.db"


def script_of(source: str) -> str:
    """The script that makes and fills a source's tables."""
    name = SERVERS.get(source, f"{FILE_SOURCE}.sql")
    text = (importlib.resources.files("viewkeeper.demo") / "shop" / name).read_text("utf-8")
    return Template(text).substitute(ROWS)


def rows_to_load(scene: Scene, views: Iterable[str]) -> int:
    """How many rows the load of some views reads, about: writers are at work already."""
    texts = [(scene.folder / VIEWS_FOLDER / f"{view}.sql").read_text("utf-8") for view in views]
    named = [set(re.findall(r"(?:FROM|JOIN) \w+\.(\w+)", text)) for text in texts]
    return sum(ROWS[relation] for relations in named for relation in relations)


def write_scene(folder: Path, server_urls: Mapping[str, str]) -> Scene:
    """The project's files and the SQLite source; the servers are filled already."""
    file_url = f"sqlite:///{quote(str(folder.absolute()))}/{FILE_SOURCE}.db"
    scene = Scene(folder, {**server_urls, FILE_SOURCE: file_url})
    scene.scratch.mkdir(parents=True)
    with closing(sqlite3.connect(scene.file)) as database:
        database.executescript(script_of(FILE_SOURCE))
    with importlib.resources.as_file(importlib.resources.files("viewkeeper.demo")) as package:
        shutil.copytree(package / "shop" / VIEWS_FOLDER, folder / VIEWS_FOLDER)
    sources = "".join(f'\n[sources.{name}]\nurl = "{url}"\n' for name, url in scene.urls.items())
    (folder / PROJECT_FILE).write_text(_PROJECT.format(sources=sources), encoding="utf-8")
    return scene
