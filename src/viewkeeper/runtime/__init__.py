"""Drives the pure core live: feeds, integrator, view managers, warehouse, recovery.

One duty: to carry messages between real sources, the protocols and the warehouse, in the right order.
It must not know how a protocol decides. Begin with `keeper`, what users hold, and follow a transaction
from `feeds` to `epochs`.

| | |
|---|---|
| `keeper`, `open_project`, `querying`, `running`, `pipeline`, `surroundings`, `settings`, `remembering`, `memory` | a project opened; what readers ask; a run; all that it consists of |
| `feeds`, `intake`, `jobs` | transactions on their way in, numbered and put into batches |
| `group`, `keeping`, `epochs` | views that move together, and what they commit |
| `managers`, `virtual_views` | who keeps each view: batched SWEEP, or the protocol that its text names |
| `asking`, `foresight`, `exact_cuts`, `shared_cuts`, `batch_end`, `source_joins`, `change_tables`, `stores`, `pacing` | questions to sources and stores, and changes as tables |
| `contents`, `bulk_reading`, `executor_reading`, `row_estimates` | whole relations at exactly one cut |
| `adapting`, `evolution_log` | schema changes |
| `audit`, `auditor`, `sampling` | views computed anew, to be compared |
| `view_files`, `views_folder`, `file_updates` | the project's views, and their files |
| `requests`, `run_state`, `standing`, `run_log`, `json_files`, `report`, `metrics`, `traffic`, `message_counts`, `security`, `faults` | what people ask of a run, and what it tells them |
"""
