"""SQLite as a source: a log that triggers write, and cuts that are one read transaction.

`tables` reads what a table is, `triggers` writes the SQL that records its changes, `layout` is how a
recorded row is laid out in the log, `setup` installs it all; `catalog` says what a snapshot of the
database records, `commits` finds where transactions end, `feed` and `snapshot` read, `wal_restart` lets
the WAL start over. Nothing here knows views or protocols. Decision 0027 says why the triggers look as they do,
0028 where transactions end.
"""
