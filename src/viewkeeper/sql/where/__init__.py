"""WHERE, and subqueries wherever they stand.

| | |
|---|---|
| `conditions`, `predicates` | a condition taken apart; the parts that one joined row decides alone |
| `subqueries`, `membership`, `scalars` | which there are; EXISTS and IN as joins; a subquery as a value |
| `correlation`, `aside` | what a subquery reads of the row around it, and that row while another is joined |
"""
