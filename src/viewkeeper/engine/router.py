"""The engine of a project: which views form a group, and what goes to which of them. Pure.

Feeds are shared by all groups, and every delivery goes to each group that reads its source. Views form a group
that share a relation, and those that one transaction was seen to change together (MVC, sections 6.1 and 6.2).
When groups become one, the new one takes over at the position in every feed where the old ones end; other groups
never notice. Views that stand at different cuts when a run begins are such groups: those behind come up alone to
where the foremost stands, and none shows anything beyond that before they are one. So no transaction that concerns
both is ever in two states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cmp_to_key
from typing import Any

from viewkeeper.engine import messages as out
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.limits import Limits
from viewkeeper.engine.machine import Finish, GroupMachine, Rest, Resume
from viewkeeper.engine.messages import Action, FeedDelivered, NoteWanted, TimePassed
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.engine.scope import Scope
from viewkeeper.engine.succession import read_by
from viewkeeper.engine.transaction_ties import Unit, Units
from viewkeeper.engine.unions import Compare, Union, is_same, latest
from viewkeeper.engine.view import View
from viewkeeper.errors import UsageError
from viewkeeper.merging.global_transactions import Warn
from viewkeeper.merging.groups import partition
from viewkeeper.sources.interface import (
    FeedItem,
    Position,
    RelationSchema,
    SchemaChange,
    SourceTransaction,
)
from viewkeeper.sources.transaction_block import TransactionBlock
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import RelationName
from viewkeeper.views.level import Level

# An action, and the group whose it is: its actions are carried out one after the other.
Addressed = tuple[int, Action]
# What concerns no group is carried out at once.
NO_GROUP = 0


@dataclass(frozen=True)
class Beginning:
    """What a run begins with. ``standing``: the cut at which each view stands that is not ``new``.

    ``routed``: for each source, where its feed begins. ``present``: for sources whose feed begins before that,
    where they are now: cuts show all up to there.
    """

    views: Mapping[str, View]
    new: frozenset[str]
    standing: Mapping[str, Mapping[str, Position]]
    routed: Mapping[str, Position]
    present: Mapping[str, Position]
    ties: tuple[tuple[str, ...], ...]
    evolution: Evolution
    # Of each view, the schema changes that its definition is behind, though it may stand before them.
    taken: Mapping[str, tuple[SchemaChange, ...]] = field(default_factory=dict)
    # Sources whose feed knows a table by its identity, whatever its name was.
    by_identity: frozenset[str] = frozenset()


class Engine:
    """All groups of a project."""

    def __init__(
        self,
        beginning: Beginning,
        compare: Compare,
        units: Units,
        limits: Limits = Limits(),  # noqa: B008  (immutable)
        make: Callable[..., GroupMachine] = GroupMachine,
    ) -> None:
        self._beginning = beginning
        self._compare = compare
        self._units = units
        self._limits = limits
        self._make = make
        # How far each source has been routed at most, and where its feed stands: behind that, unless it went back.
        self._routed = dict(beginning.routed)
        self._feeding = dict(beginning.routed)
        self._generation = dict.fromkeys(beginning.routed, 0)
        self.groups: list[GroupMachine] = []
        # Groups that have an end; until they have come to it they must know what cuts show.
        self.parting: list[GroupMachine] = []
        # All groups that there were: what was on its way for one that is over must be let go.
        self.made: dict[int, GroupMachine] = {}
        self._actions: list[Addressed] = []
        # What the groups' views were when it was last looked whether they share a relation.
        self._scopes: dict[int, Scope] = {}

    def begin(self, now: float) -> tuple[Addressed, ...]:
        """Form the groups."""
        self._form_groups(now)
        return self._taken(now)

    def step(self, event: Any, now: float) -> tuple[Addressed, ...]:
        """Take one event in: one of the whole engine's, or ``(group, event)``."""
        match event:
            case FeedDelivered(delivery):
                for released in self._units.released(delivery, now):
                    self._route(released, now)
            case TimePassed():
                for group in self.listening:
                    if now >= group.wake_at:
                        self._step(group, event, now)
            case NoteWanted(source):
                for group in tuple(self.groups):
                    if source in group.scope.read_sources:
                        self._step(group, event, now)
            case (int(number), inner):
                self._step(self.made[number], inner, now)
        return self._taken(now)

    def rest(self, numbers: Collection[int], now: float) -> tuple[Addressed, ...]:
        """Have groups finish what is at hand and begin nothing."""
        return self._all_step(Rest(), numbers, now)

    def resume(self, numbers: Collection[int], now: float) -> tuple[Addressed, ...]:
        return self._all_step(Resume(), numbers, now)

    def read_again(self, source: str, position: Position, now: float) -> tuple[Addressed, ...]:
        """Have a source's feed go back, as after a connection that was lost."""
        self._follow(source, position)
        return self._taken(now)

    def _all_step(self, event: Any, numbers: Collection[int], now: float) -> tuple[Addressed, ...]:
        for group in (*self.groups, *self.parting):
            if group.number in numbers:
                self._step(group, event, now)
        return self._taken(now)

    @property
    def wake_at(self) -> float:
        """When something is to be done though nothing happens."""
        return min((group.wake_at for group in self.listening), default=math.inf)

    def is_full(self, source: str) -> bool:
        """Whether the source's feed should wait before it brings more."""
        groups = [group for group in self.listening if source in group.scope.sources]
        # A group that waits for the feed must not wait for another one that has too much.
        return any(g.is_full for g in groups) and not any(g.needs_feeds for g in groups)

    @property
    def listening(self) -> tuple[GroupMachine, ...]:
        self.parting = [group for group in self.parting if not group.is_over]
        return (*self.groups, *self.parting)

    # -- steps of groups ---------------------------------------------------------------------------

    def _step(self, group: GroupMachine, event: Any, now: float) -> None:
        self._actions += [(group.number, action) for action in group.step(event, now)]

    def _taken(self, now: float) -> tuple[Addressed, ...]:
        """What is to be done; groups whose predecessors have ended begin."""
        moved = True
        while moved:
            moved = False
            for group in (*self.groups, *self.parting):
                waited_for = group.predecessors
                if waited_for and all(each.is_over for each in waited_for):
                    self._actions += [(group.number, a) for a in group.succeed(now)]
                    moved = True
            for group in self.parting:
                # One member's last step may be what another waited for.
                if group.may_end:
                    self._step(group, TimePassed(), now)
                    moved = moved or group.is_over
        actions, self._actions = self._actions, []
        return tuple(actions)

    # -- groups ------------------------------------------------------------------------------------

    def _form_groups(self, now: float) -> None:
        """The views' groups; where members stand at different cuts, they are brought to one first."""
        start = self._beginning
        reads = {name: view.definition.relations for name, view in start.views.items()}
        # Convergent views get groups of their own: they never delay others.
        levels = {name: view.definition.level for name, view in start.views.items()}
        loose = [name for name, level in levels.items() if level is Level.CONVERGENT]
        strict = {name: names for name, names in reads.items() if name not in loose}
        for views in (*partition(strict, start.ties), *((name,) for name in loose)):
            fresh = tuple(name for name in views if name in start.new)
            aligned = self._aligned(name for name in views if name not in start.new)
            since = self._present(fresh)
            if not aligned:
                self._begin(self._group(views, since, new=views), now)
            elif len(aligned) == 1 and not fresh:
                self._begin(self._group(*aligned[0]), now)
            else:
                # New views are written over the schemas of the present, and one that takes another's place
                # must not show what was before it: all begin behind what lies up to now.
                positions = [*(cut for _, cut in aligned), since]
                end = self._routed | latest(positions, self._compare)
                members = tuple(self._group(*each) for each in aligned)
                union = Union(members)
                self._take_over(members, views, end, now)
                for member in members:
                    self._step(member, Finish(end, union), now)

    def _present(self, views: Iterable[str]) -> dict[str, Position]:
        """Where the sources of some views are now, if feeds begin before that."""
        views_of = self._beginning.views
        used = {name for view in views for name in views_of[view].definition.sources}
        return {s: at for s, at in self._beginning.present.items() if s in used}

    def _aligned(self, views: Iterable[str]) -> list[tuple[list[str], dict[str, Position]]]:
        """Views that stand at one cut, together with it.

        First those that read a common source: one that reads no source of a cut fits it as well as any other, and
        must not be lost to the views that it shares a relation with.
        """
        cuts = [([view], dict(self._beginning.standing[view])) for view in views]
        for must_share in (True, False):
            found: list[tuple[list[str], dict[str, Position]]] = []
            for together, cut in cuts:
                for other in tuple(found):
                    common = cut.keys() & other[1].keys()
                    is_one = all(cut[source] == other[1][source] for source in common)
                    if is_one and (common or not must_share):
                        found.remove(other)
                        together, cut = [*other[0], *together], other[1] | cut
                found.append((together, cut))
            cuts = found
        return cuts

    def _group(
        self,
        views: Iterable[str],
        starts: Mapping[str, Position],
        new: Iterable[str] = (),
        predecessors: tuple[GroupMachine, ...] = (),
    ) -> GroupMachine:
        chosen = {name: self._beginning.views[name] for name in views}
        everywhere = {**self._routed, **starts}
        number = len(self.made) + 1
        group = self.made[number] = self._make(
            number,
            chosen,
            self._known_by(chosen),
            everywhere,
            self._compare,
            self._follow,
            self._limits,
            new,
            predecessors,
            () if predecessors else self._taken_by(chosen),
        )
        return group

    def _known_by(self, views: Mapping[str, View]) -> Evolution:
        """What is known of the sources, as these views know it: another group's may stand before a schema
        change that these have taken, or behind one that these have not."""
        evolution = self._beginning.evolution
        relations = {r.name: r for r in evolution.catalog.relations}
        for change in self._taken_by(views):
            # Of relations that no view reads, only this tells that the group has passed the change.
            known = relations.pop(RelationName(change.source, change.relation), None)
            if known is not None and change.renamed_to is not None:
                known = replace(known, name=RelationName(change.source, change.renamed_to))
            elif known is not None and change.after is not None:
                known = replace(known, schema=change.after.schema, key=change.after.key)
            else:
                continue
            relations[known.name] = known
        # New views are over the present; what others of the group read is known as it is where they stand.
        for name in sorted(views, key=lambda name: name not in self._beginning.new):
            relations |= {r.name: r for r in read_by(views[name].definition)}
        return replace(evolution, catalog=Catalog(tuple(relations.values())))

    def _taken_by(self, views: Collection[str]) -> list[SchemaChange]:
        """The changes that some views have taken, in each source's order."""
        taken = self._beginning.taken
        found: list[SchemaChange] = []
        for change in (change for view in views for change in taken.get(view, ())):
            if not _is_among(change, found) and not self._awaits(change, views):
                found.append(change)

        def order(one: SchemaChange, other: SchemaChange) -> int:
            return self._compare(one.source, one.position, other.position)

        by_source = {name: [c for c in found if c.source == name] for name in self._routed}
        return [c for changes in by_source.values() for c in sorted(changes, key=cmp_to_key(order))]

    def _awaits(self, change: SchemaChange, views: Collection[str]) -> bool:
        """Whether one of the views reads the relation and has not taken the change: another one that only watched the
        relation has, in a group that did not have this view."""
        start, name = self._beginning, RelationName(change.source, change.relation)
        return any(
            name in start.views[view].definition.relations
            and view not in start.new
            and not _is_among(change, start.taken.get(view, ()))
            for view in views
        )

    def _begin(self, group: GroupMachine, now: float) -> None:
        self.groups.append(group)
        self._step(group, TimePassed(), now)

    def _replace(self, members: tuple[GroupMachine, ...], views: Iterable[str], now: float) -> None:
        """One group instead of some, from here on, or from where the foremost of them begins."""
        end = latest([self._routed, *(member.starts for member in members)], self._compare)
        union = Union(members)
        for member in members:
            self.groups.remove(member)
        self._take_over(members, views, end, now)
        for member in members:
            self._step(member, Finish(end, union), now)

    def _take_over(
        self,
        members: tuple[GroupMachine, ...],
        views: Iterable[str],
        end: Mapping[str, Position],
        now: float,
    ) -> None:
        """Begin a group with these views where its members end; those it has beside are new."""
        names = list(views)
        known = {name for member in members for name in member.scope.views}
        new = [name for name in names if name not in known]
        self.parting += members
        self._begin(self._group(names, end, new, members), now)

    def _unite_sharing(self, now: float) -> None:
        """Groups whose views have come to share a relation become one: a schema change gave a view another one to read."""
        scopes = {g.number: g.scope for g in self.groups if not g.is_loose}
        if scopes == self._scopes:
            return
        self._scopes = scopes
        found = partition({str(number): scope.relations for number, scope in scopes.items()})
        for together in found:
            members = tuple(g for g in self.groups if str(g.number) in together)
            if len(members) > 1:
                self._replace(members, [name for g in members for name in g.scope.views], now)

    def _unite_tied(self, changed: set[RelationName], now: float) -> None:
        """Groups that one transaction, of one source or several, concerns become one before they see any
        of it. ``changed``: by that transaction."""
        concerned = tuple(
            g for g in self.groups if not g.is_loose and not changed.isdisjoint(g.scope.relations)
        )
        if len(concerned) > 1:
            views = {name: view for g in concerned for name, view in g.scope.views.items()}
            changing = (
                n for n, v in views.items() if not changed.isdisjoint(v.definition.relations)
            )
            self._actions.append((NO_GROUP, out.TieViews(frozenset(changing))))
            self._replace(concerned, views, now)

    # -- routing -----------------------------------------------------------------------------------

    def _route(self, released: Delivery | Unit | Warn, now: float) -> None:
        match released:
            case Warn(code, identity, message):
                self._actions.append((NO_GROUP, out.Warned(code, identity, message)))
            case Unit(parts):
                self._unite_tied(_changed_by(released.items), now)
                since = {part.source: self._feeding[part.source] for part in parts}
                unit = replace(released, since=since)
                for group in self.listening:
                    if not since.keys().isdisjoint(group.scope.sources):
                        self._step(group, unit, now)
            case Delivery(source, items, position):
                if len(self.groups) > 1:
                    self._unite_sharing(now)
                    for changed in changed_together(items):
                        self._unite_tied(changed, now)
                for group in self.listening:
                    if group.wants(released):
                        self._step(group, released, now)
                self._feeding[source] = position
                if self._compare(source, position, self._routed[source]) > 0:
                    self._routed[source] = position

    def _follow(self, source: str, position: Position) -> int:
        """Have the source's feed go back to a position, and read what the groups need now."""
        at = self._feeding[source]
        if self._compare(source, at, position) < 0:
            # It was sent back for another group just now, and has not brought all since: it never skips.
            position = at
        self._feeding[source] = position
        generation = self._generation[source] = self._generation[source] + 1
        self._units.go_back(source, generation)
        known = self.known_of(source)
        follow = out.FollowFeed(source, self.relations_of(source), position, known, generation)
        # At once: feeds belong to no group, and a later generation must not be overtaken by an earlier one.
        self._actions.append((NO_GROUP, follow))
        return generation

    def relations_of(self, source: str) -> tuple[str, ...]:
        """What the source's feed must bring."""
        names: list[str] = []
        for group in self.listening:
            if source in self._beginning.by_identity:
                names += group.scope.names_of(source)
            else:
                names += group.intake.names_of(source, self._feeding[source])
        return tuple(dict.fromkeys([*names, *self._units.relations_of(source)]))

    def known_of(self, source: str) -> dict[str, RelationSchema]:
        """What the source's relations are where its feed stands, as far as the groups know them."""
        at = self._feeding[source]
        known: dict[str, RelationSchema] = {}
        for group in self.listening:
            scope, taken = group.scope, group.intake.taken
            mine = schemas_of(scope.evolution.catalog, source, scope.names_of(source))
            for change in reversed([c for c in taken if c.source == source]):
                if change.before is not None and self._compare(source, change.position, at) > 0:
                    # The views are behind it, and the feed is not: there the relation was another.
                    mine.pop(change.renamed_to or change.relation, None)
                    mine[change.relation] = change.before
            known |= mine
        return known

    # -- what others ask ---------------------------------------------------------------------------

    def group_of(self, view: str) -> GroupMachine | None:
        """The group that keeps a view."""
        return next((group for group in self.groups if view in group.scope.views), None)

    def has_applied(self, targets: Mapping[str, Position]) -> bool:
        """Whether everything up to these positions is in the warehouse."""
        return all(
            self._compare(name, group.reached[name], target) >= 0
            for name, target in targets.items()
            for group in self.listening
            if name in group.scope.sources
        )

    @property
    def waiting_for_decision(self) -> tuple[GroupMachine, SchemaChange] | None:
        """A group that can't go on, and the schema change that somebody must decide on first."""
        for group in self.listening:
            change = group.waits_for_decision
            if change is not None:
                return group, change
        return None


