"""SQLite as a source: a log that triggers write, and cuts that are one read transaction.

`tables` reads what a table is, `triggers` writes the SQL that records its changes, `layout` is how a
recorded row is laid out in the log, `setup` installs it all; `catalogue` says what a snapshot of the
database records, `commits` finds where transactions end, `feed` and `cut` read, `relief` lets the WAL
start over. Nothing here knows views or protocols. Decision 0027 tells why the triggers look as they do, 0028 where transactions end.
"""
