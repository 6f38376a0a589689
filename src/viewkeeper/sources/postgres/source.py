"""A PostgreSQL database as a source: it opens feeds and cuts, and answers for their exactness."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.backoff import Backoff, retrying
from viewkeeper.sources.interface import (
    Cut,
    Feed,
    Finding,
    Health,
    Position,
    RelationSchema,
    Source,
)
from viewkeeper.sources.postgres import setup as statements
from viewkeeper.sources.postgres.catalogue import (
    DESCRIPTION,
    NAMES,
    Described,
    described,
    names_to_oids,
    quote,
    quoted_by_name,
    unknown_relation,
)
from viewkeeper.sources.postgres.codec import ColumnType
from viewkeeper.sources.postgres.cut import PostgresCut
from viewkeeper.sources.postgres.feed import PostgresFeed
from viewkeeper.sources.postgres.health import health_of
from viewkeeper.sources.postgres.links import Links
from viewkeeper.sources.postgres.position import (
    compare,
    feed_gap,
    lsn_number,
    make_position,
    require_same_history,
)
from viewkeeper.sources.postgres.preflight import findings
from viewkeeper.sources.postgres.settling import Settling
from viewkeeper.sources.postgres.tracking import TrackedRelations
from viewkeeper.sources.urls import SourceUrl

# Creating a slot waits for every transaction that is running.
SLOT_SECONDS_MAX = 120.0
PATIENCE = Backoff(patience_seconds=30.0)
SLOT_PATIENCE = Backoff(first_seconds=0.05, most_seconds=0.5, patience_seconds=3.0)

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
        # What cuts lock; checked again under the lock.
        self._described: dict[str, Described] = {}

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
        """The relations as the catalogue has them now; one that is gone is left out."""
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
            lambda: self.links.ask(f"SET lock_timeout = '500ms'; {statement}"),
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

    def feed(self, relations: Sequence[str], start: Position) -> Feed:
        known = self._describe_then(relations)
        self.settling.draw_fence()
        _, started, system, timeline, xid_near, _ = self._place()
        require_same_history(start, make_position(system, timeline, 0), self.name)
        self._require_slot(start)
        self._require_published(known)
        tracked = TrackedRelations(
            self.name, list(known.values()), self._look_up_types, self._describe_now
        )
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
            ),
            SLOT_PATIENCE,
            randomness=random.Random(),
        )

    def _describe_then(self, relations: Sequence[str]) -> dict[str, Described]:
        """As `describe`, and relations that were dropped or renamed since, as they were before."""
        names = self.links.ask(NAMES)
        known: dict[str, Described] = {}
        for relation in relations:
            try:
                known |= self.describe(names_to_oids(names, [relation], self.name))
            except SourceError:
                former = self._former(relation)
                if former is None:
                    raise
                known[relation] = former
        return known

    def _former(self, relation: str) -> Described | None:
        table = f"{quote(self.instance)}.relation_history"
        if not self.links.ask("SELECT to_regclass(%s) IS NOT NULL", [table])[0][0]:
            return None
        rows = self.links.ask(
            f"SELECT h.description FROM {table} h WHERE %s IN ("
            "CASE WHEN h.description ->> 'schema' = 'public' THEN h.description ->> 'name' END, "
            "(h.description ->> 'schema') || '.' || (h.description ->> 'name')) "
            "ORDER BY h.number DESC LIMIT 1",
            [relation],
        )
        return described(relation, rows[0][0]) if rows else None

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

    def _require_published(self, known: Mapping[str, Described]) -> None:
        """Of the relations that exist; one that is gone was published when its changes were made."""
        rows = self.links.ask(
            "SELECT c.relname::text FROM pg_class c WHERE c.oid = ANY(%s::oid[]) AND c.oid NOT IN "
            "(SELECT r.prrelid FROM pg_publication_rel r JOIN pg_publication p "
            "ON p.oid = r.prpubid WHERE p.pubname = %s)",
            [[each.oid for each in known.values()], self.instance],
        )
        if rows:
            raise SourceError(
                "not-published",
                f"relations of PostgreSQL source {self.name} are not in its publication",
                source=self.name,
                retryable=False,
                detail=", ".join(name for (name,) in rows),
                hint="viewkeeper check --setup-sql prints what its owner runs",
            )

    # -- cuts and health --------------------------------------------------------------------------

    def cut(self, relations: Sequence[str], shared: Mapping[str, Any] | None = None) -> Cut:
        try:
            return PostgresCut(self, relations, shared)
        except SourceError as error:
            if error.code != "link-lost":
                raise
        # The connection was idle and has died since: once more with a new one.
        self.links.forget_idle()
        return PostgresCut(self, relations, shared)

    def expect_cut(self) -> None:
        self.links.prepare()

    def health(self) -> Health:
        return health_of(self.links.ask, self.instance)
