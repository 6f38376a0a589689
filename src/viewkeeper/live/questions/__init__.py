"""Questions to sources and stores, and changes as tables.

One duty: to get a view manager the rows that it asks for, all of one batch at one cut per source. Begin with
`source_queries`.

| | |
|---|---|
| `source_queries`, `batch_end`, `source_joins` | questions of a batch; the sources as they are when exactly a batch is applied; joins by the source itself |
| `prefetching`, `shared_cuts`, `pacing` | questions in advance; cuts that several jobs use; the load that an owner allows |
| `change_tables`, `stores` | changed rows as tables; what is kept beside a view |
| `message_counts` | what was sent, to be held against the papers' figures |
"""
