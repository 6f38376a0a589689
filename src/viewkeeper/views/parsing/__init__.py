"""SQL text to a view definition.

One duty: to read a view's text, in full, or to say with line and column what of it can't be kept and
what to write instead. It must not know how a view is maintained. Begin with `parser`: `parse_view` and
`parse_with_references` are all that others need.

| in the order of reading | |
|---|---|
| `parser`, `sqltext`, `syntax`, `refusals`, `headers`, `remarks` | the whole; the text itself, its tree, what it must not contain, what is declared above it |
| `references`, `queries`, `set_operations`, `steps` | whole queries: views over views, WITH, UNION, and the relations that a view makes on its way |
| `from_clause`, `flattening`, `gathering`, `outer_joins`, `partners` | FROM |
| `conditions`, `predicates`, `subqueries`, `membership`, `scalars`, `correlation`, `aside` | WHERE, and subqueries wherever they stand |
| `outputs`, `aggregation`, `naming`, `regrouping` | SELECT, GROUP BY, HAVING |
| `translation`, `scope`, `columns`, `calls`, `constants`, `literals`, `intervals` | expressions |
"""