def schemas_of(
    catalog: Catalog, source: str, relations: Iterable[str]
) -> dict[str, RelationSchema]:
    """What a source's relations are taken for; one that the catalog does not have is left out."""
    return {
        r.name.relation: RelationSchema(r.name.relation, r.schema, r.key, "")
        for r in catalog.relations
        if r.name.source == source and r.name.relation in set(relations)
    }


def not_kept(view: str) -> UsageError:
    return UsageError(
        "view-not-kept",
        f"the run does not keep view {view} now",
        detail="it is virtual, was retired, or its source can't go on",
        hint="viewkeeper status says which",
    )


def _is_among(change: SchemaChange, others: Iterable[SchemaChange]) -> bool:
    return any(is_same(change, other) for other in others)


def _changed_by(items: Iterable[FeedItem | TransactionBlock]) -> set[RelationName]:
    return {
        RelationName(item.source, change.relation)
        for item in items
        if isinstance(item, SourceTransaction)
        for change in item.changes
    }


def changed_together(items: Iterable[FeedItem | TransactionBlock]) -> Iterator[set[RelationName]]:
    """The relations that one transaction changes, for all that change several."""
    for item in items:
        found: Iterable[Collection[str]] = ()
        if isinstance(item, SourceTransaction):
            found = ({change.relation for change in item.changes},)
        elif isinstance(item, TransactionBlock) and len(item.changes) > 1:
            found = item.relations_together()
        for names in found:
            if len(names) > 1:
                yield {RelationName(item.source, name) for name in names}
