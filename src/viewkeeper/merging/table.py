"""The view update table: a row for each update, a column for each view, a colour in each cell.

Paper: MVC (1997), sections 4.1 and 5.1.

| colour | the action list of this cell |
|---|---|
| white | is awaited |
| red | has arrived, and waits for others |
| gray | has just been applied |
| black | will never be: the update is irrelevant to the view |

A red cell's *state* is the last row that its list covers (PA). The table also keeps what the paper
takes from context: the order of a view's lists, the order of updates within a stream, and *units*,
rows that must show together. It decides nothing; the painting algorithms do.

Where we differ: black cells are not stored. Gray rows are purged when the next event comes in, so that
whoever looks at the table between events sees what was just applied. A list is painted when relevance
of all its rows is here, at once in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from viewkeeper.errors import InvariantViolated
from viewkeeper.merging.messages import ActionList, WarehouseTransaction
from viewkeeper.merging.rows import BLACK, WHITE, Cell, Colour, Column, Row, Unit


class ViewUpdateTable:
    """Rows and columns. All rows up to ``announced`` are in it, or were."""

    def __init__(self, views: Iterable[str]) -> None:
        self.columns = {view: Column() for view in views}
        self.rows: dict[int, Row] = {}
        self.announced = 0
        self._open: Unit | None = None
        # The last row of a block that was ended though it had fewer.
        self._ended = 0
        # Rows of two groups that became one: the next row shows after all of them.
        self._barrier: tuple[int, ...] = ()
        self._last_of_stream: dict[str, int] = {}
        self._just_applied: list[int] = []
        self._passed_on: set[ActionList] = set()

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
        unit = self._open or Unit([], is_open=False)
        unit.rows.append(number)
        last = [self._last_of_stream[s] for s in streams if s in self._last_of_stream]
        after = tuple(dict.fromkeys((*last, *self._barrier)))
        self._barrier = ()
        self.rows[number] = Row(number, cells, unit, streams, after)
        for earlier in after:
            if earlier in self.rows:
                self.rows[earlier].followers.append(number)
        self._last_of_stream.update(dict.fromkeys(streams, number))

    def open_unit(self) -> None:
        """The rows announced from now on show together, until `close_unit`."""
        if self._open is None:
            self._open = Unit([], is_open=True)
        self._open.is_open = True

    def close_unit(self) -> list[int]:
        """End the open unit; its rows."""
        unit, self._open = self._open, None
        if unit is None:
            return []
        unit.is_open = False
        return [number for number in unit.rows if number in self.rows]

    def end_block(self) -> None:
        """No row joins the block of the last one, whoever counts blocks now or later."""
        self._ended = self.announced

    def form_blocks(self, every: int, *, is_inside_unit: bool) -> None:
        """From now on blocks of N rows are units: those that are here, and the one that is to come.

        Rows that were announced while nobody counted are units of their own: a manager's list for a
        whole block covers several of them, and must neither be divided nor go without the others' lists.
        ``is_inside_unit``: the next row shows with the last one in any case.
        """
        blocks: dict[tuple[int, bool], Unit] = {}
        for number, row in self.rows.items():
            unit = blocks.setdefault(self._block(number, every), row.unit)
            if unit is not row.unit:
                other = self._merged(row.unit, unit)
                blocks |= {block: unit for block, known in blocks.items() if known is other}
        if self.announced % every and self._ended < self.announced:
            self._open = self._open or blocks.get(self._block(self.announced, every))
            self.open_unit()
        elif not is_inside_unit:
            self.close_unit()

    def _block(self, number: int, every: int) -> tuple[int, bool]:
        return -(-number // every), number <= self._ended

    def _merged(self, unit: Unit, into: Unit) -> Unit:
        """All rows of a unit are of another one now; the unit that is empty."""
        for number in unit.rows:
            if number in self.rows:
                self.rows[number].unit = into
        into.rows += unit.rows
        if self._open is unit:
            self._open, into.is_open = into, True
        return unit

    def receive(self, action_list: ActionList, *, passed_on: bool = False) -> None:
        """Take a list in; ``passed_on`` says that the warehouse has it already."""
        self.columns[action_list.view].early.append(action_list)
        if passed_on:
            self._passed_on.add(action_list)

    def painted(self) -> Iterator[ActionList]:
        """Paint what can be: lists whose rows are all announced, each view's in its order.

        Red, as a rule; gray at once if the list has been passed on.
        """
        for view in self.columns:
            yield from self.painted_in(view)

    def painted_in(self, view: str) -> Iterator[ActionList]:
        column = self.columns[view]
        while column.early and column.early[0].number <= self.announced:
            action_list = column.early.popleft()
            column.turns += 1
            column.waiting[column.turns] = action_list
            self._paint(action_list, column.turns)
            if action_list in self._passed_on:
                self._passed_on.remove(action_list)
                self.pass_on(action_list)
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

    # -- what the algorithms ask -------------------------------------------------------------------

    def cell(self, number: int, view: str) -> Cell:
        row = self.rows.get(number)
        return BLACK if row is None else row.cells.get(view, BLACK)

    def is_incomplete(self, number: int) -> bool:
        """Whether something of the row's unit has yet to arrive: a list, or another row."""
        row = self.rows[number]
        return row.is_white or row.unit.is_open

    def unit_of(self, number: int) -> tuple[int, ...]:
        """The rows that must show together with it, itself among them."""
        return tuple(j for j in self.rows[number].unit.rows if not self._is_gray(j))

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
        yield from (j for j in row.after if not self._is_gray(j))

    def _is_gray(self, number: int) -> bool:
        """Whether nothing of it is left to apply."""
        row = self.rows.get(number)
        return row is None or row.is_gray

    # -- what the algorithms do --------------------------------------------------------------------

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
        left = sorted(j for j in follow - set(chosen) if not self._is_gray(j))
        # Lists of one view must stay in its order even where a later one has a lower number.
        turns = {id(a): self._turn(a) for a in lists}
        lists.sort(key=lambda a: (a.view, turns[id(a)]))
        return WarehouseTransaction(tuple(chosen), tuple(lists), frozenset(after)), left

    def pass_on(self, action_list: ActionList) -> None:
        """Paint one list's own cells gray, whatever else its rows wait for."""
        for number in action_list.rows:
            row = self.rows[number]
            cell = row.cells[action_list.view]
            row.paint(action_list.view, Cell(Colour.GRAY, cell.state, cell.turn))
            self.columns[action_list.view].waiting.pop(cell.turn, None)
        self._just_applied += action_list.rows

    def held(self) -> Iterator[ActionList]:
        """Every list that is here and not passed on, in each view's order; it is passed on thereby."""
        for column in self.columns.values():
            for action_list in list(column.waiting.values()):
                self.pass_on(action_list)
                yield action_list
            for action_list in column.early:
                if action_list not in self._passed_on:
                    self._passed_on.add(action_list)
                    yield action_list

    def _turn(self, action_list: ActionList) -> int:
        return self.cell(action_list.number, action_list.view).turn

    def purge(self) -> None:
        """Forget the rows that were applied; one with a white cell left stays (`PassThrough`)."""
        for number in self._just_applied:
            if number in self.rows and self._is_gray(number):
                del self.rows[number]
        self._just_applied = []

    @property
    def is_empty(self) -> bool:
        """Whether everything that arrived has been applied."""
        return all(self._is_gray(n) for n in self.rows) and not any(
            column.early for column in self.columns.values()
        )

    # -- hand-over ---------------------------------------------------------------------------------

    def drop(self, view: str) -> None:
        """Forget a column; rows that concerned no other view are gone with it."""
        for action_list in self.columns.pop(view).early:
            self._passed_on.discard(action_list)
        for number, row in list(self.rows.items()):
            row.blacken(view)
            if not row.cells:
                del self.rows[number]

    def absorb(self, other: ViewUpdateTable) -> None:
        """Take in the table of another group; it must not be used any more.

        The two stood at different moments. The next row of the common table waits for all that both
        have pending, here and uncommitted (`wait_for`); so when it shows, all views stand at one cut,
        and from then on they do.
        """
        self.columns |= other.columns
        self.rows = dict(sorted((self.rows | other.rows).items()))
        self.announced = max(self.announced, other.announced)
        self._ended = max(self._ended, other._ended)
        self._passed_on |= other._passed_on
        self._just_applied += other._just_applied
        for stream, number in other._last_of_stream.items():
            self._last_of_stream[stream] = max(number, self._last_of_stream.get(stream, 0))
        if self._open is not None and other._open is not None:
            for number in other._open.rows:
                self._open.rows.append(number)
                self.rows[number].unit = self._open
        self._open = self._open or other._open
        opened = [] if self._open is None else self._open.rows
        self.wait_for(n for n in self.rows if n not in opened)

    def wait_for(self, rows: Iterable[int]) -> None:
        """The next row shows after these, wherever they are by now."""
        self._barrier = tuple(dict.fromkeys((*self._barrier, *rows)))

    def part(self, views: Iterable[str]) -> ViewUpdateTable:
        """The table of some of the views, which have no row in common with the others."""
        table = ViewUpdateTable(())
        table.columns = {view: self.columns[view] for view in views}
        table.rows = {
            n: r for n, r in self.rows.items() if not table.columns.keys().isdisjoint(r.cells)
        }
        table.announced, table._ended = self.announced, self._ended
        table._passed_on = {a for a in self._passed_on if a.view in table.columns}
        table._just_applied = list(self._just_applied)
        table._last_of_stream = dict(self._last_of_stream)
        if self._open is not None:
            # Each part ends its block by itself from now on.
            table._open = Unit([n for n in self._open.rows if n in table.rows], is_open=True)
            for number in table._open.rows:
                table.rows[number].unit = table._open
        return table

    def ties(self) -> Iterator[frozenset[str]]:
        """Sets of views that can't be told apart now, for some row or unit concerns them all."""
        units: dict[int, set[str]] = {}
        for row in self.rows.values():
            units.setdefault(id(row.unit), set()).update(row.cells)
        yield from (frozenset(views) for views in units.values())
