"""SQL text to a view definition.

One duty: to read a view's text, in full, or to say with line and column what of it can't be kept and
what to write instead. It must not know how a view is maintained. Begin with `parser`: `parse_view` and
`parse_with_references` are all that others need.

A package for each clause, in the order in which they use each other: `query` knows all below it,
`expressions` none of the others.

| in the order of reading | |
|---|---|
| `parser` | a whole text: its headers, its query, the definition |
| `sqltext`, `syntax`, `refusals`, `headers`, `remarks` | the text itself, its tree, what it must not contain, what is declared above it |
| `query` | whole queries: views over views, WITH, FROM, UNION |
| `select` | SELECT, GROUP BY, HAVING |
| `where` | WHERE, and subqueries wherever they stand |
| `joins` | what FROM gives: joined relations, flat, with outer joins taken apart |
| `expressions` | scalar expressions, and the names in them |
| `steps`, `naming` | the relations that a view makes on its way; the names of groups and aggregates |
"""
