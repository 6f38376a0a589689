"""Event triggers as set-ups had them that told schema changes by logical messages, for tests of what became of
them. They are put in place of today's, and their table out of the publication."""

from __future__ import annotations

from viewkeeper.sources.postgres.setup import _TAGS

_HEADER = (
    "RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $vk$"
)
_UNCLEAR = """EXCEPTION WHEN OTHERS THEN PERFORM pg_logical_emit_message(true, '{0}',
  jsonb_build_object('tag', tg_tag, 'unclear', sqlerrm)::text); END $vk$"""
_NOTE_DDL = """CREATE OR REPLACE FUNCTION {0}.note_ddl() {1}
DECLARE tracked record; found jsonb;
BEGIN
  IF current_setting('{0}.busy', true) = 'on' THEN RETURN; END IF;
  FOR tracked IN SELECT s.oid, s.description, s.rewritten FROM {0}.relation_state s ORDER BY 1
  LOOP
    found := {0}.describe(tracked.oid);
    CONTINUE WHEN found IS NOT DISTINCT FROM tracked.description AND NOT tracked.rewritten;
    PERFORM pg_logical_emit_message(true, '{0}', jsonb_build_object(
      'tag', tg_tag, 'statement', left(current_query(), 10000),
      'before', tracked.description, 'after', found, 'rewritten', tracked.rewritten)::text);
    INSERT INTO {0}.relation_history (description) VALUES (tracked.description);
    IF found IS NULL THEN
      DELETE FROM {0}.relation_state s WHERE s.oid = tracked.oid;
    ELSE
      UPDATE {0}.relation_state s SET description = found, rewritten = false
      WHERE s.oid = tracked.oid;
    END IF;
  END LOOP;
"""
_NOTE_REWRITE = """CREATE OR REPLACE FUNCTION {0}.note_rewrite() {1}
BEGIN
  IF pg_event_trigger_table_rewrite_reason() & 4 <> 0 THEN
    UPDATE {0}.relation_state s SET rewritten = true WHERE s.oid = pg_event_trigger_table_rewrite_oid();
  END IF;
"""


def make_old(writer, instance: str) -> None:
    """As if the source had been set up long ago."""
    for event in ("ddl", "rewrite"):
        writer.run(f"DROP EVENT TRIGGER {instance}_{event}")
    writer.run(f"ALTER PUBLICATION {instance} DROP TABLE {instance}.relation_history")
    writer.run(
        f"DELETE FROM {instance}.published WHERE oid = '{instance}.relation_history'::regclass"
    )
    writer.run(f"ALTER TABLE {instance}.relation_history DROP COLUMN note")
    writer.run(f"DROP TABLE {instance}.altering")
    writer.run(_NOTE_DDL.format(instance, _HEADER) + _UNCLEAR.format(instance))
    writer.run(_NOTE_REWRITE.format(instance, _HEADER) + _UNCLEAR.format(instance))
    tags = ", ".join(f"'{tag}'" for tag in _TAGS)
    for name, event in (
        ("ddl", f"ddl_command_end WHEN TAG IN ({tags}) EXECUTE FUNCTION {instance}.note_ddl()"),
        ("rewrite", f"table_rewrite EXECUTE FUNCTION {instance}.note_rewrite()"),
    ):
        writer.run(f"CREATE EVENT TRIGGER {instance}_{name} ON {event}")
        writer.run(f"ALTER EVENT TRIGGER {instance}_{name} ENABLE ALWAYS")
