"""Scenarios for the engine, drawn from a seed: sources, views, transactions, schema changes, kills."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import INTEGER, STRING, Field, Row, Schema
from viewkeeper.engine.limits import Limits
from viewkeeper.engine.view import View
from viewkeeper.evolution.preferences import preferences_of
from viewkeeper.simulator.engine.sources import Alter, Update, Write
from viewkeeper.simulator.engine.world import EngineScenario
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.views.parsing.parser import parse_view

KEYS = 3
SCHEMA = Schema.of(k=INTEGER, v=INTEGER, w=INTEGER)


@dataclass(frozen=True)
class Mix:
    """What a family of worlds is made of."""

    transactions: int = 14
    views_max: int = 4
    schema_changes: int = 0
    global_transactions: int = 0
    kills: int = 0
    failures: int = 0
    audits: int = 0
    # One view of a period, or more; and whether views may be slow.
    is_periodic: bool = False
    is_slow: bool = False
    is_calm: bool = False


def scenario(seed: int, mix: Mix = Mix()) -> EngineScenario:
    """Two or three sources with two relations each, two to four views over some of them."""
    return _Draw(random.Random(seed), mix).scenario()


class _Draw:
    def __init__(self, randomness: random.Random, mix: Mix) -> None:
        self._random = randomness
        self._mix = mix
        self._sources = [f"s{n}" for n in range(1, randomness.randint(2, 3) + 1)]
        # What each source holds when all that was drawn so far has happened.
        self._now: dict[str, dict[str, Bag]] = {}
        self._renames = 0

    def scenario(self) -> EngineScenario:
        for source in self._sources:
            self._now[source] = {name: self._filled() for name in ("a", "b")}
        initial = {source: dict(contents) for source, contents in self._now.items()}
        views = self._views(initial)
        scripts = self._scripts(
            sorted({str(r.source) for v in views.values() for r in v.definition.relations})
        )
        limits = Limits(
            batch_transactions_max=self._random.choice((1, 2, 5, 50)),
            backlog_from=self._random.choice((3, 1_000)),
            jobs_max=self._random.choice((1, 2)),
        )
        mix = self._mix
        if mix.is_periodic or mix.is_slow:
            limits = replace(
                limits,
                kept_batches_max=self._random.choice((1, 3, 64)),
                backlog_rows_max=self._random.choice((5, 500_000, 500_000)),
            )
        slow = [n for n in views if mix.is_slow and self._random.random() < 0.5]
        return EngineScenario(
            initial,
            scripts,
            views,
            kills=mix.kills,
            failures=mix.failures,
            audits=mix.audits,
            limits=limits,
            slow=frozenset(slow),
            is_calm=mix.is_calm,
        )

    def _filled(self) -> Bag:
        rows = [self._row(SCHEMA) for _ in range(self._random.randint(2, 4))]
        return Bag.of(SCHEMA, rows)

    def _row(self, schema: Schema) -> Row:
        return tuple(
            (self._random.randrange(KEYS) if f.name == "k" else self._random.randrange(5))
            if f.type == INTEGER
            else f"t{self._random.randrange(3)}"
            for f in schema
        )

    # -- views -------------------------------------------------------------------------------------

    def _views(self, initial: Mapping[str, Mapping[str, Bag]]) -> dict[str, View]:
        catalog = Catalog(
            tuple(
                CatalogRelation(RelationName(source, name), rows.schema)
                for source, contents in initial.items()
                for name, rows in contents.items()
            )
        )
        names = [f"{source}.{name}" for source in self._sources for name in ("a", "b")]
        found: dict[str, View] = {}
        for number in range(self._random.randint(2, self._mix.views_max)):
            text = self._text(names, number)
            view = f"v{number}"
            definition = parse_view(view, text, catalog)
            found[view] = View(definition, text, preferences=preferences_of(definition))
        return found

    def _text(self, names: list[str], number: int) -> str:
        level = self._random.choice(("complete", "complete", "complete", "strong"))
        is_periodic = self._mix.is_periodic and (not number or self._random.random() < 0.2)
        if is_periodic:
            level = "strong"
        headers = f"-- consistency: {level}\n"
        if is_periodic:
            headers += f"-- protocol: periodic\n-- every: {self._random.choice((3, 20, 40))} s\n"
        elif level == "strong":
            headers += self._random.choice(("", "-- protocol: nested-sweep\n"))
        picked = self._random.sample(names, self._random.choice((1, 2, 2, 3)))
        joins = f"{picked[0]} AS x0"
        for place, name in enumerate(picked[1:], 1):
            joins += f" JOIN {name} AS x{place} ON x{place - 1}.k = x{place}.k"
        columns = ["x0.k AS k", *(f"x{place}.v AS v{place}" for place in range(len(picked)))]
        if self._mix.schema_changes and self._random.random() < 0.5:
            headers += "-- dispensable: v0\n"
        return f"{headers}SELECT {', '.join(columns)} FROM {joins}"

    # -- what happens ------------------------------------------------------------------------------

    def _scripts(self, used: list[str]) -> dict[str, tuple[Update, ...]]:
        mix = self._mix
        kinds = ["write"] * mix.transactions + ["alter"] * mix.schema_changes
        kinds += ["global"] * mix.global_transactions
        self._random.shuffle(kinds)
        scripts: dict[str, list[Update]] = {source: [] for source in self._sources}
        for number, kind in enumerate(kinds):
            source = self._random.choice(used)
            match kind:
                case "write":
                    scripts[source].append(self._write(source))
                case "alter":
                    scripts[source].append(self._alter(source))
                case _:
                    parts = self._random.sample(used, min(2, len(used)))
                    tie = (f"g{number}", len(parts))
                    for each in parts:
                        scripts[each].append(self._write(each, tie))
        return {source: tuple(script) for source, script in scripts.items()}

    def _write(self, source: str, tie: tuple[str, int] | None = None) -> Write:
        contents = self._now[source]
        several = self._random.random() < 0.15 and len(contents) > 1
        names = self._random.sample(sorted(contents), 2 if several else 1)
        changes = []
        for name in names:
            rows = contents[name]
            old = [row for row, count in rows.sorted() if count > 0]
            deleted = (self._random.choice(old),) if old and self._random.random() < 0.5 else ()
            inserted = (
                (self._row(rows.schema),) if not deleted or self._random.random() < 0.6 else ()
            )
            signed = [*((row, -1) for row in deleted), *((row, 1) for row in inserted)]
            contents[name] = rows + Bag(rows.schema, signed)
            changes.append((name, deleted, inserted))
        return Write(tuple(changes), tie)

    def _alter(self, source: str) -> Alter:
        contents = self._now[source]
        name = self._random.choice(sorted(contents))
        rows = contents[name]
        schema = rows.schema
        kind = self._random.choice(
            ("add", "rename column", "rename", "drop column", "rewrite", "unused", "drop")
        )
        self._renames += 1
        fresh = f"c{self._renames}"
        spare = [f.name for f in schema if f.name not in ("k", "v")]
        match kind:
            case "add":
                after = Schema((*schema, Field(fresh, STRING)))
                alter = Alter(name, after)
            case "rename column":
                old = self._random.choice([n for n in schema.names if n != "k"])
                after = Schema(
                    tuple(Field(fresh if f.name == old else f.name, f.type) for f in schema)
                )
                alter = Alter(name, after, renamed_columns={old: fresh})
            case "rename":
                alter = Alter(name, renamed_to=f"{name}{self._renames}")
            case "drop column" if "v" in schema:
                alter = Alter(name, Schema(tuple(f for f in schema if f.name != "v")))
            case "drop" if len(contents) > 1:
                alter = Alter(name)
            case "rewrite":
                some = tuple(self._row(schema) for _ in range(self._random.randint(0, 2)))
                alter = Alter(name, schema, rewritten=some)
            case _ if spare:
                alter = Alter(name, Schema(tuple(f for f in schema if f.name != spare[0])))
            case _:
                alter = Alter(name, Schema((*schema, Field(fresh, STRING))))
        self._happen(source, alter)
        return alter

    def _happen(self, source: str, alter: Alter) -> None:
        from viewkeeper.simulator.engine.sources import SimulatedSource

        simulated = SimulatedSource(source, self._now[source])
        simulated.commit(alter)
        self._now[source] = dict(simulated.now)
