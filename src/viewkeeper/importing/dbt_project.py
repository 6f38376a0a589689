"""A dbt project's folder read: its models, and the sources that its schema files declare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.importing.dbt_models import Refusal, SourceTable, Translation, translated

PROJECT_FILE = "dbt_project.yml"


@dataclass(frozen=True)
class Import:
    """What came of a project: the views that can be had, their sources, and all refusals."""

    views: Mapping[str, str]
    sources: tuple[str, ...]
    refusals: tuple[Refusal, ...]


def imported(folder: Path) -> Import:
    """All models of the dbt project in ``folder``; raises UsageError when it is none.

    A model that reads a refused one is refused too: a view over nothing would be no view.
    """
    document = _yaml(folder / PROJECT_FILE)
    places = document.get("model-paths", ["models"])
    files = sorted(file for place in places for file in (folder / place).rglob("*.sql"))
    if not files:
        raise UsageError(
            "no-dbt-models", f"there are no models in {folder}", detail=f"looked in {places}"
        )
    tables = dict(_tables(folder, places))
    known = frozenset(file.stem for file in files)
    refusals: list[Refusal] = []
    found: dict[str, Translation] = {}
    for file in files:
        model = translated(file.stem, file.read_text(encoding="utf-8"), known, tables)
        refusals += model.refusals
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", file.stem):
            refusals.append(
                Refusal(file.stem, 1, "a view can't have that name", "rename the model")
            )
        elif file.stem in found:
            refusals.append(Refusal(file.stem, 1, "there are two models of that name"))
        elif not model.refusals:
            found[file.stem] = model
    refusals += _drop_dependants(found)
    views = {
        name: f"-- Imported from the dbt model {name}.\n{model.text}"
        for name, model in found.items()
    }
    used = dict.fromkeys(source for model in found.values() for source in model.sources)
    return Import(views, tuple(used), tuple(refusals))


def _drop_dependants(found: dict[str, Translation]) -> Iterator[Refusal]:
    """Take out what reads a model that is not there, until nothing does."""
    while True:
        lost = {
            name: next((m for m in model.models if m not in found), None)
            for name, model in found.items()
        }
        lost = {name: missing for name, missing in lost.items() if missing is not None}
        if not lost:
            return
        for name, missing in lost.items():
            del found[name]
            yield Refusal(name, 1, f"it reads {missing}, which can't be imported")


def _tables(folder: Path, places: list[str]) -> Iterator[tuple[tuple[str, str], SourceTable]]:
    files = sorted(
        file for place in places for kind in ("*.yml", "*.yaml") for file in (folder / place).rglob(kind)
    )  # fmt: skip
    for file in files:
        for source in _yaml(file).get("sources") or []:
            name = source["name"]
            schema = source.get("schema")
            # A schema that is the database's own default needs no name here.
            schema = None if schema in (None, name, "public") else schema
            for table in source.get("tables") or []:
                identifier = table.get("identifier", table["name"])
                yield (name, table["name"]), SourceTable(name, identifier, schema)


def _yaml(file: Path) -> dict[str, Any]:
    try:
        import yaml
    except ModuleNotFoundError:
        raise UsageError(
            "no-yaml",
            "a dbt project can't be read without PyYAML",
            hint="pip install 'viewkeeper[dbt]'",
        ) from None
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            "no-dbt-project",
            f"there is no {PROJECT_FILE} in {file.parent}",
            hint="name the folder of a dbt project: viewkeeper import-dbt DIR",
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(
            "bad-dbt-file", f"{file} is not YAML", detail=" ".join(str(error).split())
        ) from None
    return document if isinstance(document, dict) else {}
