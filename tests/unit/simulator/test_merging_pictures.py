from __future__ import annotations

import xml.etree.ElementTree as ET

from viewkeeper.simulator.merging.examples import EXAMPLES, played_example
from viewkeeper.simulator.merging.pictures import tables_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_every_cell_of_every_table_is_drawn_in_its_colour_and_inside_the_picture() -> None:
    example = EXAMPLES["example-5"]
    entries = played_example(example).entries
    picture = ET.fromstring(tables_svg(example.title, entries))
    drawn = [r.get("class", "").split() for r in picture.iter(f"{SVG}rect") if r.get("x")]
    wanted = [
        ["cell", colour.name.lower()]
        for entry in entries
        for _, drawing in entry.drawings
        for row in drawing.rows
        for colour, _ in row.cells
    ]
    assert drawn == wanted
    assert {"white", "red", "gray", "black"} == {name for _, name in drawn}
    width, height = float(picture.get("width", "")), float(picture.get("height", ""))
    for rect in picture.iter(f"{SVG}rect"):
        if rect.get("x"):
            assert float(rect.get("x", "")) + float(rect.get("width", "")) < width
            assert float(rect.get("y", "")) + float(rect.get("height", "")) < height


def test_a_transcript_in_colours_says_the_same_as_one_in_letters() -> None:
    from rich.text import Text

    journal = played_example(EXAMPLES["example-4"])
    assert Text.from_markup(journal.transcript(markup=True)).plain == journal.transcript()
