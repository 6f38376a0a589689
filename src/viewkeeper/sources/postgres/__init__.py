"""PostgreSQL as a source: pgoutput for the feed, exported snapshots for cuts.

What makes its cuts exact is in `cut`: a snapshot and the xid of each transaction, never an LSN. Begin
there; `feed` turns `pgoutput`'s messages into transactions, `columns` thousands of them at once; they
come from the stream of `replication`, or, where many wait already, from a `backlog`. `tracking` knows what relations
looked like.

Knows one PostgreSQL database and nothing of views or protocols.
"""
