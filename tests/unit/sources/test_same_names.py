"""The same thing has the same file name in every kind of source, as the package's docstring lists them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import viewkeeper.sources as sources

FOLDER = Path(sources.__file__).parent
KINDS = sorted(file.parent.name for file in FOLDER.glob("*/__init__.py"))
MODULES = {kind: {file.stem for file in (FOLDER / kind).glob("*.py")} for kind in KINDS}
TEXT = str(sources.__doc__)
ROWS = [line for line in TEXT.splitlines() if line.startswith("- `")]
IN_EVERY_KIND = {name for row in ROWS for name in re.findall(r"`(\w+)`", row.partition(": ")[0])}
IN_TWO_KINDS = set(re.findall(r"`(\w+)`", TEXT.partition("Where two have")[2]))


def bases(kind: str, module: str) -> set[str]:
    """The names of all classes that some class of a module is made from."""
    tree = ast.parse((FOLDER / kind / f"{module}.py").read_text("utf-8"))
    made = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {base.id for node in made for base in node.bases if isinstance(base, ast.Name)}


def test_three_kinds_are_compared() -> None:
    assert KINDS == ["mariadb", "postgres", "sqlite"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_every_file_that_all_have(kind: str) -> None:
    assert IN_EVERY_KIND - MODULES[kind] == set()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["source", "feed", "snapshot"])
def test_what_the_interface_asks_for_is_in_the_file_of_its_name(kind: str, name: str) -> None:
    assert name.capitalize() in bases(kind, name)


def test_the_docstring_lists_what_kinds_share_and_nothing_else() -> None:
    shared = {
        name
        for name in set.union(*MODULES.values()) - {"__init__"}
        if sum(name in modules for modules in MODULES.values()) > 1
    }
    assert shared == IN_EVERY_KIND | IN_TWO_KINDS
    assert set.intersection(*MODULES.values()) - {"__init__"} == IN_EVERY_KIND
