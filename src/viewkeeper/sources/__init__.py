"""PostgreSQL, MariaDB and SQLite as sources: change feeds, exact cuts, queries, preflight.

One duty: to say exactly which transactions an answer reflects, whatever the database really does. It must
not know views or protocols. Begin with `interface`, what every kind offers, and `transaction_block`,
transactions as columns; then a kind's `source`, `feed` and `snapshot`.

The same thing has the same file name in every kind, and its SQL dialect is written nowhere else. In every kind:

- `source`: the source: relations, feeds, snapshots, positions compared
- `feed`: its transactions and schema changes, in its order
- `snapshot`: an open cut: what it reflects, and what it answers
- `position`: how far a feed was read, written down and compared
- `catalog`, `shapes`: what relations look like now, and looked like along the log
- `codec`: its values as ours
- `connection`, `quoting`: connections and their errors; names in its SQL
- `setup`, `preflight`, `health`: what it needs, whether it is there, how it is

Where two have a thing that the third has not, it has one name too: `columns`, `layout`, `reading` (keyed
reads), `security`, `stream` (the log over a connection).
"""
