"""An open project: its sources, and its views as they are to be kept.

Three things say what a view is: its file, the warehouse (which knows what it has become), and what its
sources have now. They are read once and hold until something asks for them again: files may be edited at any
time, and count when they are taken.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from viewkeeper.engine.schema_changes import Evolution, does_not_fit
from viewkeeper.engine.view import View, stored_lineage
from viewkeeper.errors import UsageError, ViewkeeperError
from viewkeeper.evolution.effects import Kind
from viewkeeper.evolution.knowledge_file import KnowledgeRead, entries_of, read_knowledge
from viewkeeper.evolution.lineage import Lineages
from viewkeeper.live.reading.virtual_views import is_virtual
from viewkeeper.project.config import ProjectConfig, SourceConfig, read_project
from viewkeeper.project.settings import heed_group, storage_of
from viewkeeper.project.view_files import WrittenViews, has_views
from viewkeeper.project.views_folder import (
    ReadViews,
    catalog_of,
    read_views,
    stored_relations,
    view_texts,
)
from viewkeeper.sources.interface import Source
from viewkeeper.sources.opening import open_source
from viewkeeper.spark.session import Spark
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.warehouse.entries import Definition, ViewState
from viewkeeper.warehouse.ledger import Ledger


def opened_source(settings: SourceConfig, *, allow_setup: bool = False) -> Source:
    """A source as the project describes it, for a look at it; close it after use."""
    return open_source(
        settings.name, settings.url, feed_url=settings.feed_url, allow_setup=allow_setup
    )


class OpenProject:
    """A project's sources and views. Nothing is connected before it is needed."""

    def __init__(self, config: ProjectConfig, *, allow_setup: bool = False) -> None:
        heed_group(config)
        self.config = config
        self.allow_setup = allow_setup
        self._resources = contextlib.ExitStack()
        self._sources: dict[str, Source] = {}
        self._spark: Spark | None = None
        # The texts that are in force: files may be changed, and count when they are taken.
        self._written: WrittenViews | None = None
        self._read: ReadViews | None = None
        # What each source was last found to have.
        self._relations: dict[str, tuple[CatalogRelation, ...]] = {}
        # Views that are to be refilled, and why.
        self._rebuilt: Mapping[str, str] = {}
        # Views whose files are damaged, as the warehouse's writer found.
        self._damaged: Mapping[str, ViewkeeperError] = {}

    def source(self, name: str) -> Source:
        """One of the project's sources, opened once."""
        if name not in self._sources:
            settings = self.config.source(name)
            opened = open_source(
                name,
                settings.url,
                allow_setup=self.allow_setup,
                feed_url=settings.feed_url,
                statement_seconds=settings.statement_seconds,
            )
            self._sources[name] = self._resources.enter_context(opened)
        return self._sources[name]

    @property
    def catalog(self) -> Catalog:
        """Every relation of every source."""
        for name in self.config.sources:
            if name not in self._relations:
                self._relations[name] = catalog_of({name: self.source(name)}).relations
        return Catalog(tuple(r for name in self.config.sources for r in self._relations[name]))

    @property
    def views(self) -> Mapping[str, View]:
        """The project's views, as far as they are kept: what has evolved with its sources is as it
        became, over the relations as the warehouse last knew them.

        Retired ones are left out, and those whose text is wrong (`bad_views`); raises UsageError when
        that leaves none.
        """
        read = self._read_views()
        for error in read.bad.values() if not read.views else ():
            raise error
        return read.views

    @property
    def read_views(self) -> Mapping[str, View]:
        """As `views`, and empty where every text is wrong."""
        return self._read_views().views

    @property
    def bad_views(self) -> Mapping[str, ViewkeeperError]:
        """Views that can't be kept as they are written or stored, and why; a file that can't be read at
        all is there by its own name. A damaged one can be rebuilt."""
        read = self._read_views()
        bad: dict[str, ViewkeeperError] = {
            name: error
            for name, error in self._damaged.items()
            if name in read.views and name not in self._rebuilt
        }
        bad |= read.bad
        for name, view in read.views.items():
            if name not in self.virtual_views:
                try:
                    _ = view.choice
                except UsageError as error:
                    bad[name] = error
        return bad

    @property
    def ended_views(self) -> Mapping[str, Definition]:
        """Views that a schema change has ended, with the story; a rebuild brings them back."""
        return self._read_views().ended

    @property
    def stopped_views(self) -> Mapping[str, UsageError]:
        """Of the ended ones those whose text does not fit their sources any more."""
        stories = {name: each.evolved for name, each in self.ended_views.items()}
        return {
            name: does_not_fit(name, story["reason"])
            for name, story in stories.items()
            if story["effect"] == Kind.STOPPED.value
        }

    @property
    def evolution(self) -> Evolution:
        """What is known of the sources' relations, and what can replace what."""
        known, found = self.known_catalog, self.knowledge
        unrecorded = self._unrecorded(found.knowledge.relations)
        there = tuple(r for r in known.relations if r.name not in unrecorded)
        return Evolution(Catalog(there), found.knowledge, entries_of(self.config.knowledge))

    @property
    def knowledge(self) -> KnowledgeRead:
        """What the project's file says can replace what, by the names that relations have now."""
        return read_knowledge(self.config.knowledge, self.known_catalog, self._lineage)

    @property
    def _lineage(self) -> Lineages:
        """What became of relations that files may still name as they were."""
        states = self._stored_views().values()
        return tuple(dict.fromkeys(e for s in states for e in stored_lineage(s.definition)))

    def _unrecorded(self, named: Iterable[RelationName]) -> frozenset[RelationName]:
        """Relations that no view reads, and whose changes their source does not record.

        They can't stand for another one yet; that must not stop the views that do not need them.
        """
        if self.allow_setup:
            return frozenset()  # they are about to be recorded
        views = self.read_views.values()
        read = {name for view in views for name in view.definition.relations}
        others = [r.name for r in self.catalog.relations if r.name in {*named} - read]
        sources = {name.source: self.source(name.source) for name in others}
        always = {name: _refused(source, ()) for name, source in sources.items()}
        return frozenset(
            name
            for name in others
            if _refused(sources[name.source], (name.relation,)) - always[name.source]
        )

    @property
    def known_catalog(self) -> Catalog:
        """The catalog, with the relations that views are over as they were when last heard of.

        Only of views that go on from there: what one that was retired or rewritten was over must not
        stand for a relation that has its name now.
        """
        known = {r.name: r for r in self.catalog.relations}
        for name, state in self._stored_views().items():
            view = self.read_views.get(name)
            goes_on = view is not None and view.written == state.definition.written
            if goes_on and name not in self._rebuilt:
                known |= {r.name: r for r in stored_relations(state.definition)}
        return Catalog(tuple(known.values()))

    def _stored_views(self) -> Mapping[str, ViewState]:
        storage = storage_of(self.config)
        return Ledger.open(storage).latest().shown_views if Ledger.exists(storage) else {}

    @property
    def written(self) -> WrittenViews:
        """The texts of the views that are in force; raises UsageError when there are none."""
        if self._written is None:
            self._written = view_texts(self.config.views_folder)
        return self._written

    def _read_views(self) -> ReadViews:
        if self._read is None:
            known = self.written, self.catalog, self._stored_views()
            self._read = read_views(*known, self._rebuilt, self.config.knowledge)
        return self._read

    def _left_alone(self) -> dict[str, None]:
        """Views that the warehouse has and that no right text speaks of: they stay as they are."""
        stored = self._stored_views()
        bad = {name for name in self.bad_views if name in stored}
        if self.written.hides:
            bad |= stored.keys() - self.views.keys() - self.ended_views.keys()
        return dict.fromkeys(sorted(bad))

    @property
    def virtual_views(self) -> tuple[str, ...]:
        """The views that are not kept, as their texts say."""
        virtual: list[str] = []
        if not has_views(self.config.views_folder):
            return ()
        for name, text in self.written.texts.items():
            with contextlib.suppress(UsageError):  # what is wrong with it, reading it says
                virtual += [name] if is_virtual(name, text) else []
        return tuple(virtual)

    # -- taking them again --------------------------------------------------------------------------

    def take_anew(self, views: Mapping[str, str], *, look_again: Collection[str] = ()) -> None:
        """From the next pipeline on, refill these views, as they are written now.

        ``views`` gives the reason for each; ``look_again`` names sources whose schemas are read as
        they are now. Raises UsageError when one of them does not fit, and then leaves all as it was.
        """
        with self._or_as_before():
            self._relations = {n: r for n, r in self._relations.items() if n not in look_again}
            now = view_texts(self.config.views_folder) if views else self.written
            for name in views:
                self._written = self.written.with_text(name, now)
            self._read, self._rebuilt = None, dict(views)
            for name in views:
                self._require_good(name)

    def take_written(self, *, look_again: Collection[str] = ()) -> None:
        """From the next pipeline on, keep the views as they are all written now, by the knowledge that
        the project's file has now.

        Raises UsageError when one of them does not fit, and then leaves all as it was.
        """
        with self._or_as_before():
            self._relations = {n: r for n, r in self._relations.items() if n not in look_again}
            self._written = view_texts(self.config.views_folder)
            fresh = read_project(self.config.folder).knowledge
            self.config = dataclasses.replace(self.config, knowledge=fresh)
            self._read, self._rebuilt = None, {}
            self.knowledge  # noqa: B018  (what is wrong with it must be said now)
            for name, error in self.bad_views.items():
                if name not in self._damaged:
                    raise error

    @contextlib.contextmanager
    def _or_as_before(self) -> Iterator[None]:
        before = self._relations, self._written, self._read, self._rebuilt, self.config
        try:
            yield
        except BaseException:
            self._relations, self._written, self._read, self._rebuilt, self.config = before
            raise

    def _require_good(self, view: str) -> None:
        error = self.bad_views.get(view)
        if error is not None:
            raise error
        self.known_view(view)

    def known_view(self, view: str) -> str:
        """Raises UsageError unless the project has a view of that name."""
        if view not in self.views:
            raise unknown_view(view, self.views)
        return view


def unknown_view(view: str, known: Iterable[str]) -> UsageError:
    """The project has no view of that name."""
    return UsageError(
        "unknown-view",
        f"the project has no view {view}",
        detail=f"its views are {', '.join(known) or 'none yet'}",
    )


def _refused(source: Source, relations: Sequence[str]) -> frozenset[str]:
    """What a source's check says must be mended first."""
    found = source.preflight(relations)
    return frozenset(f"{f.code} {f.message}" for f in found if f.severity == "refused")
