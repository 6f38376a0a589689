"""The corpus of views: its catalog, and a small language of types for it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from viewkeeper.algebra.types import Field, Kind, Schema, Type, decimal_type
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

CORPUS = Path(__file__).parents[2] / "corpus" / "views"


def type_named(text: str) -> Type:
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", text):
        return decimal_type(int(match[1]), int(match[2]))
    return Type(Kind(text))


def catalog(folder: Path = CORPUS) -> Catalog:
    with (folder / "catalog.toml").open("rb") as file:
        tables = tomllib.load(file)
    return Catalog(
        tuple(
            CatalogRelation(
                RelationName(source, name),
                Schema(tuple(Field(n, type_named(t)) for n, t in table["columns"].items())),
                tuple(table.get("key", ())),
            )
            for source, relations in tables.items()
            for name, table in relations.items()
        )
    )
