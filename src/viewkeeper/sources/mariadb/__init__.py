"""MariaDB: the feed from its binary log in row format, cuts from its consistent snapshots.

What holds it together: a consistent snapshot knows its place in the binary log, and the log is the
order of commits, so a cut reflects exactly the transactions that end at or before its place. Where
that fails (XA, statements instead of rows, foreign-key cascades) the source is refused by name.

Begin with `snapshot` and `feed`; `binlog` takes the log apart, `ddl` judges the statements in it.

Knows one MariaDB server and nothing of views or protocols.
"""
