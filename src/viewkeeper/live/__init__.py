"""Carries out what the engine decides: with feeds, view managers, Spark and the warehouse.

One duty: to do what the engine wants done, with real sources, and to take back to it what came of that. It decides
nothing. Follow a transaction from `feeds` through `driver` and `group_work` to `epochs`.

| | |
|---|---|
| `pipeline`, `context` | a run's feeds, engine and groups; what all groups share |
| `feeds`, `driver`, `group_work`, `jobs` | transactions on their way to the engine, and its actions carried out |
| `epochs` | what all groups commit |
| `managers` | who keeps each view: batched SWEEP, or the protocol that its text names |
| `questions` | what sources and stores are asked, and changes as tables |
| `reading` | whole relations at exactly one cut: loads, adaptations, virtual views |
| `auditing` | views computed again from their sources, to be compared |
| `standing`, `evolution_log`, `json_files`, `process_memory` | what is not shown yet; schema changes for people to decide; small files; memory that goes back to the system |
"""
