"""What Viewkeeper needs at a PostgreSQL server, as statements that its owner can read and run.

Order matters. REPLICA IDENTITY FULL comes before the publication: publishing a table without an
identity would make the owner's own UPDATE and DELETE fail. The publication comes before the slot: a
slot decodes with the catalog of its time and would fail on a publication that did not exist yet.

Everything bears the instance's name (``viewkeeper_<source>``), so that two projects can share a
server, and teardown gives every table the identity that it had before.

The functions of the event triggers run with their owner's rights in everybody's sessions. So what is in our
schema is ours or a superuser's, or the set-up stops; no name in them is looked up where somebody else can
put one (``pg_temp`` comes first unless it is named last); and nothing that a session can set switches them off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from viewkeeper.errors import UsageError
from viewkeeper.sources.postgres.catalog import DESCRIPTION
from viewkeeper.sources.postgres.notes import NOTE, NOTES
from viewkeeper.sources.postgres.quoting import quoted
from viewkeeper.sources.urls import SourceUrl

NAME_LENGTH_MAX = 50

# Commands after which a tracked relation may be another one. An event trigger fires for these only.
_TAGS = (
    "ALTER TABLE", "ALTER SCHEMA", "ALTER TYPE", "ALTER DOMAIN", "ALTER EXTENSION", "CREATE TABLE",
    "CREATE TABLE AS", "DROP TABLE", "DROP SCHEMA", "DROP TYPE", "DROP DOMAIN", "DROP EXTENSION",
    "DROP OWNED",
)  # fmt: skip


# Which row of the publication, and which of the table in it, each with the transaction that wrote it.
ENTRY = "p.oid::text || '/' || p.xmin::text || '/' || r.oid::text || '/' || r.xmin::text"
_ENTRIES = (
    "FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid"
)


def instance_name(source: str, url: SourceUrl) -> str:
    """The name of our slot, publication and schema there: the option ``instance`` or the source's."""
    chosen = url.options.get("instance")
    if chosen is not None:
        if not re.fullmatch(rf"viewkeeper_[a-z0-9_]{{1,{NAME_LENGTH_MAX}}}", chosen):
            raise UsageError(
                "bad-source-url",
                f"the option instance of source {source} can't be used",
                hint="write viewkeeper_ and then lower-case letters, digits and underscores",
            )
        return chosen
    return "viewkeeper_" + re.sub(r"[^a-z0-9_]", "_", source.lower())[:NAME_LENGTH_MAX]


def literal(text: str) -> str:
    """A SQL string constant, whatever standard_conforming_strings says."""
    escaped = text.replace("'", "''").replace("\\", "\\\\")
    return f" E'{escaped}'" if "\\" in text else f"'{escaped}'"


def _block(body: str) -> str:
    """An anonymous block. Names in it are anybody's, so its quotes must be ones that none of them holds."""
    tag = "$do$"
    while tag in body:
        tag = f"${tag.strip('$')}_$"
    return f"DO {tag} {body} {tag}"


def setup_statements(instance: str, tables: Sequence[str], *, triggers: bool) -> Iterator[str]:
    """Everything but the slot, for tables by their quoted names; each can be run again."""
    schema = quoted(instance)
    yield _require_ours(instance)
    yield f"CREATE SCHEMA IF NOT EXISTS {schema}"
    yield (
        f"CREATE TABLE IF NOT EXISTS {schema}.relation_state (oid oid PRIMARY KEY, "
        "description jsonb NOT NULL, rewritten boolean NOT NULL DEFAULT false)"
    )
    # What relations were before each change: a feed that starts in the past asks for old names. And
    # what became of them: these rows are in the feed.
    yield (
        f"CREATE TABLE IF NOT EXISTS {schema}.{NOTES} (number bigint GENERATED ALWAYS AS "
        "IDENTITY PRIMARY KEY, description jsonb NOT NULL)"
    )
    yield f"ALTER TABLE {schema}.{NOTES} ADD COLUMN IF NOT EXISTS lsn pg_lsn"
    yield (f"ALTER TABLE {schema}.{NOTES} ALTER COLUMN lsn SET DEFAULT pg_current_wal_insert_lsn()")
    yield f"ALTER TABLE {schema}.{NOTES} ADD COLUMN IF NOT EXISTS {NOTE} jsonb"
    yield (
        f"CREATE TABLE IF NOT EXISTS {schema}.former_identity (oid oid PRIMARY KEY, "
        "identity text NOT NULL)"
    )
    # Since when each table has been published as it is: one that was taken out and put back is not.
    yield (
        f"CREATE TABLE IF NOT EXISTS {schema}.published (oid oid PRIMARY KEY, entry text NOT NULL, "
        "since pg_lsn NOT NULL)"
    )
    yield f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC"
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC"
    for table in tables:
        yield _full_identity(schema, table)
    yield _publication_statement(instance)
    if triggers:
        # Published first: whatever the functions write from then on is in the feed.
        yield from _published_statements(instance, [f"{schema}.{quoted(NOTES)}"])
        yield from _trigger_statements(instance)
    for table in tables:
        name = literal(table)
        yield (
            f"INSERT INTO {schema}.relation_state (oid, description) "
            f"SELECT d.oid, d.description FROM (SELECT {name}::regclass::oid, "
            f"({DESCRIPTION.format(relation=name + '::regclass')})) "
            "AS d(oid, description) ON CONFLICT (oid) DO UPDATE SET description = EXCLUDED.description"
        )
    yield from _published_statements(instance, tables)


