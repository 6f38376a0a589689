"""The witness: what the sources committed and what the warehouse showed, learned without the pipeline.

One duty: to say whether every state of a live run was right, without believing any part of what is
being tested. `books` has the sources' transactions in the order of their commits, from the tables
themselves; `judging` finds the cut of each state by plain copies of the relations that are kept in the
same group, and has the checker compare all views with it. No feed, no decoder and no position is asked.
"""
