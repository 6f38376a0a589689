"""Three autonomous databases of a small shop, one of each kind, with a folder for the project."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from live.sources.conftest import rig_class
from live.sources.rig import Database, Writer
from viewkeeper.views.definition import LOCAL, ViewDefinition
from witnessing.books import Books

KIND_OF = {"shop": "postgres", "crm": "mariadb", "geo": "sqlite"}


@dataclass
class Shop:
    """The databases, and a project folder over them."""

    databases: dict[str, Database]
    folder: Path
    # Since `witness`: what was committed by `run`, `commit` and all whom they serve.
    books: Books | None = None

    def run(self, source: str, *statements: str) -> None:
        """Some statements at one source, each its own transaction."""
        with closing(self.databases[source].writer()) as writer:
            for statement in statements:
                if self.books is None:
                    writer.run(statement)
                else:
                    writer.begin()
                    writer.run(statement)
                    self.commit(source, writer)

    def commit(self, source: str, writer: Writer) -> None:
        """End a writer's transaction."""
        if self.books is None:
            writer.commit()
        else:
            self.books.commit(source, writer)

    def witness(self, definitions: Iterable[ViewDefinition]) -> Books:
        """From now on all that is committed is known, as far as some views read it."""
        self.books = Books(
            {
                occurrence.name: occurrence.schema
                for definition in definitions
                for term in definition.all_terms
                for occurrence in term.occurrences
                if occurrence.source != LOCAL
            }
        )
        with contextlib.ExitStack() as stack:
            self.books.begin(
                {
                    source: stack.enter_context(closing(self.databases[source].writer()))
                    for source in self.books.sources
                }
            )
        return self.books

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