def _require_ours(instance: str) -> str:
    """Who owns our schema, or a thing in it, could give our functions another body."""
    things = " UNION ALL ".join(
        f"SELECT {owner}, {name}::text FROM pg_catalog.{table} WHERE {place} = "
        f"pg_catalog.to_regnamespace({literal(quoted(instance))})"
        for table, place, name, owner in (
            ("pg_namespace", "oid", "nspname", "nspowner"),
            ("pg_class", "relnamespace", "relname", "relowner"),
            ("pg_proc", "pronamespace", "proname", "proowner"),
        )
    )
    return _block(f"""DECLARE strange record; BEGIN
  SELECT o.rolname AS owner, t.name INTO strange FROM ({things}) AS t(owner, name)
    JOIN pg_catalog.pg_roles o ON o.oid = t.owner WHERE NOT o.rolsuper AND o.rolname <> current_user;
  IF strange.owner IS NOT NULL THEN
    RAISE EXCEPTION '% in the schema {instance} belongs to %, who could change what is set up there',
      strange.name, strange.owner USING HINT = 'see what it is, then DROP SCHEMA {instance} CASCADE';
  END IF;
END""")


def _full_identity(schema: str, table: str) -> str:
    """On the table and all its partitions; the root of a partitioned table decides for the feed.

    Only where it is needed, since ALTER TABLE waits for every running transaction on the table. What
    was there before is kept the first time, when it is the owner's, and `teardown` puts it back.
    """
    name = literal(table)
    return _block(f"""DECLARE each record; BEGIN
  FOR each IN SELECT c.oid, c.oid::regclass AS name, c.relreplident AS identity,
    (SELECT format('USING INDEX %I', x.relname) FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x
     ON x.oid = i.indexrelid WHERE i.indrelid = c.oid AND i.indisreplident) AS by_index
    FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'p') AND c.oid IN (
      SELECT {name}::regclass::oid UNION SELECT relid FROM pg_catalog.pg_partition_tree({name}))
  LOOP
    INSERT INTO {schema}.former_identity VALUES (each.oid, CASE each.identity WHEN 'd' THEN 'DEFAULT'
      WHEN 'n' THEN 'NOTHING' WHEN 'f' THEN 'FULL' ELSE each.by_index END) ON CONFLICT DO NOTHING;
    IF each.identity <> 'f' THEN
      EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', each.name);
    END IF;
  END LOOP;
END""")


def _publication_statement(instance: str) -> str:
    name, ours = quoted(instance), f"p.pubname = {literal(instance)}"
    options = "(publish = 'insert, update, delete, truncate', publish_via_partition_root = true)"
    return _block(
        f"BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_publication p WHERE {ours}) THEN "
        f"CREATE PUBLICATION {name} WITH {options}; "
        f"ELSIF EXISTS (SELECT FROM pg_catalog.pg_publication p WHERE {ours} AND NOT (p.pubinsert "
        "AND p.pubupdate AND p.pubdelete AND p.pubtruncate AND p.pubviaroot)) THEN "
        f"ALTER PUBLICATION {name} SET {options}; END IF; END"
    )


