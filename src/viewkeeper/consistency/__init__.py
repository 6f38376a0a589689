"""Histories and the checker: which level of consistency did this run reach?

One duty: to decide, from what the sources committed and what a reader of the warehouse could see,
which level holds, with a witness where it fails. It is written from the definitions and must not know
which protocol ran. Begin with `checker`; `delivery` asks the same of one order, `histories`
has the views at any cut, `violation` the witness.
"""

from viewkeeper.consistency.checker import Verdict as Verdict
from viewkeeper.consistency.checker import check as check
from viewkeeper.consistency.delivery import check_order as check_order
from viewkeeper.consistency.histories import SourceHistories as SourceHistories
from viewkeeper.consistency.violation import Violation as Violation
