"""The MVC paper's examples, message by message, with the table's colours and states after each."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewkeeper.simulator.merging.examples import EXAMPLES, played_example

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_happens_as_written_down(name: str, rewriting: bool) -> None:
    file = FOLDER / f"{name}.txt"
    example = EXAMPLES[name]
    happened = f"{example.title}\n\n{played_example(example).transcript()}"
    if rewriting:
        file.write_text(happened, encoding="utf-8")
    assert happened == file.read_text(encoding="utf-8")


def test_every_transcript_belongs_to_an_example() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.txt")) == sorted(EXAMPLES)
