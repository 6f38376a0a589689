"""Maintenance protocols: one file for each, a pure state machine, ``step(event) -> actions``.

One duty: to decide what to ask of whom, and which change of the view follows. A protocol gets events
(`messages`) and returns actions in the order in which they must be carried out. It must not know who
carries the messages: the simulator and the live pipeline drive the same code. Begin with `messages` and
`sweep`.

| | |
|---|---|
| `messages`, `inbox`, `view_manager`, `recent` | what comes in and goes out; what all view managers share |
| `sweep`, `nested_sweep`, `parallel_sweep`, `naive`, `simplistic` on `sweeping` | SWEEP and its kin |
| `batched_sweep`, `incremental`, `accumulating`, `stores` | what keeps views live: many transactions at once, groups and steps |
| `eca`, `strobe`, `c_strobe` on `compensation` and `keys`; `recompute` | those that SWEEP is compared with |
| `medwrap`, `medwrap_wrapper`, `medwrap_mediator`, `ordered_medwrap`, `mre` on `mediation` and `medwrap_messages` | sources with several relations |
| `ring`, `quiescent_ring`, `ring_terms` on `tokens`, `ring_messages` and `ring_machines` | tokens that visit the sources |
| `registry`, `choice` | all of them by name; which of them keeps a view |
"""

from viewkeeper.protocols.messages import AnswerArrived as AnswerArrived
from viewkeeper.protocols.messages import AskSource as AskSource
from viewkeeper.protocols.messages import InstallChange as InstallChange
from viewkeeper.protocols.messages import Protocol as Protocol
from viewkeeper.protocols.messages import Reflected as Reflected
from viewkeeper.protocols.messages import SourceSettled as SourceSettled
from viewkeeper.protocols.messages import TransactionArrived as TransactionArrived
