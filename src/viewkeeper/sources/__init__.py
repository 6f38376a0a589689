"""PostgreSQL, MariaDB and SQLite as sources: change feeds, exact cuts, queries, preflight.

One duty: to say exactly which transactions an answer reflects, whatever the database really does.
Each kind is a package with the same file names inside. It must not know views or protocols. Begin with
`interface`, what every kind offers, and `stretch`, transactions as columns; then a kind's `source`, `feed` and
`cut`.
"""
