"""Signed bags of rows and the operations on them: ⊕ ⊖ ⊗ σ π ⊥.

One duty: the algebra that all maintenance is written in, with `Bag` as its plain-Python reference.
It must not know Spark, databases, time, or what a view is. Begin with `relation`, what a relation can
do, then `bag`.

| | |
|---|---|
| `relation`, `bag`, `types` | the operations, their reference body, and the canonical form of every value |
| `expressions`, `inference`, `evaluation`, `functions`, `casts`, `like` | scalar expressions as data, their types, their meaning |
| `grouping`, `accumulation`, `measures`, `running` | GROUP BY over rows, and over changes of rows |
"""

from viewkeeper.algebra.bag import Bag as Bag
from viewkeeper.algebra.relation import Relation as Relation
from viewkeeper.algebra.types import Field as Field
from viewkeeper.algebra.types import Row as Row
from viewkeeper.algebra.types import Schema as Schema
from viewkeeper.algebra.types import Type as Type
from viewkeeper.algebra.types import Value as Value
