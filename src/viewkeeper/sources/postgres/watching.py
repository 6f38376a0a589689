"""What a feed rests on beside the log, looked at with every cut and whenever a feed brings nothing.

A table that is taken out of the publication, or gets a row filter there, brings no more rows, and the log
does not say why. Without our event triggers it does not say either that a table was altered, or that another
one has its name. So all of that is looked at, in one statement. A catalog row's ``xmin`` is the transaction
that wrote it: what was changed and put back between two looks has another one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.errors import SourceError, rebuild_command
from viewkeeper.sources.interface import broken_query
from viewkeeper.sources.postgres.catalog import Described, differ
from viewkeeper.sources.postgres.notes import NOTES
from viewkeeper.sources.postgres.position import lsn_number
from viewkeeper.sources.postgres.setup import ENTRY, literal

Ask = Callable[[str], list[tuple[Any, ...]]]

# Whether a transaction is at work on a followed table in a way that may alter it. It keeps its locks until
# what it did is visible, a moment after its commit was written to the log. So this is asked first, by a
# separate statement: a session that has no locks any more is seen by the next one.
_ALTERING = """
SELECT set_config('viewkeeper.altering', (EXISTS (
  SELECT FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_locks x
  ON x.virtualtransaction = l.virtualtransaction AND x.locktype = 'transactionid' AND x.granted
  WHERE l.granted AND ((l.locktype = 'relation' AND l.relation = ANY('{{{oids}}}'::oid[])
    AND l.mode IN ('ShareUpdateExclusiveLock', 'ShareRowExclusiveLock', 'AccessExclusiveLock'))
    OR (l.locktype = 'object' AND l.classid = 'pg_catalog.pg_publication'::regclass))))::text, false);
