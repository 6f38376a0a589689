"""Joined relations as FROM gives them.

| | |
|---|---|
| `flattening`, `gathering` | relations, joins and subqueries as one flat join; several made one step |
| `outer_joins`, `partners` | outer, semi and anti joins as sums of joins; rows that match nothing |
"""