def _published_statements(instance: str, tables: Sequence[str]) -> Iterator[str]:
    name, ours = quoted(instance), f"p.pubname = {literal(instance)}"
    for table in tables:
        oid = f"{literal(table)}::regclass"
        # What a transaction wrote before its table was published is not in the feed, whenever it
        # commits: the lock waits for those that have written.
        yield _block(
            "DECLARE narrow boolean := (SELECT (to_jsonb(r) ->> 'prqual') IS NOT NULL OR "
            f"(to_jsonb(r) ->> 'prattrs') IS NOT NULL {_ENTRIES} WHERE {ours} AND r.prrelid = {oid}); "
            "BEGIN IF narrow IS DISTINCT FROM false THEN "
            f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE; "
            f"IF narrow THEN ALTER PUBLICATION {name} DROP TABLE {table}; END IF; "
            f"ALTER PUBLICATION {name} ADD TABLE {table}; END IF; END"
        )
        yield (
            f"INSERT INTO {name}.published AS k SELECT r.prrelid, {ENTRY}, "
            f"pg_catalog.pg_current_wal_insert_lsn() {_ENTRIES} WHERE {ours} AND r.prrelid = {oid} "
            "ON CONFLICT (oid) DO UPDATE SET entry = EXCLUDED.entry, since = EXCLUDED.since "
            "WHERE k.entry <> EXCLUDED.entry"
        )


def slot_statement(instance: str) -> str:
    return (
        f"SELECT pg_create_logical_replication_slot({literal(instance)}, 'pgoutput') "
        "WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_replication_slots "
        f"WHERE slot_name = {literal(instance)})"
    )


def _trigger_statements(instance: str) -> Iterator[str]:
    """Schema changes are not in the stream: a row of our own puts them there, in their place.

    The functions must never make the owner's own command fail: whatever goes wrong inside them
    becomes a row that says so. But for want of memory, locks or stack, which any session can bring about:
    then its command fails, and nothing is said.
    """
    schema = quoted(instance)
    path = "SET search_path = pg_catalog, pg_temp"
    yield (
        f"CREATE OR REPLACE FUNCTION {schema}.describe(relation oid) RETURNS jsonb LANGUAGE sql "
        f"STABLE {path} AS $vk$ {DESCRIPTION.format(relation='$1')} $vk$"
    )
    unclear = f"""EXCEPTION
  WHEN insufficient_resources OR program_limit_exceeded THEN RAISE;
  WHEN OTHERS THEN INSERT INTO {schema}.{NOTES} (description, {NOTE})
    VALUES ('{{}}', jsonb_build_object('tag', tg_tag, 'unclear', sqlerrm));
END $vk$"""
    header = f"RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER {path} AS $vk$"
    # Transactions in which note_ddl is just altering a partition: it need not be called for that.
    yield f"CREATE TABLE IF NOT EXISTS {schema}.altering (xid xid8 PRIMARY KEY)"
    yield f"REVOKE ALL ON {schema}.altering FROM PUBLIC"
    yield f"""CREATE OR REPLACE FUNCTION {schema}.note_ddl() {header}
DECLARE tracked record; found jsonb; leaf record;
BEGIN
  IF EXISTS (SELECT FROM {schema}.altering a WHERE a.xid = pg_current_xact_id_if_assigned()) THEN
    RETURN;
  END IF;
  -- A partition that is new in a tracked table: without old values its changes could not be delivered.
  FOR leaf IN SELECT c.oid::regclass AS name FROM {schema}.relation_state s
    CROSS JOIN LATERAL pg_partition_tree(s.oid) t JOIN pg_class c ON c.oid = t.relid
    WHERE c.relkind IN ('r', 'p') AND c.relreplident <> 'f' AND NOT s.description -> 'children'
      @> to_jsonb(c.oid::int8) AND c.oid <> s.oid
  LOOP
    INSERT INTO {schema}.altering VALUES (pg_current_xact_id());
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', leaf.name);
    DELETE FROM {schema}.altering a WHERE a.xid = pg_current_xact_id();
  END LOOP;
  FOR tracked IN SELECT s.oid, s.description, s.rewritten FROM {schema}.relation_state s ORDER BY 1
  LOOP
    found := {schema}.describe(tracked.oid);
    CONTINUE WHEN found IS NOT DISTINCT FROM tracked.description AND NOT tracked.rewritten;
    INSERT INTO {schema}.{NOTES} (description, {NOTE}) VALUES (tracked.description,
      jsonb_build_object('tag', tg_tag, 'before', tracked.description, 'after', found,
        'rewritten', tracked.rewritten));
    IF found IS NULL THEN
      DELETE FROM {schema}.relation_state s WHERE s.oid = tracked.oid;
    ELSE
      UPDATE {schema}.relation_state s SET description = found, rewritten = false
      WHERE s.oid = tracked.oid;
    END IF;
  END LOOP;
{unclear}"""
    # Reason 4: a column's type changed. The others keep every value that a view can read.
    yield f"""CREATE OR REPLACE FUNCTION {schema}.note_rewrite() {header}
BEGIN
  IF pg_event_trigger_table_rewrite_reason() & 4 <> 0 THEN
    UPDATE {schema}.relation_state s SET rewritten = true
    WHERE s.oid = pg_event_trigger_table_rewrite_oid() OR s.oid IN (
      SELECT a.relid FROM pg_partition_ancestors(pg_event_trigger_table_rewrite_oid()) a(relid));
  END IF;
{unclear}"""
    yield f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC"
    tags = ", ".join(literal(tag) for tag in _TAGS)
    for name, event in (
        ("ddl", f"ddl_command_end WHEN TAG IN ({tags}) EXECUTE FUNCTION {schema}.note_ddl()"),
        ("rewrite", f"table_rewrite EXECUTE FUNCTION {schema}.note_rewrite()"),
    ):
        trigger = quoted(f"{instance}_{name}")
        yield f"DROP EVENT TRIGGER IF EXISTS {trigger}"
        yield f"CREATE EVENT TRIGGER {trigger} ON {event}"
        # Also for sessions that replay changes with session_replication_role = replica.
        yield f"ALTER EVENT TRIGGER {trigger} ENABLE ALWAYS"


