"""A user's project: its file, its views' files, and `Keeper`, the project opened for work.

One duty: to bring what the user wrote together with what the sources and the warehouse have, and to run it. Begin
with `keeper`.

| | |
|---|---|
| `config`, `settings` | `viewkeeper.toml`, and what it means to the parts that do the work |
| `keeper`, `open_project`, `running`, `run_report`, `requests`, `querying` | a project opened; a run, its totals, and what people ask of it; readers' SQL |
| `view_files`, `views_folder`, `file_updates` | the project's views, and their files |
| `remembering`, `secrets`, `security` | the newest state that the project has seen; what no log may show; who can get at what |
"""
