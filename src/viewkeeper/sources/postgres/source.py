"""A PostgreSQL database as a source: it opens feeds and cuts, and answers for their exactness."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.backoff import Backoff, retrying
from viewkeeper.sources.interface import (
    Feed,
    Finding,
    Health,
    LinkState,
    Position,
    RelationSchema,
    Snapshot,
    Source,
)
from viewkeeper.sources.postgres import setup as statements
from viewkeeper.sources.postgres.catalog import (
    DESCRIPTION,
    NAMES,
    Described,
    described,
    names_to_oids,
    unknown_relation,
)
from viewkeeper.sources.postgres.codec import ColumnType
from viewkeeper.sources.postgres.feed import PostgresFeed
from viewkeeper.sources.postgres.health import health_of
from viewkeeper.sources.postgres.links import Links
from viewkeeper.sources.postgres.notes import NOTES
from viewkeeper.sources.postgres.position import (
    compare,
    feed_gap,
    lsn_number,
    make_position,
    require_same_history,
)
from viewkeeper.sources.postgres.preflight import findings
from viewkeeper.sources.postgres.quoting import quoted, quoted_by_name
from viewkeeper.sources.postgres.security import link_state, needless_rights
from viewkeeper.sources.postgres.shapes import TrackedRelations, replaced
from viewkeeper.sources.postgres.snapshot import PostgresSnapshot
from viewkeeper.sources.postgres.visibility_fence import Settling
from viewkeeper.sources.postgres.watching import Watch
from viewkeeper.sources.urls import SourceUrl
from viewkeeper.sources.wire import Damage

# Creating a slot waits for every transaction that is running.
SLOT_SECONDS_MAX = 120.0
PATIENCE = Backoff(patience_seconds=30.0)
# A commit is in the log a moment before it is visible.
VISIBLE_PATIENCE = Backoff(first_seconds=0.005, most_seconds=0.2, patience_seconds=3.0)
SLOT_PATIENCE = Backoff(first_seconds=0.05, most_seconds=0.5, patience_seconds=3.0)
# A place behind every other.
EVER = 1 << 64

_PLACE = """
SELECT pg_current_wal_flush_lsn()::text, pg_postmaster_start_time()::text,
       (SELECT system_identifier::text FROM pg_control_system()),
       (SELECT timeline_id FROM pg_control_checkpoint()),
       pg_snapshot_xmax(pg_current_snapshot())::text, pg_is_in_recovery()
"""

_SLOT = """
SELECT s.confirmed_flush_lsn::text, s.wal_status, s.plugin, s.database = current_database()
FROM pg_replication_slots s WHERE s.slot_name = %s
"""

_TYPES = """
WITH RECURSIVE base(asked, oid, modifier) AS (
  SELECT t.oid, t.oid, -1 FROM pg_type t WHERE t.oid = ANY(%s::oid[])
  UNION ALL
  SELECT base.asked, d.typbasetype, d.typtypmod FROM base JOIN pg_type d ON d.oid = base.oid
  WHERE d.typtype = 'd')
SELECT base.asked::int8, n.nspname || '.' || t.typname, t.typtype, base.modifier,
       CASE WHEN t.typcategory = 'A' THEN en.nspname || '.' || e.typname ELSE '' END,
       CASE WHEN t.typcategory = 'A' THEN e.typtype::text ELSE '' END
FROM base JOIN pg_type t ON t.oid = base.oid JOIN pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_type e ON e.oid = t.typelem LEFT JOIN pg_namespace en ON en.oid = e.typnamespace
WHERE t.typtype <> 'd'
"""

_PUBLISHED_SINCE = (
    """
SELECT o.oid::int8, k.since - '0/0', k.entry IS NOT DISTINCT FROM (
  SELECT """
    + statements.ENTRY
    + """ FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
  WHERE p.pubname = %s AND r.prrelid = o.oid)
