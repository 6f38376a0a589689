"""Whole relations at exactly one cut.

One duty: to read relations as they were at the state that the warehouse stands at. Begin with `contents`.

| | |
|---|---|
| `contents` | relations at a cut, less what is not applied yet |
| `bulk_reading`, `executor_reading`, `row_estimates` | by several connections, or by Spark's executors; about how large they are |
| `virtual_views` | views that store nothing |
"""
