"""From SQL text to a view definition, and how its parts fit together.

One duty: what a view *is*: its sources, occurrences, join graph, predicates and outputs, and the
fragment that each source can answer. It must not know how a view is maintained.
"""

from viewkeeper.views.definition import Grouping as Grouping
from viewkeeper.views.definition import Occurrence as Occurrence
from viewkeeper.views.definition import RelationName as RelationName
from viewkeeper.views.definition import Term as Term
from viewkeeper.views.definition import ViewDefinition as ViewDefinition
from viewkeeper.views.level import Level as Level
