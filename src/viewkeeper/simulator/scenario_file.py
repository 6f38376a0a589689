"""Scenarios as files: relations, a view in SQL, transactions, and a schedule, in TOML.

A schedule is written out step by step (`schedule`) or left to a seed. The scenarios that come with
Viewkeeper lie in ``scenarios/``; users can write their own.
"""

from __future__ import annotations

import importlib.resources
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewkeeper.algebra import Bag, Field, Row, Schema, Type
from viewkeeper.algebra.types import Kind, decimal_type
from viewkeeper.errors import UsageError, ViewkeeperError, did_you_mean
from viewkeeper.protocols.messages import Protocol
from viewkeeper.protocols.registry import protocol_named
from viewkeeper.simulator.kernel.journal import Journal
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.run import Outcome, judged
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.simulator.schedule import Step, parse_schedule, play
from viewkeeper.simulator.world import World
from viewkeeper.sql.expressions.literals import from_text
from viewkeeper.sql.parser import parse_view
from viewkeeper.timeline import Transaction
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName, ViewDefinition

_KEYS = {
    *("title", "paper", "text", "protocol", "view", "network"),
    *("relations", "transactions", "schedule", "seed"),
}


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario with its protocol and its schedule: everything that a run needs."""

    name: str
    title: str
    paper: str
    text: str
    protocol: type[Protocol]
    view: str
    scenario: Scenario
    network: Network
    schedule: tuple[Step, ...] | int


@dataclass(frozen=True)
class Played:
    """A scenario that was played to its end."""

    journal: Journal
    outcome: Outcome
    # Steps of the schedule that this protocol had no use for.
    left_out: int


def shipped_names() -> tuple[str, ...]:
    """The names of the scenarios that come with Viewkeeper."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _shipped_files()))


def _shipped_files() -> list[Any]:
    folder = importlib.resources.files("viewkeeper.simulator") / "scenarios"
    return [entry for entry in folder.iterdir() if entry.name.endswith(".toml")]


