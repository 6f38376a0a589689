"""What a run tells people and programs while it goes.

One duty: to put what happens into files, figures and totals. It decides nothing and asks no source.

| | |
|---|---|
| `run_state`, `run_log`, `report`, `metrics` | the file beside the project; JSON lines; totals of a run; Prometheus' figures |
"""
