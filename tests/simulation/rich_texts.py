"""Random rich views as SQL text that we and SQLite read alike."""

from __future__ import annotations

import random

from simulation.rich import SCHEMA, random_history, random_relations
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation

TEMPLATES = (
    "SELECT l.a, l.b, r.d FROM {rel} l LEFT JOIN {rel} r ON l.{col} = r.{col} AND r.{col} {op} 1",
    "SELECT l.a, r.b, r.d FROM {rel} l RIGHT JOIN {rel} r ON l.{col} = r.{col}",
    "SELECT l.a, l.d, r.b FROM {rel} l FULL JOIN {rel} r ON l.{col} = r.{col}",
    "SELECT l.a, r.b, t.a AS c FROM {rel} l LEFT JOIN {rel} r ON l.a = r.{col} JOIN {rel} t ON l.b = t.b",
    "SELECT l.a, l.b FROM {rel} l WHERE {no}EXISTS (SELECT 1 FROM {rel} r WHERE r.{col} = l.{col})",
    (
        "SELECT l.a FROM {rel} l WHERE {no}EXISTS "
        "(SELECT 1 FROM {rel} r WHERE r.{col} = l.a AND r.{col} {op} l.b)"
    ),
    "SELECT l.a, l.d FROM {rel} l WHERE l.{col} {no}IN (SELECT r.{col} FROM {rel} r)",
    "SELECT l.a FROM {rel} l WHERE l.{col} {no}IN (SELECT r.{col} FROM {rel} r WHERE r.a {op} 1)",
    "SELECT a, b FROM {rel} {setop} SELECT b, a FROM {rel}",
    "SELECT a FROM {rel} UNION ALL SELECT {col} FROM {rel} WHERE b {op} 1",
    (
        "SELECT l.a AS k, COUNT(*) AS n, SUM(r.b) AS s, MIN(r.d) AS m, COUNT(DISTINCT r.{col}) AS u "
        "FROM {rel} l JOIN {rel} r ON l.{col} = r.{col} GROUP BY l.a HAVING COUNT(*) > 1"
    ),
    (
        "SELECT l.a AS k, COUNT(r.a) AS n, MAX(r.{col}) AS x "
        "FROM {rel} l LEFT JOIN {rel} r ON l.b = r.{col} GROUP BY l.a"
    ),
    "SELECT COUNT(*) AS n, SUM({col}) AS s, AVG({col}) AS m, MAX(d) AS x FROM {rel} WHERE a {op} 1",
    (
        "WITH t AS (SELECT a, COUNT(*) AS n, SUM(b) AS s FROM {rel} GROUP BY a) "
        "SELECT l.b, t.n, t.s FROM {rel} l JOIN t ON l.{col} = t.a"
    ),
    (
        "WITH t AS (SELECT a, MIN({col}) AS m FROM {rel} GROUP BY a) "
        "SELECT l.b, t.m FROM {rel} l LEFT JOIN t ON l.{col} = t.m"
    ),
    "SELECT n, COUNT(*) AS k FROM (SELECT b, COUNT(*) AS n FROM {rel} WHERE {col} {op} 1 GROUP BY b) t GROUP BY n",
    "SELECT l.a, (SELECT MAX(r.{col}) FROM {rel} r WHERE r.a = l.a) AS m FROM {rel} l",
    "SELECT l.a, l.b FROM {rel} l WHERE l.{col} > (SELECT MIN(r.b) FROM {rel} r)",
    "SELECT DISTINCT l.a, r.b FROM {rel} l JOIN {rel} r ON l.{col} = r.{col} WHERE l.b {op} r.b",
    "SELECT l.a, r.a AS c FROM {rel} l JOIN {rel} r ON l.{col} < r.{col}",
)


def random_text(seed: int, relations: list[str], rng: random.Random) -> str:
    choices = {
        "{rel}": relations,
        "{col}": ["a", "b"],
        "{op}": ["<", ">=", "<>"],
        "{no}": ["", "NOT "],
        "{setop}": ["UNION", "INTERSECT", "EXCEPT"],
    }
    text = TEMPLATES[seed % len(TEMPLATES)]
    for hole, options in choices.items():
        while hole in text:
            text = text.replace(hole, rng.choice(options), 1)
    return text


def random_text_scenario(seed: int, transactions: int) -> tuple[str, Scenario]:
    """The text and the history that this seed means; templates take turns."""
    rng = random.Random(f"text {seed}")
    names = random_relations(rng)
    text = random_text(seed, [str(name) for name in names], rng)
    catalog = Catalog(tuple(CatalogRelation(name, SCHEMA) for name in names))
    return text, random_history(rng, parse_view("v", text, catalog), transactions)
