"""What people and programs get to know of a project and of its run.

One duty: to make documents and figures, each in one place, for every surface. `cli` prints them, `dashboard` puts them on pages. It
decides nothing and knows neither terminals nor browsers. Begin with `status`.

| | |
|---|---|
| `status`, `standing`, `health` | where run, sources and views stand; each figure by one function; verdicts on them |
| `explain`, `check`, `advice`, `history` | documents of the commands with these names |
| `run_state`, `run_log`, `metrics`, `traffic` | what a run's events become: the file beside the project, JSON lines, Prometheus' figures, what was asked |
| `ledger_tail`, `positions`, `values` | the ledger followed, rows counted; positions in words; values as JSON |
"""
