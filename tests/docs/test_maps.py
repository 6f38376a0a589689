"""Maps of the code name what is there: packages their modules, README and architecture page the tree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "viewkeeper"
CACHE = {"__pycache__"}


def packages() -> list[Path]:
    return sorted(file.parent for file in PACKAGE.rglob("__init__.py"))


def modules_in(package: Path) -> set[str]:
    return {
        path.stem if path.suffix == ".py" else path.name
        for path in package.iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()
    }


def docstring_of(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""


@pytest.mark.parametrize("package", packages(), ids=lambda p: str(p.relative_to(PACKAGE.parent)))
def test_a_package_says_what_it_is_and_its_map_has_every_module(package: Path) -> None:
    text = docstring_of(package)
    assert text, "it has no docstring"
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    if rows:
        named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split(" | ")[0])}
        assert named == modules_in(package)


def test_the_readme_has_every_folder() -> None:
    text = (ROOT / "README.md").read_text().partition("## Map")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - CACHE
    assert folders <= named
    assert all((PACKAGE / name).exists() for name in named)


PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_architecture_page_has_every_package_in_one_line() -> None:
    rows = [line.split(" | ")[0] for line in section("The tree").splitlines()]
    named = [
        name for row in rows for name in re.findall(r"`([\w/.]+)`", row) if row.startswith("| `")
    ]
    there = {str(package.relative_to(PACKAGE)) for package in packages() if package != PACKAGE}
    there |= {path.name for path in PACKAGE.iterdir() if path.suffix == ".py"} - {"__init__.py"}
    there.add("examples")  # projects, not Python
    assert sorted(named) == sorted(there)


def test_every_file_that_the_architecture_page_names_exists() -> None:
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", PAGE))
    coming = re.search(r"<!-- to come: (.*) -->", PAGE)
    gone = {name for name in named if not (PACKAGE / name).exists()}
    assert gone <= set(coming[1].split(", ") if coming else ())
    assert len(named) > 30