FROM unnest(%s::oid[]) AS o(oid) LEFT JOIN {table} k ON k.oid = o.oid
"""
)


class PostgresSource(Source):
    """One PostgreSQL database. Cuts and feeds may be used in other threads than the source."""

    kind = "postgres"

    def __init__(
        self, name: str, url: SourceUrl, *, feed_url: SourceUrl, allow_setup: bool
    ) -> None:
        self.name = name
        self.instance = statements.instance_name(name, url)
        self._url, self._feed_url, self._allow_setup = url, feed_url, allow_setup
        self.links = Links(name, url)
        self.settling = Settling(name, self.links.ask)
        self._damage = Damage(name)
        self.watch = Watch(name, self.instance, self.links.look, self.links.hasten)
        # What cuts lock; checked again under the lock.
        self._described: dict[str, Described] = {}
        # What relations are taken for where the next feed starts.
        self._believed: dict[str, RelationSchema] = {}
        self._expects_ties = False

    def __repr__(self) -> str:
        return f"PostgresSource({self.name}, {self._url})"

    @property
    def address(self) -> dict[str, Any]:
        """With what another process opens this source. It has the password in it."""
        seconds = self._url.statement_seconds
        return {"name": self.name, "url": self._url.revealed(), "statement_seconds": seconds}

    @property
    def feed_user(self) -> str:
        """The role that reads the feed, as the server knows it."""
        if self._feed_url.user:
            return self._feed_url.user
        return str(self.links.ask("SELECT current_user::text")[0][0])

    def close(self) -> None:
        self.links.close()

    # -- schemas ----------------------------------------------------------------------------------

    def resolve(self, relations: Sequence[str] | None) -> dict[str, int]:
        """Names to oids; raises SourceError ``unknown-relation``."""
        return names_to_oids(self.links.ask(NAMES), relations, self.name)

    def describe(self, oids: Mapping[str, int]) -> dict[str, Described]:
        """The relations as the catalog has them now; one that is gone is left out."""
        found = {}
        for name, oid in oids.items():
            rows = self.links.ask(DESCRIPTION.format(relation="%s::oid"), [oid])
            if rows:
                found[name] = described(name, rows[0][0])
        return found

    def known(self, relations: Sequence[str], *, fresh: bool) -> dict[str, Described]:
        """As `describe`, perhaps from memory; raises SourceError for a relation that is not there."""
        if not relations:
            return {}
        remembered = {n: self._described[n] for n in relations if n in self._described}
        if len(remembered) == len(relations) and not fresh:
            return remembered
        now = self.describe(self.resolve(relations))
        for name in relations:
            if name not in now:
                raise unknown_relation(name, self.name)
        self._described |= now
        return now

    def blocks(self, oids: Sequence[int]) -> int:
        """How many blocks the largest of these tables has now."""
        rows = self.links.ask(
            "SELECT coalesce(max(pg_relation_size(c.oid)), 0) / current_setting('block_size')::int8 "
            "FROM pg_class c WHERE c.oid = ANY(%s::oid[]) AND c.relkind = 'r'",
            [list(oids)],
        )
        return int(rows[0][0])

    def row_estimate(self, relation: Described) -> int:
        """The planner's: the density that statistics tell, for as many blocks as there are now."""
        [(plan,)] = self.links.ask(f"EXPLAIN (FORMAT JSON) SELECT FROM {relation.quoted}")
        return int(plan[0]["Plan"]["Plan Rows"])

    def schemas(self, relations: Sequence[str] | None = None) -> Mapping[str, RelationSchema]:
        known = self.describe(self.resolve(relations))
        return {name: each.relation for name, each in known.items()}

    # -- setting up -------------------------------------------------------------------------------

    def preflight(self, relations: Sequence[str]) -> list[Finding]:
        return findings(self, relations)

    def link_states(self) -> list[LinkState]:
        return [link_state(self.name, url) for url in self._urls()]

    def needless_rights(self) -> list[Finding]:
        reads = self._feed_url.user if self._feed_url.user != self._url.user else None
        return [
            finding
            for url in self._urls()
            for finding in needless_rights(self.name, url, self.instance, feeder=reads)
        ]

    def _urls(self) -> list[SourceUrl]:
        """For questions and for the feed; one where it is the same."""
        is_same = self._url.user == self._feed_url.user
        return [self._url] if is_same else [self._url, self._feed_url]

    def setup_sql(self, relations: Sequence[str]) -> str:
        """Works before we can get in, too: its first part makes the roles."""
        tables = self._quoted(relations)
        users = sorted({self._url.user, self._feed_url.user} - {""})
        grants: list[str] = []
        history: list[str] = []
        for user in users:
            feeds = user == self._feed_url.user
            grants += statements.grant_statements(user, tables, feeds=feeds)
            history += statements.history_grants(self.instance, user)
        setup = statements.setup_statements(self.instance, tables, triggers=True)
        slot = [statements.slot_statement(self.instance)]
        return statements.script(
            self.instance,
            [
                ("roles: give a new one its password with \\password", grants),
                ("old values and schema changes in the feed, the publication", [*setup, *history]),
                ("the slot, last: from here on the server keeps the log for us", slot),
            ],
        )

    def _quoted(self, relations: Sequence[str]) -> list[str]:
        try:
            return [each.quoted for each in self.describe(self.resolve(relations)).values()]
        except SourceError as error:
            if error.code == "unknown-relation" and self.is_superuser():
                raise
            return [quoted_by_name(relation) for relation in relations]

    def setup(self, relations: Sequence[str]) -> None:
        self._require_permission()
        tables = [each.quoted for each in self.describe(self.resolve(relations)).values()]
        for statement in statements.setup_statements(
            self.instance, tables, triggers=self.is_superuser()
        ):
            self._patiently(statement)
        self.links.ask(statements.slot_statement(self.instance), seconds_max=SLOT_SECONDS_MAX)

    def renew(self, relations: Sequence[str]) -> None:
        self._require_permission()
        # Only a slot of ours that is beyond use; under our name, somebody else's stays.
        self.links.ask(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            "WHERE slot_name = %s AND active_pid IS NULL AND wal_status = 'lost' "
            "AND plugin = 'pgoutput' AND database = current_database()",
            [self.instance],
        )
        self.setup(relations)

    def teardown(self) -> None:
        self._require_permission()
        self.links.ask(
            "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots "
            "WHERE slot_name = %s AND active_pid IS NOT NULL",
            [self.instance],
        )
        self.links.ask(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            "WHERE slot_name = %s",
            [self.instance],
        )
        for statement in statements.teardown_statements(
            self.instance, triggers=self.is_superuser()
        ):
            self._patiently(statement)

    def _patiently(self, statement: str) -> None:
        """A lock that is not to be had soon is asked for again later: writers queue behind us."""
        retrying(
            lambda: self.links.ask(
                f"SET lock_timeout = '500ms'; SET synchronous_commit = local; {statement}"
            ),
            PATIENCE,
            randomness=random.Random(),
        )

    def _require_permission(self) -> None:
        if not self._allow_setup:
            raise UsageError(
                "setup-not-allowed",
                f"nothing may be created or removed at source {self.name}",
                detail="it was opened without the permission to set up",
                hint="run viewkeeper check --setup-sql and give the script to the source's owner, "
                "or start with --allow-setup",
            )

    def is_superuser(self) -> bool:
        return bool(self.links.ask("SELECT current_setting('is_superuser') = 'on'")[0][0])

    # -- positions and feeds ----------------------------------------------------------------------

    def start_position(self) -> Position:
        # The flushed position, not the insert position: what is not on disk may be lost in a crash,
        # and a feed that waits beyond the log's new end would pass over what is written there then.
        flushed, _, system, timeline, _, _ = self._place()
        self.settling.draw_fence()
        return make_position(system, timeline, lsn_number(flushed))

    def _place(self) -> tuple[Any, ...]:
        return self.links.ask(_PLACE)[0]

    def compare_positions(self, left: Position, right: Position) -> int:
        return compare(left, right, self.name)

    def check_followed(self, relations: Mapping[str, Position]) -> None:
        """What was written while a table was not published is in no feed, also if it is again."""
        table = f"{quoted(self.instance)}.published"
        if not relations or not self._may_read(table):
            return
        names = self.links.ask(NAMES)
        oids: dict[str, int] = {}
        for relation in relations:
            with suppress(SourceError):  # one that is gone by now, the feed tells of
                oids |= names_to_oids(names, [relation], self.name)
        rows = self.links.ask(
            _PUBLISHED_SINCE.format(table=table), [self.instance, list(oids.values())]
        )
        found = {row[0]: row[1:] for row in rows}
        for name, oid in oids.items():
            since, is_so = found[oid]
            if since is None:
                raise replaced(self.name, name, "a statement while no run was there")
            if not is_so or int(since) > int(relations[name]["lsn"]):
                detail = f"{name} was not in it as it is, all the time since the views' last state"
                raise self.watch.lacking("not-published", detail)

    def _may_read(self, table: str) -> bool:
        asked = (
            "SELECT to_regclass(%s) IS NOT NULL AND has_table_privilege(to_regclass(%s), 'SELECT')"
        )
        try:
            return bool(self.links.ask(asked, [table, table])[0][0])
        except SourceError as error:
            if error.retryable:
                raise
            return False  # nor the schema

    def believe(self, known: Mapping[str, RelationSchema]) -> None:
        self._believed = dict(known)

    def expect_ties(self) -> None:
        self._expects_ties = True

    def feed(self, relations: Sequence[str], start: Position) -> Feed:
        known = self._describe_then(relations, start)
        self.settling.draw_fence()
        _, started, system, timeline, xid_near, _ = self._place()
        require_same_history(start, make_position(system, timeline, 0), self.name)
        self._require_slot(start)
        self.watch.begin(known.values())
        # Again: what the feed takes them for must not be older than what it is compared with.
        known = self._describe_then(relations, start)
        tracked = TrackedRelations(
            self.name,
            list(known.values()),
            self._look_up_types,
            self._describe_now,
            self._believed,
            self,
        )
        old_until = self._told_by_messages_until(start)
        # A feed of ours that was closed just now may still hold the slot for a moment.
        return retrying(
            lambda: PostgresFeed(
                self.name,
                self._feed_url,
                self.instance,
                tracked,
                start,
                life=started,
                xid_near=int(xid_near),
                watch=self.watch,
                old_until=old_until,
                expects_ties=self._expects_ties,
                damage=self._damage,
            ),
            SLOT_PATIENCE,
            randomness=random.Random(),
        )

    def _describe_then(self, relations: Sequence[str], start: Position) -> dict[str, Described]:
        """As `describe`; but what had another table's name at the start, or no longer has its own, as
        it was before that."""
        names = self.links.ask(NAMES)
        has_history = self._has_history()
        known: dict[str, Described] = {}
        for relation in relations:
            former = self._former(relation, start) if has_history else None
            try:
                now = self.describe(names_to_oids(names, [relation], self.name))[relation]
            except (SourceError, KeyError):
                if former is None:
                    raise unknown_relation(relation, self.name) from None
                known[relation] = former[0]
                continue
            is_other = former is not None and former[1] and former[0].oid != now.oid
            known[relation] = former[0] if former is not None and is_other else now
        return known

    def _told_by_messages_until(self, start: Position) -> int:
        """Where event triggers of an older set-up stopped to tell changes by messages; 0: before ``start``."""
        named, table = f"{self.instance}_ddl", f"{quoted(self.instance)}.published"
        asked = "SELECT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = %s)"
        if not self.links.ask(asked, [named])[0][0]:
            return 0
        if not self._may_read(table):
            return EVER
        asked = f"SELECT k.since - '0/0' FROM {table} k WHERE k.oid = to_regclass(%s)"
        rows = self.links.ask(asked, [f"{quoted(self.instance)}.{NOTES}"])
        until = int(rows[0][0]) if rows else EVER
        return until if until > int(start["lsn"]) else 0

    def _has_history(self) -> bool:
        table = f"{quoted(self.instance)}.{NOTES}"
        return bool(self.links.ask("SELECT to_regclass(%s) IS NOT NULL", [table])[0][0])

    def _former(self, relation: str, start: Position) -> tuple[Described, bool] | None:
        """What had the name before it was changed: the first change behind the start, else the last.

        And whether it was behind the start.
        """
        table = f"{quoted(self.instance)}.{NOTES}"
        rows = self.links.ask(
            f"SELECT h.description, h.lsn - '0/0' > %s FROM (SELECT h.number, h.description, "
            f"(to_jsonb(h) ->> 'lsn')::pg_lsn AS lsn FROM {table} h) h WHERE %s IN ("
            "CASE WHEN h.description ->> 'schema' = 'public' THEN h.description ->> 'name' END, "
            "(h.description ->> 'schema') || '.' || (h.description ->> 'name')) "
            "ORDER BY (h.lsn - '0/0' > %s) IS TRUE DESC, "
            "CASE WHEN h.lsn - '0/0' > %s THEN h.number ELSE -h.number END LIMIT 1",
            [int(start["lsn"]), relation, int(start["lsn"]), int(start["lsn"])],
        )
        return (described(relation, rows[0][0]), bool(rows[0][1])) if rows else None

    # -- asked by the feed, beside its stream -----------------------------------------------------

    def holder(self, name: str, xid: int) -> int | None:
        """The table that has a relation's name, once a transaction of the log is visible."""
        return retrying(
            lambda: self._holder(name, xid), VISIBLE_PATIENCE, randomness=random.Random()
        )

    def written_down(self, since: int, until: int, xid: int) -> list[int]:
        """The tables of which an older set-up wrote down a change between two places of the log."""
        retrying(lambda: self._require_visible(xid), VISIBLE_PATIENCE, randomness=random.Random())
        table = f"{quoted(self.instance)}.{NOTES}"
        if not self._may_read(table):
            return []
        asked = (
            f"SELECT DISTINCT (h.description ->> 'oid')::int8 FROM {table} h WHERE "
            "(to_jsonb(h) ->> 'note') IS NULL AND h.lsn - '0/0' BETWEEN %s AND %s ORDER BY 1"
        )
        return [row[0] for row in self.links.ask(asked, [since, until])]

    def _require_visible(self, xid: int) -> None:
        asked = "SELECT %s = 0 OR pg_visible_in_snapshot(%s::text::xid8, pg_current_snapshot())"
        if not self.links.ask(asked, [xid, xid])[0][0]:
            raise SourceError(
                "source-busy",
                f"a schema change of PostgreSQL source {self.name} is in its log and not visible yet",
                source=self.name,
                retryable=True,
                detail="a commit waits for a synchronous standby",
            )

    def _holder(self, name: str, xid: int) -> int | None:
        self._require_visible(xid)
        try:
            return self.resolve([name])[name]
        except SourceError as error:
            if error.code != "unknown-relation":
                raise
            return None

    def publishes(self, oid: int) -> bool:
        """Whether all changes of a table are in our publication."""
        return self.watch.publishes(oid)

    def _look_up_types(self, oids: Sequence[int]) -> Mapping[int, ColumnType]:
        rows = self.links.ask(_TYPES, [list(oids)])
        return {row[0]: ColumnType(row[1], row[2], row[3], row[4], row[5]) for row in rows}

    def _describe_now(self, oid: int, name: str) -> Described | None:
        return self.describe({name: oid}).get(name)

    def _require_slot(self, start: Position) -> None:
        """A slot asked for a place before its confirmed one would start later, silently."""
        rows = self.links.ask(_SLOT, [self.instance])
        if not rows:
            raise feed_gap(self.name, f"there is no slot {self.instance}")
        confirmed, wal_status, plugin, ours = rows[0]
        if plugin != "pgoutput" or not ours:
            raise feed_gap(
                self.name, f"the slot {self.instance} belongs to another database or plugin"
            )
        if wal_status == "lost":
            raise feed_gap(
                self.name, f"the server has removed the log that slot {self.instance} needs"
            )
        if confirmed is None or lsn_number(confirmed) > int(start["lsn"]):
            raise feed_gap(
                self.name,
                f"the slot {self.instance} has moved on to {confirmed}, beyond our position",
            )

    # -- cuts and health --------------------------------------------------------------------------

    def cut(self, relations: Sequence[str], shared: Mapping[str, Any] | None = None) -> Snapshot:
        try:
            return PostgresSnapshot(self, relations, shared)
        except SourceError as error:
            if error.code != "link-lost":
                raise
        # The connection was idle and has died since: once more with a new one.
        self.links.forget_idle()
        return PostgresSnapshot(self, relations, shared)

    def expect_cut(self) -> None:
        self.links.prepare()

    def health(self, reached: Position | None = None) -> Health:
        return health_of(self.links.ask, self.instance)
