"""PostgreSQL as a source: pgoutput for the feed, exported snapshots for cuts.

What makes its cuts exact is in `cut`: a snapshot and the xid of each transaction, never an LSN.
"""
