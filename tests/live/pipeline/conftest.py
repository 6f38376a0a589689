"""Three autonomous databases of a small shop, one of each kind, with a folder for the project."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from live.sources.conftest import rig_class
from live.sources.rig import Database

KIND_OF = {"shop": "postgres", "crm": "mariadb", "geo": "sqlite"}


@dataclass
class Shop:
    """The databases, and a project folder over them."""

    databases: dict[str, Database]
    folder: Path

    def run(self, source: str, *statements: str) -> None:
        """Some statements at one source, each its own transaction."""
        writer = self.databases[source].writer()
        for statement in statements:
            writer.run(statement)
        writer.close()

    def fetch(self, source: str, sql: str) -> list[tuple]:
        writer = self.databases[source].writer()
        rows = writer.fetch(sql)
        writer.close()
        return [tuple(row) for row in rows]

    def write_view(self, name: str, text: str) -> None:
        folder = self.folder / "views"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.sql").write_text(text)


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[str, object]]:
    """One server (or none, for SQLite) of each kind, for the whole run."""
    with contextlib.ExitStack() as stack:
        started = {}
        for source, kind in KIND_OF.items():
            cls = rig_class(kind)
            reason = cls.unavailable()
            if reason is not None:
                pytest.skip(f"{kind}: {reason}")
            started[source] = stack.enter_context(cls())
        yield started


@pytest.fixture
def shop(servers, tmp_path) -> Iterator[Shop]:
    with contextlib.ExitStack() as stack:
        databases = {
            source: stack.enter_context(server.database()) for source, server in servers.items()
        }
        lines = ['[warehouse]\npath = "warehouse"\n', '[spark]\nmaster = "local[2]"\n']
        lines += [f'[sources.{source}]\nurl = "{d.url}"\n' for source, d in databases.items()]
        (tmp_path / "viewkeeper.toml").write_text("\n".join(lines))
        yield Shop(databases, tmp_path)
