"""Maintenance protocols: one file for each, a pure state machine, ``step(event) -> actions``.

One duty: to decide what to ask of whom, and which change of the view follows. A protocol gets events
(`messages`) and returns actions in the order in which they must be carried out. It must not know who
carries the messages: the simulator and the live pipeline drive the same code.
"""

from viewkeeper.protocols.messages import AnswerArrived as AnswerArrived
from viewkeeper.protocols.messages import AskSource as AskSource
from viewkeeper.protocols.messages import InstallChange as InstallChange
from viewkeeper.protocols.messages import Protocol as Protocol
from viewkeeper.protocols.messages import Reflected as Reflected
from viewkeeper.protocols.messages import SourceSettled as SourceSettled
from viewkeeper.protocols.messages import TransactionArrived as TransactionArrived
