"""The merge process: which view changes become visible together, and in which order.

One duty: to hold the action lists of several view managers until all views can move to the next state
together, and to hand them to the warehouse in transactions whose order is safe. Paper: MVC (1997). It
must not know what a view change contains, who computed it, or how it reaches the warehouse. Begin with
`table` and `painting`.

| | |
|---|---|
| `messages`, `groups`, `global_transactions` | numbered updates, and who moves together |
| `table`, `rows`, `drawing` | the view update table |
| `painting` | which lists go together |
| `commit_order`, `merge_process` | in which order, for one group |
"""

from viewkeeper.merging.merge_process import MergeProcess as MergeProcess
from viewkeeper.merging.messages import ActionList as ActionList
from viewkeeper.merging.messages import ActionListArrived as ActionListArrived
from viewkeeper.merging.messages import CommitTransaction as CommitTransaction
from viewkeeper.merging.messages import RelevanceArrived as RelevanceArrived
from viewkeeper.merging.messages import WarehouseCommitted as WarehouseCommitted
from viewkeeper.merging.painting import Painting as Painting
from viewkeeper.merging.rows import Colour as Colour
from viewkeeper.merging.table import ViewUpdateTable as ViewUpdateTable
