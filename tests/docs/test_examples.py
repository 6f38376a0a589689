"""Every numbered example does what its README says."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.document import Reader
from viewkeeper.demo.example_project import examples

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "viewkeeper" / "examples"

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_the_examples_are_found_where_newcomers_look() -> None:
    assert (ROOT / "examples").resolve() == FOLDER
    assert [path.name for path in sorted(FOLDER.iterdir()) if path.is_dir()] == list(examples())


@pytest.mark.parametrize("name", [path.parent.name for path in sorted(FOLDER.glob("*/README.md"))])
def test_an_example_does_what_its_readme_says(name: str, tmp_path: Path, running_spark) -> None:
    reader = Reader(tmp_path)
    try:
        reader.read(FOLDER / name / "README.md")
    finally:
        if "server" in reader.names:
            reader.names["server"].stop()
    assert reader.commands, "nothing was run"