"""

# A table's shape: changes whenever one of its catalog rows is written, also by what changes nothing for
# us. Its files: they are others once it was rewritten, vacuumed in full or truncated.
_FILES = """concat_ws('/', c.relfilenode, CASE WHEN c.relkind = 'p' THEN (
        SELECT string_agg(l.relfilenode::text, ',' ORDER BY l.oid)
        FROM pg_catalog.pg_partition_tree(c.oid) t JOIN pg_catalog.pg_class l ON l.oid = t.relid) END)"""
_SHAPE = """concat_ws('/', c.relnamespace, c.relname, c.xmin, c.relreplident, c.relpersistence, (
        SELECT string_agg(a.attnum::text || ':' || a.xmin::text, ',' ORDER BY a.attnum)
        FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0), (
        SELECT i.indexrelid::text || ':' || i.xmin::text FROM pg_catalog.pg_index i
        WHERE i.indrelid = c.oid AND i.indisprimary), CASE WHEN c.relkind = 'p' THEN (
        SELECT string_agg(l.oid::text || l.relreplident::text, ',' ORDER BY l.oid)
        FROM pg_catalog.pg_partition_tree(c.oid) t JOIN pg_catalog.pg_class l ON l.oid = t.relid) END)"""
_HOLDERS = """(
    SELECT coalesce(jsonb_object_agg(w.name, c.oid::int8), '{{}}')
    FROM jsonb_to_recordset({names}::jsonb) AS w(name text, place text, "table" text)
    JOIN pg_catalog.pg_namespace n ON n.nspname = w.place
    JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w."table"
    WHERE c.relkind IN ('r', 'p'))"""
_LOOK = """
SELECT jsonb_build_object(
  'lsn', pg_current_wal_insert_lsn()::text,
  'altering', {altering},
  'entries', (
    SELECT coalesce(jsonb_object_agg(r.prrelid::text, jsonb_build_array({entry},
      p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate AND p.pubviaroot
      AND (to_jsonb(r) ->> 'prqual') IS NULL AND (to_jsonb(r) ->> 'prattrs') IS NULL)), '{{}}')
    FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
    WHERE p.pubname = {instance}),
  'triggers', (
    SELECT coalesce(jsonb_agg(x.each ORDER BY x.each), '[]') FROM (
      SELECT t.evtname || '/' || t.oid::text || '/' || t.xmin::text
      FROM pg_catalog.pg_event_trigger t WHERE t.evtname IN ({triggers}) AND t.evtenabled = 'A'
      UNION ALL SELECT {entry} FROM pg_catalog.pg_publication_rel r
      JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
      JOIN pg_catalog.pg_class c ON c.oid = r.prrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE p.pubname = {instance} AND p.pubinsert AND (n.nspname, c.relname) = ({instance}, {notes})
        AND (to_jsonb(r) ->> 'prqual') IS NULL AND (to_jsonb(r) ->> 'prattrs') IS NULL) AS x(each)),
  'tables', (
    SELECT coalesce(jsonb_object_agg(c.oid::text, jsonb_build_array({shape}, {files})), '{{}}')
    FROM pg_catalog.pg_class c WHERE c.oid = ANY('{{{oids}}}'::oid[])),
  'holders', {holders}
)::text
"""
_TOKENS = (
    f"SELECT c.oid::int8, {_SHAPE}, {_FILES} FROM pg_catalog.pg_class c "
    "WHERE c.oid = ANY('{{{oids}}}'::oid[])"
)


@dataclass(frozen=True)
class Token:
    """Of one table: another one whenever its catalog rows, or its files, are others."""

    shape: str
    files: str


@dataclass(frozen=True)
class Seen:
    """What one look found; whatever it saw was written to the log before ``lsn``."""

    lsn: int
    # By table: its entry in the publication, and whether that leaves nothing out.
    entries: Mapping[int, tuple[str, bool]]
    # Our event triggers that are there and enabled, and how the table is published that they write.
    triggers: tuple[str, ...]
    tables: Mapping[int, Token]
    # The table that has a name now.
    holders: Mapping[str, int]
    # Whether a transaction may just be altering what was looked at.
    is_altering: bool = False

    @classmethod
    def parsed(cls, text: str) -> Seen:
        found = json.loads(text)
        return cls(
            lsn_number(found["lsn"]),
            {int(oid): (entry, whole) for oid, (entry, whole) in found["entries"].items()},
            tuple(found["triggers"]),
            {int(oid): Token(*token) for oid, token in found["tables"].items()},
            found["holders"],
            found["altering"],
        )


class Watch:
    """Of one source. Followed tables are set by its feed; cuts are judged from any thread."""

    def __init__(
        self, source: str, instance: str, ask: Ask, hasten: Callable[[], None] = lambda: None
    ) -> None:
        self._source, self._instance, self._ask = source, instance, ask
        # Has the log move on, so that a feed passes what was seen also where there are no writers.
        self.hasten = hasten
        self._lock = threading.Lock()
        self._followed: dict[int, Described] = {}
        # How each table was published when it was first followed, and the triggers then.
        self._entries: dict[int, str] = {}
        self._triggers: tuple[str, ...] | None = None
        # The tables as the feed knows them; relations that it has not told the truth about yet.
        self._tokens: dict[int, Token] = {}
        self._doubted: frozenset[str] = frozenset()

    def begin(self, relations: Iterable[Described]) -> Seen:
        """A feed of these tables begins; raises SourceError where it would lack rows of one."""
        self.follow(relations)
        seen = self.look()
        with self._lock:
            self._triggers = seen.triggers if self._triggers is None else self._triggers
            # What an earlier feed knew stays: a change since then is still to be delivered.
            self._tokens = {**seen.tables, **self._tokens}
        return seen

    def follow(self, relations: Iterable[Described], doubted: Iterable[str] = ()) -> None:
        """The tables that the feed brings by now, and which of them are not what it has told."""
        with self._lock:
            self._followed = {each.oid: each for each in relations}
            self._doubted = frozenset(doubted)

    def look(self) -> Seen:
        """What there is now; raises SourceError where the feed lacks rows."""
        seen = self._seen()
        with self._lock:
            for oid, (entry, whole) in seen.entries.items():
                if oid in self._followed and whole:
                    self._entries.setdefault(oid, entry)
        self._require_published(seen)
        return seen

    def differs(self, seen: Seen, oid: int) -> bool:
        """Whether a table, or its name, is not as the feed knows it."""
        with self._lock:
            each = self._followed[oid]
            return seen.tables.get(oid) != self._tokens.get(oid) or (
                seen.holders.get(each.name) != oid
            )

    def is_rewritten(self, seen: Seen, oid: int) -> bool:
        """Whether a table has other files, and nothing in the feed would say why."""
        now, known = seen.tables.get(oid), self._tokens.get(oid)
        is_other = now is not None and known is not None and now.files != known.files
        return is_other and not self.tells(seen)

    def adopt(self, seen: Seen, oid: int) -> None:
        """The feed knows a table as it was seen."""
        with self._lock:
            if oid in seen.tables:
                self._tokens[oid] = seen.tables[oid]

    def publishes(self, oid: int) -> bool:
        """Whether a table that is not followed yet is published now, with nothing left out."""
        return self._seen().entries.get(oid, ("", False))[1]

    def _seen(self) -> Seen:
        with self._lock:
            followed = tuple(self._followed.values())
        names = [
            {"name": each.name, "place": each.schema_name, "table": each.table_name}
            for each in followed
        ]
        first = _ALTERING.format(oids=self._oids)
        look = self._statement(
            altering="current_setting('viewkeeper.altering')::boolean",
            shape=_SHAPE,
            holders=_HOLDERS.format(names=literal(json.dumps(names))),
        )
        return Seen.parsed(self._ask(first + look)[0][0])

    def tokens(self, oids: Iterable[int]) -> dict[int, Token]:
        """What tables are now; one that is gone has none."""
        rows = self._ask(_TOKENS.format(oids=",".join(map(str, oids))))
        return {oid: Token(shape, files) for oid, shape, files in rows}

    @property
    def _oids(self) -> str:
        with self._lock:
            return ",".join(map(str, self._followed))

    @property
    def statement(self) -> str:
        """A query of one text; for `judge`, in the statement that takes a cut's snapshot.

        A cut describes its tables by itself, so their shapes and names are left out.
        """
        return self._statement(altering="false", shape="''", holders="'{}'::jsonb")

    def _statement(self, *, altering: str, shape: str, holders: str) -> str:
        triggers = (literal(f"{self._instance}_{name}") for name in ("ddl", "rewrite"))
        return _LOOK.format(
            entry=ENTRY,
            altering=altering,
            instance=literal(self._instance),
            triggers=", ".join(triggers),
            notes=literal(NOTES),
            oids=self._oids,
            shape=shape,
            files=_FILES,
            holders=holders,
        )

    def tells(self, seen: Seen) -> bool:
        """Whether our triggers put every schema change into the feed since it was begun."""
        return len(seen.triggers) == 3 and seen.triggers == self._triggers

    def judge(self, text: str, relations: Mapping[str, Described]) -> None:
        """Of a cut: raise SourceError unless the feed brings all that it shows, as it shows it."""
        seen = Seen.parsed(text)
        self._require_published(seen)
        if self.tells(seen):
            return
        with self._lock:
            known = {each.name: each for each in self._followed.values()}
            changed = [
                name
                for name, now in sorted(relations.items())
                if name in known and self._is_other(seen, known[name], now)
            ]
        if changed:
            # The feed looks too, and tells the change in a moment.
            detail = f"{', '.join(changed)} changed, and no event trigger recorded it"
            raise broken_query(self._source, detail)

    def _is_other(self, seen: Seen, known: Described, now: Described) -> bool:
        if known.oid != now.oid or known.name in self._doubted or differ(known, now):
            return True
        return self.is_rewritten(seen, now.oid)

    def _require_published(self, seen: Seen) -> None:
        with self._lock:
            known = [
                (each.name, *seen.entries.get(oid, ("", False)), self._entries.get(oid))
                for oid, each in self._followed.items()
                if oid in seen.tables
            ]
        for name, entry, whole, before in known:
            if not entry:
                raise self.lacking("not-published", f"{name} is not in it")
            if not whole:
                raise self.lacking(
                    "publication-filtered", f"it leaves out rows or columns of {name}"
                )
            if before is not None and entry != before:
                detail = f"{name} was taken out of it, or altered in it, and put back"
                raise self.lacking("not-published", detail)

    def lacking(self, code: str, detail: str) -> SourceError:
        return SourceError(
            code,
            f"the publication {self._instance} of PostgreSQL source {self._source} does not bring "
            "every change",
            source=self._source,
            retryable=False,
            detail=detail,
            hint=rebuild_command(self._source, allow_setup=True),
        )
