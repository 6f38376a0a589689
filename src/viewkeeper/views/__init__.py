"""What a view is, and how its parts fit together.

One duty: what a view *is*: its sources, occurrences, join graph, predicates and outputs, and what
follows from that alone. It must not know how a view is maintained. Begin with `definition`.

| | |
|---|---|
| `definition`, `level`, `catalog`, `names` | a view as data, and what it may name |
| `assembly`, `pruning`, `fragments`, `sampling`, `relevance` | putting a term together, reading less than everything for it, and which rows count for it |
| `planning`, `upkeep`, `keeping`, `advice` | what is asked of whom, what must be kept beside the view, and what each costs |
| `spark_sql`, `printing`, `storing`, `describe` | a definition as text that people, Spark, files and programs read |
"""

from viewkeeper.views.definition import Grouping as Grouping
from viewkeeper.views.definition import Occurrence as Occurrence
from viewkeeper.views.definition import RelationName as RelationName
from viewkeeper.views.definition import Term as Term
from viewkeeper.views.definition import ViewDefinition as ViewDefinition
from viewkeeper.views.level import Level as Level
