"""Drives the pure core live: feeds, view managers, warehouse, recovery.

One duty: to carry out what the engine wants done, with real sources, Spark and the warehouse, and to take back to it
what came of that. It decides nothing. Begin with `keeper`, what users hold, and follow a transaction from `feeds`
through `driver` and `group_work` to `epochs`.

| | |
|---|---|
| `keeper`, `open_project`, `querying`, `running`, `pipeline`, `surroundings`, `settings`, `remembering`, `memory` | a project opened; what readers ask; a run; all that it consists of |
| `feeds`, `driver`, `group_work`, `jobs` | transactions on their way to the engine, and its actions carried out |
| `epochs` | what all groups commit |
| `managers`, `virtual_views` | who keeps each view: batched SWEEP, or the protocol that its text names |
| `asking`, `foresight`, `shared_cuts`, `batch_end`, `source_joins`, `change_tables`, `stores`, `pacing` | questions to sources and stores, and changes as tables |
| `contents`, `bulk_reading`, `executor_reading`, `row_estimates` | whole relations at exactly one cut |
| `adapting`, `evolution_log` | schema changes |
| `audit`, `auditor`, `sampling` | views computed anew, to be compared |
| `view_files`, `views_folder`, `file_updates` | the project's views, and their files |
| `requests`, `run_state`, `standing`, `run_log`, `json_files`, `report`, `metrics`, `traffic`, `message_counts`, `security`, `faults` | what people ask of a run, and what it tells them |
"""
