"""The states of an evolving view's management, and what leads from one to the next (Figures 3 and 4).

| state | SC received | DU received | concurrent SC detected | done |
|---|---|---|---|---|
| Wait | VS | VM | | |
| VS | | | | VA |
| VA | | | Wait | Reset-VM |
| Reset-VM | | | Wait | Wait |
| VM | | | Wait | Wait |
"""

from __future__ import annotations

import enum


class State(enum.Enum):
    WAIT = "Wait"
    VS = "VS"
    VA = "VA"
    RESET_VM = "Reset-VM"
    VM = "VM"


class Happening(enum.Enum):
    """Figure 4."""

    SC_RECEIVED = "SCr"
    DU_RECEIVED = "DUr"
    CONCURRENT_SC_DETECTED = "CSCd"
    DONE = "Done"


TRANSITIONS = {
    (State.WAIT, Happening.SC_RECEIVED): State.VS,
    (State.WAIT, Happening.DU_RECEIVED): State.VM,
    (State.VS, Happening.DONE): State.VA,
    (State.VA, Happening.DONE): State.RESET_VM,
    (State.VA, Happening.CONCURRENT_SC_DETECTED): State.WAIT,
    (State.RESET_VM, Happening.DONE): State.WAIT,
    (State.RESET_VM, Happening.CONCURRENT_SC_DETECTED): State.WAIT,
    (State.VM, Happening.DONE): State.WAIT,
    (State.VM, Happening.CONCURRENT_SC_DETECTED): State.WAIT,
}
