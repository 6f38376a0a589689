from __future__ import annotations

from unit.merging.messages_for_tests import al, rel
from viewkeeper.merging.drawing import drawn
from viewkeeper.merging.merge_process import MergeProcess
from viewkeeper.merging.table import ViewUpdateTable


def table() -> ViewUpdateTable:
    merge = MergeProcess(("sales", "stock", "v"))
    for message in (
        rel(1, "sales", "stock"),
        rel(2, "v"),
        al("sales", 1),
        al("stock", 7),
        al("v", 2),
    ):
        merge.step(message)
    return merge.table


def test_the_table_shows_colours_states_waiting_and_early_lists() -> None:
    assert drawn(table()).splitlines() == [
        "      sales stock v      WT",
        "U_1   (r,1) (w,0) (b,0)  {AL_1^sales}",
        "U_2   (b,0) (b,0) (g,2)  ∅",
        "early AL_7^stock",
    ]


def test_without_states_it_shows_letters_alone() -> None:
    assert drawn(table(), states=False).splitlines()[1] == "U_1   r     w     b      {AL_1^sales}"


def test_with_markup_each_cell_has_its_colour_and_the_same_text() -> None:
    from rich.text import Text

    coloured = drawn(table(), markup=True)
    assert "[white on red](r,1)[/]" in coloured
    assert Text.from_markup(coloured).plain == drawn(table())
