"""Tables as they were at places of the log.

The server describes its tables as they are now, which may be many statements later than the place where a
feed begins. What earlier feeds learnt on their way is kept, so that one that goes back knows it.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.sources.mariadb.catalog import Table
from viewkeeper.sources.mariadb.position import Place

# Of one table; a feed seldom goes back by more than a few statements.
SHAPES_KEPT_MAX = 200


@dataclass(frozen=True)
class Doubt:
    """Why a table is only believed to be so: the statement that changed it, empty when it was never
    followed; and whether that may have changed rows."""

    statement: str = ""
    rewrites: bool = False


class TableMemory:
    """Thread-safe: a feed notes while another thread looks at the catalog."""

    def __init__(self) -> None:
        self._seen: dict[str, Table | None] = {}
        self._orders: dict[str, list[tuple[int, int]]] = {}
        self._shapes: dict[str, list[tuple[Table | None, Doubt]]] = {}
        self._lock = threading.Lock()

    def look(self, tables: Mapping[str, Table | None]) -> None:
        """Tables as they are now; kept when they are the first that is heard of them."""
        with self._lock:
            for relation, table in tables.items():
                self._seen.setdefault(relation, table)

    def note(self, relation: str, place: Place, table: Table | None, doubt: Doubt) -> None:
        """From this place in the log on, a table is so."""
        with self._lock:
            orders = self._orders.setdefault(relation, [])
            shapes = self._shapes.setdefault(relation, [])
            at = bisect.bisect_left(orders, place.order)
            is_known = at < len(orders) and orders[at] == place.order
            orders[at : at + is_known] = [place.order]
            shapes[at : at + is_known] = [(table, doubt)]
            del orders[:-SHAPES_KEPT_MAX], shapes[:-SHAPES_KEPT_MAX]

    def at(self, relation: str, place: Place) -> tuple[Table | None, Doubt]:
        """The table at a place, as far as anybody has followed it."""
        with self._lock:
            found = bisect.bisect_right(self._orders.get(relation, []), place.order)
            if found:
                return self._shapes[relation][found - 1]
            return self._seen.get(relation), Doubt()
