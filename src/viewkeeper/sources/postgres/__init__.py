"""PostgreSQL as a source: pgoutput for the feed, exported snapshots for cuts.

What makes its cuts exact is in `snapshot`: which xids PostgreSQL's own snapshot sees, never an LSN. Begin
there; `feed` turns `pgoutput`'s messages into transactions, `columns` thousands of them at once; they
come from a `stream`, or, where many wait already, from a `backlog`. `shapes` knows what relations
looked like.

Knows one PostgreSQL database and nothing of views or protocols.
"""
