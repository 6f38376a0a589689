"""View extents as Delta tables, and one ledger that says what is there.

One duty: keep signed change rows of several views so that every committed state can be read, commit
them all at once or not at all together with the sources' positions, and keep the storage small and
quick. It must not know protocols, nor what a view computes. Begin with `warehouse`, as its users see it,
then `writer` and `entries`.

    warehouse/
      _epochs/            the ledger: a Delta table, the only commit point
      views/<view>/       columns of the view, _count (signed), _txn; in _lists the files of older states
      published/<view>/   the plain table of a view that asks for one
      _lease.json         a sign of life of the one writer
      _head.json          the newest entry that was acknowledged, so that a lost end of the ledger is found

A view's extent at transaction t is the sum of its rows numbered at most t. See docs/warehouse.md.
"""

from viewkeeper.warehouse.background import Background as Background
from viewkeeper.warehouse.background import Housekeeping as Housekeeping
from viewkeeper.warehouse.commits import Changes as Changes
from viewkeeper.warehouse.commits import EpochCommit as EpochCommit
from viewkeeper.warehouse.commits import Extent as Extent
from viewkeeper.warehouse.consolidation import Amortisation as Amortisation
from viewkeeper.warehouse.consolidation import consolidate as consolidate
from viewkeeper.warehouse.entries import Definition as Definition
from viewkeeper.warehouse.entries import Entry as Entry
from viewkeeper.warehouse.entries import ViewState as ViewState
from viewkeeper.warehouse.publishing import publish as publish
from viewkeeper.warehouse.retention import Retention as Retention
from viewkeeper.warehouse.vacuum import vacuum as vacuum
from viewkeeper.warehouse.warehouse import Snapshot as Snapshot
from viewkeeper.warehouse.warehouse import Warehouse as Warehouse
from viewkeeper.warehouse.writer import Writer as Writer