def history_grants(instance: str, user: str) -> Iterator[str]:
    """Old names, and since when tables are published, are looked up by the role that opens a feed."""
    schema = quoted(instance)
    yield f"GRANT USAGE ON SCHEMA {schema} TO {quoted(user)}"
    for table in ("relation_history", "published"):
        yield f"GRANT SELECT ON TABLE {schema}.{table} TO {quoted(user)}"


def grant_statements(user: str, tables: Sequence[str], *, feeds: bool) -> Iterator[str]:
    """The least a role needs: SELECT on the tables (LOCK TABLE wants it whole), and replication."""
    role = quoted(user)
    known = f"EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {literal(user)}"
    yield _block(f"BEGIN IF NOT {known}) THEN CREATE ROLE {role} LOGIN; END IF; END")
    if feeds:
        yield _block(
            f"BEGIN IF NOT {known} AND (rolreplication OR rolsuper)) THEN "
            f"ALTER ROLE {role} REPLICATION; END IF; END"
        )
    for table in tables:
        yield _block(
            f"BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', (SELECT n.nspname FROM "
            "pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE c.oid = {literal(table)}::regclass), {literal(user)}); END"
        )
        yield f"GRANT SELECT ON TABLE {table} TO {role}"


def script(instance: str, sections: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Statements as a psql script with a sentence above each part."""
    parts = [
        f"-- What Viewkeeper needs here, under the name {instance}. Run it as a superuser with psql.",
        "-- It needs wal_level = logical in postgresql.conf (and a restart, if it was not).",
        "-- In pg_hba.conf, let the roles in by TLS and scram-sha-256 only (hostssl), from where we run.",
        "SET search_path = pg_catalog, pg_temp;  -- no operator of somebody else's schema",
        "SET lock_timeout = '3s';  -- rather stop and be run again than make your writers wait",
        "SET synchronous_commit = local;  -- what is noted here must not be later than the log's end",
    ]
    for title, statements in sections:
        parts.append(f"\n-- {title}")
        parts += [statement.strip() + ";" for statement in statements]
    return "\n".join(parts) + "\n"


def teardown_statements(instance: str, *, triggers: bool) -> Iterator[str]:
    """Everything but the slot, in the opposite order. Safe when some of it is gone already."""
    schema = quoted(instance)
    if triggers:
        yield f"DROP EVENT TRIGGER IF EXISTS {quoted(f'{instance}_ddl')}"
        yield f"DROP EVENT TRIGGER IF EXISTS {quoted(f'{instance}_rewrite')}"
    yield f"DROP PUBLICATION IF EXISTS {schema}"
    yield _block(f"""DECLARE former record; BEGIN
  IF to_regclass({literal(f"{schema}.former_identity")}) IS NULL THEN RETURN; END IF;
  FOR former IN EXECUTE {literal(f"SELECT f.oid::regclass AS name, f.identity FROM {schema}.former_identity f JOIN pg_catalog.pg_class c ON c.oid = f.oid")}
  LOOP
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY %s', former.name, former.identity);
  END LOOP;
END""")
    yield f"DROP SCHEMA IF EXISTS {schema} CASCADE"
