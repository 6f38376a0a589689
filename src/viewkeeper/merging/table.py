"""The view update table: a row for each update, a column for each view, a colour in each cell.

Paper: MVC (1997), sections 4.1 and 5.1.

| colour | the action list of this cell |
|---|---|
| white | is awaited |
| red | has arrived, and waits for others |
| gray | has just been applied |
| black | will never be: the update is irrelevant to the view |

A red cell's *state* is the last row that its list covers (PA). The table also keeps what the paper
takes from context: the order of a view's lists, and the order of updates within a stream. It decides nothing;
`painting` does.

Where we differ: black cells are not stored. Gray rows are purged when the next event comes in, so that
the table between two events shows what was just applied. A list is painted when relevance
of all its rows is here, at once in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from viewkeeper.errors import InvariantViolated
from viewkeeper.merging.messages import ActionList, WarehouseTransaction
from viewkeeper.merging.rows import BLACK, WHITE, Cell, Colour, Column, Row


class ViewUpdateTable:
    """Rows and columns. All rows up to ``announced`` are in it, or were."""

    def __init__(self, views: Iterable[str]) -> None:
        self.columns = {view: Column() for view in views}
        self.rows: dict[int, Row] = {}
        self.announced = 0
        self._last_of_stream: dict[str, int] = {}
        self._just_applied: list[int] = []

    # -- what arrives ------------------------------------------------------------------------------

    def announce(self, number: int, views: Iterable[str], streams: tuple[str, ...] = ()) -> None:
        """Allocate a row, white for its views; a row without views is not kept."""
        if number <= self.announced:
            raise InvariantViolated(
                f"relevance of row {number} arrived out of order",
                detail=f"row {self.announced} is known already",
            )
        self.announced = number
        concerned = set(views)
        cells = {view: WHITE for view in self.columns if view in concerned}
        if not cells:
            return
        last = (self._last_of_stream[s] for s in streams if s in self._last_of_stream)
        after = tuple(dict.fromkeys(last))
        self.rows[number] = Row(number, cells, streams, after)
        for earlier in after:
            if earlier in self.rows:
                self.rows[earlier].followers.append(number)
        self._last_of_stream.update(dict.fromkeys(streams, number))

    def receive(self, action_list: ActionList) -> None:
        self.columns[action_list.view].early.append(action_list)

    def painted(self) -> Iterator[ActionList]:
        """Paint red what can be: lists whose rows are all announced, each view's in its order."""
        for view in self.columns:
            yield from self.painted_in(view)

    def painted_in(self, view: str) -> Iterator[ActionList]:
        column = self.columns[view]
        while column.early and column.early[0].number <= self.announced:
            action_list = column.early.popleft()
            column.turns += 1
            column.waiting[column.turns] = action_list
            self._paint(action_list, column.turns)
            yield action_list

    def _paint(self, action_list: ActionList, turn: int) -> None:
        view, red = action_list.view, Cell(Colour.RED, action_list.number, turn)
        for number in action_list.rows:
            row = self.rows.get(number)
            if row is None or view not in row.white:
                raise InvariantViolated(
                    f"{action_list} covers row {number}, which does not wait for it",
                    detail=f"the cell is {self.cell(number, view).colour.name.lower()}",
                )
            row.paint(view, red)

    # -- what painting asks -------------------------------------------------------------------

    def cell(self, number: int, view: str) -> Cell:
        row = self.rows.get(number)
        return BLACK if row is None else row.cells.get(view, BLACK)

    def is_incomplete(self, number: int) -> bool:
        """Whether one of the row's lists has yet to arrive."""
        return self.rows[number].is_white

    def covered_with(self, number: int) -> Iterator[int]:
        """The rows that are in one list with it."""
        row = self.rows[number]
        for view in row.red:
            action_list = self.columns[view].waiting.get(row.cells[view].turn)
            if action_list is None:
                raise InvariantViolated(
                    f"row {number} was left out when a list of {view} was applied"
                )
            yield from action_list.rows

    def earlier(self, number: int) -> Iterator[int]:
        """Rows not applied yet that must show before it, or with it: the list that comes before its
        own in each view, and its predecessors in its streams."""
        row = self.rows[number]
        for view in row.red:
            previous = self.columns[view].waiting.get(row.cells[view].turn - 1)
            if previous is not None:
                yield from previous.rows
        yield from (j for j in row.after if not self.is_gray(j))

    def is_gray(self, number: int) -> bool:
        """Whether nothing of it is left to apply."""
        row = self.rows.get(number)
        return row is None or row.is_gray

    # -- what painting does --------------------------------------------------------------------

    def apply(self, numbers: Iterable[int]) -> tuple[WarehouseTransaction, list[int]]:
        """Paint the rows gray: their transaction, and the rows that may be able to follow now.

        A list goes with the last row that it covers, as in the paper's WT_i.
        """
        chosen = sorted(numbers)
        self._just_applied += chosen
        lists: list[ActionList] = []
        follow: set[int] = set()
        for number in chosen:
            row = self.rows[number]
            for view in list(row.red):
                cell = row.cells[view]
                row.paint(view, Cell(Colour.GRAY, cell.state, cell.turn))
                if cell.state == number:
                    waiting = self.columns[view].waiting
                    lists.append(waiting.pop(cell.turn))
                    following = waiting.get(cell.turn + 1)
                    follow.update(() if following is None else following.rows)
            follow.update(row.followers)
        after = {j for number in chosen for j in self.rows[number].after} - set(chosen)
        left = sorted(j for j in follow - set(chosen) if not self.is_gray(j))
        # Lists of one view must stay in its order even where a later one has a lower number.
        turns = {id(a): self._turn(a) for a in lists}
        lists.sort(key=lambda a: (a.view, turns[id(a)]))
        return WarehouseTransaction(tuple(chosen), tuple(lists), frozenset(after)), left

    def _turn(self, action_list: ActionList) -> int:
        return self.cell(action_list.number, action_list.view).turn

    def purge(self) -> None:
        """Forget the rows that were applied."""
        for number in self._just_applied:
            del self.rows[number]
        self._just_applied = []

    @property
    def is_empty(self) -> bool:
        """Whether everything that arrived has been applied."""
        return all(self.is_gray(n) for n in self.rows) and not any(
            column.early for column in self.columns.values()
        )