def load_scenario(name: str, others: Iterable[str] = ()) -> ScenarioFile:
    """A shipped scenario by its name, or one's own by its path (ending in .toml).

    A name that nobody has is compared with ``others`` too: what the caller knows besides.
    """
    if name.endswith(".toml"):
        try:
            return read_scenario(Path(name).stem, Path(name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError("scenario-file", f"can't read {name}", detail=str(error)) from None
    for entry in _shipped_files():
        if entry.name == f"{name}.toml":
            return read_scenario(name, entry.read_text(encoding="utf-8"))
    names = (*shipped_names(), *others)
    raise UsageError(
        "unknown-scenario",
        f"there is no scenario {name}",
        detail=f"the scenarios are {', '.join(names)}",
        hint=did_you_mean(name, names, "a file of your own ends in .toml"),
    )


def read_scenario(name: str, text: str) -> ScenarioFile:
    """A scenario from its text; raises UsageError that says what is wrong in it."""
    try:
        return _Reader(name, tomllib.loads(text)).read()
    except tomllib.TOMLDecodeError as error:
        raise UsageError("scenario-file", f"{name} is no TOML", detail=str(error)) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            "scenario-file",
            f"{name} is no scenario",
            detail=f"{type(error).__name__}: {error}",
            hint="compare it with one that comes with Viewkeeper: docs/lab.md",
        ) from None


def played(
    file: ScenarioFile, protocol: type[Protocol] | None = None, journal: Journal | None = None
) -> Played:
    """Play a scenario under its protocol, or under another one, and judge it."""
    journal = Journal() if journal is None else journal
    chosen = protocol or file.protocol
    world = World(file.scenario, chosen, file.network, journal=journal)
    left_out = 0
    if isinstance(file.schedule, int):
        run_to_end(world, SeededScheduler(file.schedule))
    else:
        left_out = play(world, file.schedule, leniently=chosen is not file.protocol)
    seed = file.schedule if isinstance(file.schedule, int) else 0
    return Played(journal, judged(chosen, seed, file.scenario, world), left_out)


class _Reader:
    def __init__(self, name: str, data: dict[str, Any]) -> None:
        self.name = name
        self.data = data

    def read(self) -> ScenarioFile:
        unknown = sorted(set(self.data) - _KEYS)
        if unknown:
            raise self._wrong(f"there is no key {', '.join(unknown)}")
        relations = {
            self._relation_name(written): table for written, table in self.data["relations"].items()
        }
        schemas = {name: _schema(table["columns"]) for name, table in relations.items()}
        keys = {name: tuple(table.get("key", ())) for name, table in relations.items()}
        catalog = Catalog(tuple(CatalogRelation(n, s, keys[n]) for n, s in schemas.items()))
        definition = parse_view("V", self.data["view"], catalog)
        initial = {
            name: Bag.of(schemas[name], _rows(schemas[name], relations[name].get("rows", ())))
            for name in schemas
            if name in definition.relations
        }
        return ScenarioFile(
            name=self.name,
            title=self.data["title"],
            paper=self.data.get("paper", ""),
            text=self.data.get("text", "").strip(),
            protocol=protocol_named(self.data["protocol"]),
            view=self.data["view"].strip(),
            scenario=Scenario(definition, initial, self._scripts(definition, schemas)),
            network=Network(**self.data.get("network", {})),
            schedule=self._schedule(),
        )

    def _relation_name(self, written: str) -> RelationName:
        source, _, relation = written.partition(".")
        if not relation:
            raise self._wrong(f"relation {written} does not say its source: write source.{written}")
        return RelationName(source, relation)

    def _schedule(self) -> tuple[Step, ...] | int:
        if ("schedule" in self.data) == ("seed" in self.data):
            raise self._wrong("it needs a schedule or a seed, and not both")
        if "seed" in self.data:
            return int(self.data["seed"])
        return parse_schedule(self.data["schedule"])

    def _scripts(
        self, definition: ViewDefinition, schemas: Mapping[RelationName, Schema]
    ) -> dict[str, tuple[Transaction, ...]]:
        written: dict[str, Any] = self.data.get("transactions", {})
        strangers = sorted(set(written) - set(definition.sources))
        if strangers:
            raise self._wrong(f"the view does not read source {', '.join(strangers)}")
        return {
            source: tuple(
                Transaction(source, number, tuple(_changes(source, changes, schemas)))
                for number, changes in enumerate(written.get(source, ()), 1)
            )
            for source in definition.sources
        }

    def _wrong(self, detail: str) -> ViewkeeperError:
        return UsageError("scenario-file", f"{self.name} is no scenario", detail=detail)


def _changes(
    source: str, written: Mapping[str, Any], schemas: Mapping[RelationName, Schema]
) -> Iterable[tuple[RelationName, Bag]]:
    """One transaction: for each relation the rows that come in and go out."""
    for relation, change in written.items():
        name = RelationName(source, relation)
        schema = schemas[name]
        inserted = Bag.of(schema, _rows(schema, change.get("insert", ())))
        yield name, inserted - Bag.of(schema, _rows(schema, change.get("delete", ())))


def _schema(columns: Mapping[str, str]) -> Schema:
    return Schema(tuple(Field(name, _type(written)) for name, written in columns.items()))


def _type(written: str) -> Type:
    decimal = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", written)
    if decimal:
        return decimal_type(int(decimal[1]), int(decimal[2]))
    return Type(Kind(written))


def _rows(schema: Schema, written: Iterable[Iterable[Any]]) -> list[Row]:
    """TOML has no NULL and no decimals: the text NULL is NULL, other text is read by the type."""
    return [
        tuple(_value(value, field.type) for value, field in zip(row, schema, strict=True))
        for row in written
    ]


def _value(value: Any, type: Type) -> Any:
    if value == "NULL":
        return None
    if isinstance(value, str) and type.kind is not Kind.STRING:
        literal = from_text(value, type)
        return value if literal is None else literal.value
    return value
