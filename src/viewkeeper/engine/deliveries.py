"""What one poll of a source's feed brought, on its way to the groups."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.sources.interface import FeedItem, Position
from viewkeeper.sources.transaction_block import TransactionBlock


@dataclass(frozen=True)
class Delivery:
    """What one poll of one source brought, and where its feed stands after it."""

    source: str
    items: tuple[FeedItem | TransactionBlock, ...]
    position: Position
    life: str
    # How often the feed was opened again for other relations. A feed that was may repeat transactions
    # that were already delivered.
    generation: int = 0
