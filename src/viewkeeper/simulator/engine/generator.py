"""Scenarios for the engine, drawn from a seed: sources, views, transactions, schema changes, kills."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import INTEGER, Field, Row, Schema
from viewkeeper.engine.limits import Limits
from viewkeeper.engine.view import View
from viewkeeper.evolution.preferences import preferences_of
from viewkeeper.simulator.engine import alterations
from viewkeeper.simulator.engine.beginnings import EngineScenario
from viewkeeper.simulator.engine.updates import (
    Alter,
    Statement,
    Table,
    Update,
    Write,
    altered,
    alters_of,
)
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import LOCAL, RelationName
from viewkeeper.views.pruning import pruned

KEYS = 3
# How long a block may wait for its transactions where nothing else is to end it.
BLOCK_PATIENCE_SECONDS = 1e6
# How often a world is drawn in which some view lives, and how far from each other the seeds of these are.
DRAWS_MAX = 50
SEEDS_APART = 1_000_003
SCHEMA = Schema.of(k=INTEGER, v=INTEGER, w=INTEGER)
# With a column that tells rows apart.
KEYED = Schema((Field("i", INTEGER), *SCHEMA))


@dataclass(frozen=True)
class Mix:
    """What a family of worlds is made of."""

    transactions: int = 14
    views_max: int = 4
    # The exact number of views and of sources, where it is not 0.
    views: int = 0
    sources: int = 0
    # What views promise; each of these is as likely as the others.
    levels: tuple[str, ...] = ("complete", "complete", "complete", "strong")
    schema_changes: int = 0
    global_transactions: int = 0
    kills: int = 0
    failures: int = 0
    audits: int = 0
    restarts: int = 0
    kinds: tuple[str, ...] = alterations.PLAIN
    # Relations have primary keys, and rows are taken out by them.
    has_keys: bool = False
    # Views of every level, with outer joins and sums; some wait for an approval.
    has_levels: bool = False
    # Some views show a state for several transactions.
    has_blocks: bool = False
    # Views select rows of what they join.
    has_conditions: bool = False
    has_approvals: bool = False
    # Every source has a relation that may stand for another one.
    has_replacements: bool = False
    # Views show the keys of all that they join, and every relation may be replaced: what Map-VA needs.
    shows_keys: bool = False
    # Instead of single changes: these kinds, each of the table that had this name at first, one after the other.
    sequence: tuple[tuple[str, str], ...] = ()
    # Runs are killed when a schema change was applied, rather than at any time.
    is_restless: bool = False
    # Views come and go between runs.
    has_new_views: bool = False
    # Schema changes come several at a time, at one source or at all.
    comes_in_bursts: bool = False
    # One view of a period, or more; views may be slow; sources do little at a time.
    is_periodic: bool = False
    is_slow: bool = False
    is_calm: bool = False
    # Some view is sure to live through all schema changes: where all end, nothing shows what a group does.
    has_survivor: bool = False
    # Transactions at every source behind all that: else a view could be right by its last filling alone.
    closing: int = 0


def scenario(seed: int, mix: Mix = Mix()) -> EngineScenario:
    """Two or three sources with two relations each, two to four views over some of them."""
    drawn = _Draw(seed, mix).scenario()
    for again in range(1, DRAWS_MAX):
        if not mix.has_survivor or any(_lives(view, drawn) for view in drawn.views.values()):
            break
        drawn = _Draw(seed + again * SEEDS_APART, mix).scenario()
    return drawn


def _lives(view: View, scenario: EngineScenario) -> bool:
    """Whether nothing that the view reads is lost, or gets other rows or types; names may change."""
    terms = pruned(view.definition).all_terms
    occurrences = (o for term in terms for o in term.occurrences if o.source != LOCAL)
    return all(_is_left(o.name.relation, o.schema, scenario.scripts[o.source]) for o in occurrences)


def _is_left(name: str, needed: Schema, script: tuple[Update, ...]) -> bool:
    for alter in (alter for update in script for alter in alters_of(update)):
        if alter.exchanged_with == name:
            return False
        if alter.relation != name:
            continue
        if alter.renamed_to is not None:
            name = alter.renamed_to
            continue
        if alter.schema is None or alter.rewritten is not None or alter.exchanged_with is not None:
            return False
        needed = needed.renamed([alter.renamed_columns.get(n, n) for n in needed.names])
        if not all(field in tuple(alter.schema) for field in needed):
            return False
    return True


class _Draw:
    def __init__(self, seed: int, mix: Mix) -> None:
        self._random = randomness = random.Random(seed)
        self._seed = seed
        self._mix = mix
        drawn = randomness.randint(2, 3)
        self._sources = [f"s{n}" for n in range(1, (mix.sources or drawn) + 1)]
        # What each source holds when all that was drawn so far has happened.
        self._now: dict[str, dict[str, Table]] = {}
        self._fresh = 0
        self._names = ("a", "b", "c") if mix.has_replacements else ("a", "b")

    def scenario(self) -> EngineScenario:
        for source in self._sources:
            self._now[source] = {name: self._filled() for name in self._names}
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
        if mix.has_blocks:
            limits = replace(
                limits, block_seconds=self._random.choice((1.0, BLOCK_PATIENCE_SECONDS))
            )
        slow = [n for n in views if mix.is_slow and self._random.random() < 0.5]
        return EngineScenario(
            initial,
            scripts,
            views,
            knowledge=self._knowledge(),
            kills=mix.kills,
            failures=mix.failures,
            audits=mix.audits,
            restarts=mix.restarts,
            written=self._runs(views, "v0", 2) if mix.has_new_views else {},
            deleted=self._runs(views, "v1", 3) if mix.has_new_views else {},
            limits=limits,
            slow=frozenset(slow),
            is_calm=mix.is_calm,
            is_restless=mix.is_restless,
        )

    def _runs(self, views: Mapping[str, View], view: str, run: int) -> dict[str, int]:
        return {view: run} if len(views) > 2 and self._random.random() < 0.5 else {}

    def _knowledge(self) -> dict[str, Any]:
        if not self._mix.has_replacements:
            return {}
        same = {"k": "k", "v": "v"} | ({"i": "i"} if self._mix.shows_keys else {})
        pairs = [(f"{source}.a", f"{source}.c") for source in self._sources]
        if self._mix.shows_keys:
            others = [*self._sources[1:], self._sources[0]]
            pairs = [(f"{s}.a", f"{o}.c") for s, o in zip(self._sources, others, strict=True)]
            pairs += [
                (f"{s}.{one}", f"{s}.{by}") for s in self._sources for one, by in ("bc", "cb")
            ]
        return {
            "replacements": [
                {"relation": one, "by": by, "containment": "equal", "attributes": same}
                for one, by in pairs
            ]
        }

    def _filled(self) -> Table:
        schema = KEYED if self._mix.has_keys else SCHEMA
        rows = [self._row(schema) for _ in range(self._random.randint(2, 4))]
        return Table(Bag.of(schema, rows), ("i",) if self._mix.has_keys else ())

    def _row(self, schema: Schema) -> Row:
        return tuple(self._value(field) for field in schema)

    def _value(self, field: Field) -> Any:
        if field.name == "i":
            self._fresh += 1
            return self._fresh
        if field.type == INTEGER:
            return self._random.randrange(KEYS if field.name == "k" else 5)
        return alterations.value(field.type, self._random.randrange(3))

    # -- views -------------------------------------------------------------------------------------

    def _views(self, initial: Mapping[str, Mapping[str, Table]]) -> dict[str, View]:
        catalog = Catalog(
            tuple(
                CatalogRelation(RelationName(source, name), table.rows.schema, table.key)
                for source, contents in initial.items()
                for name, table in contents.items()
            )
        )
        names = [f"{source}.{name}" for source in self._sources for name in ("a", "b")]
        found: dict[str, View] = {}
        drawn = self._random.randint(2, self._mix.views_max)
        for number in range(self._mix.views or drawn):
            text = self._text(names, number)
            view = f"v{number}"
            definition = parse_view(view, text, catalog)
            found[view] = View(definition, text, preferences=preferences_of(definition))
        return found

    def _text(self, names: list[str], number: int) -> str:
        level = self._random.choice(self._mix.levels)
        kind, headers = "JOIN", ""
        if self._mix.has_levels:
            # A convergent view stands where it likes; what replaces what is known at one place for all.
            weak = level if self._mix.has_replacements else "convergent"
            level = self._random.choice((level, level, level, level, weak))
            kind = self._random.choice(("JOIN", "JOIN", "LEFT JOIN"))
            headers = self._random.choice(("", "", "", "-- refresh: full\n"))
        is_periodic = self._mix.is_periodic and (not number or self._random.random() < 0.2)
        if is_periodic:
            level, headers = "strong", "-- protocol: periodic\n"
            headers += f"-- every: {self._random.choice((3, 20, 40))} s\n"
        headers += f"-- consistency: {level}\n"
        if self._mix.has_blocks and level == "complete":
            headers += self._random.choice(("", "-- block: 2\n", "-- block: 4\n"))
        if is_periodic:
            pass  # it is computed from its sources, whatever it is
        elif level == "strong" and kind == "JOIN" and "refresh" not in headers:
            headers += self._random.choice(("", "-- protocol: nested-sweep\n"))
        picked = self._random.sample(names, self._random.choice((1, 2, 2, 3)))
        joins = f"{picked[0]} AS x0"
        for place, name in enumerate(picked[1:], 1):
            joins += f" {kind} {name} AS x{place} ON x{place - 1}.k = x{place}.k"
        columns = ["x0.k AS k", *(f"x{place}.v AS v{place}" for place in range(len(picked)))]
        if self._mix.shows_keys:
            columns = [f"x{p}.{c} AS {c}{p}" for p in range(len(picked)) for c in "ikv"]
        if self._mix.has_conditions:
            joins += self._condition(len(picked))
        is_grouped = self._mix.has_levels and self._random.random() < 0.15
        if is_grouped and "protocol" not in headers:
            joins += " GROUP BY x0.k"
            columns = ["x0.k AS k", "sum(x0.v) AS v0", "count(*) AS n"]
        elif self._mix.schema_changes and self._random.random() < 0.5:
            headers += "-- dispensable: v0\n"
        if self._mix.has_approvals:
            headers += self._random.choice(("", "-- evolve: approve\n", "-- evolve: freeze\n"))
        return f"{headers}SELECT {', '.join(columns)} FROM {joins}"

    def _condition(self, relations: int) -> str:
        """Conditions on rows of one relation each; of some relations all rows count."""
        said = [
            self._random.choice((f"x{place}.w < 3", f"x{place}.w = 3 OR x{place}.v < 2"))
            for place in range(relations)
            if self._random.random() < 0.7
        ]
        return " WHERE " + " AND ".join(f"({each})" for each in said) if said else ""

    # -- what happens ------------------------------------------------------------------------------

    def _scripts(self, used: list[str]) -> dict[str, tuple[Update, ...]]:
        mix = self._mix
        kinds = ["write"] * mix.transactions + ["alter"] * mix.schema_changes
        kinds += ["global"] * mix.global_transactions
        self._random.shuffle(kinds)
        if mix.sequence:
            kinds.sort(key=lambda kind: kind == "alter")  # when the views have been filled
        scripts: dict[str, list[Update]] = {source: [] for source in self._sources}
        for number, kind in enumerate(kinds):
            source = self._random.choice(used)
            match kind:
                case "write":
                    scripts[source].append(self._write(source))
                case "alter":
                    for each in self._altered(source, used):
                        scripts[each] += self._changes_of(each)
                case _:
                    parts = self._random.sample(used, min(2, len(used)))
                    tie = (f"g{number}", len(parts))
                    for each in parts:
                        scripts[each].append(self._write(each, tie))
        # By numbers of their own: a family with fewer of them has the same worlds otherwise.
        drawn, self._random = self._random, random.Random(-self._seed - 1)
        for source in used:
            scripts[source] += [self._write(source) for _ in range(mix.closing)]
        self._random = drawn
        return {source: tuple(script) for source, script in scripts.items()}

    def _altered(self, source: str, used: list[str]) -> list[str]:
        """Where the schema changes: at one source, at several at once, or at one several times."""
        if not self._mix.comes_in_bursts:
            return [source]
        return self._random.choice(([source], [source], [source] * 2, used))

    def _write(self, source: str, tie: tuple[str, int] | None = None) -> Write:
        contents = self._now[source]
        several = self._random.random() < 0.15 and len(contents) > 1
        names = self._random.sample(sorted(contents), 2 if several else 1)
        changes = []
        for name in names:
            table = contents[name]
            rows = table.rows
            old = [row for row, count in rows.sorted() if count > 0]
            deleted = (self._random.choice(old),) if old and self._random.random() < 0.5 else ()
            inserted: tuple[Row, ...] = ()
            if not deleted or self._random.random() < 0.6:
                inserted = (self._inserted(table, old, deleted),)
            signed = [*((row, -1) for row in deleted), *((row, 1) for row in inserted)]
            contents[name] = Table(rows + Bag(rows.schema, signed), table.key)
            changes.append((name, deleted, inserted))
        return Write(tuple(changes), tie)

    def _inserted(self, table: Table, old: list[Row], deleted: tuple[Row, ...]) -> Row:
        """A row; with the number of one that is there, as far as the primary key allows it."""
        row = self._row(table.rows.schema)
        if "i" not in table.rows.schema:
            return row
        place = table.rows.schema.names.index("i")
        others = [row for row in old if row not in deleted]
        if deleted and self._random.random() < 0.7:
            like = deleted[0]  # an UPDATE
        elif table.key != ("i",) and others and self._random.random() < 0.7:
            like = self._random.choice(others)
        else:
            return row
        copy = (*row[:place], like[place], *row[place + 1 :])
        places = [table.rows.schema.names.index(column) for column in table.key]
        taken = {tuple(each[p] for p in places) for each in others}
        return row if places and tuple(copy[p] for p in places) in taken else copy

    def _changes_of(self, source: str) -> Iterator[Update]:
        if not self._mix.sequence:
            yield self._alter(source, self._now[source], self._mix.kinds)
        for first, kind in self._mix.sequence:
            # Names that a rename gives begin with the one before.
            names = [name for name in self._now[source] if name.startswith(first)]
            if names:
                yield self._alter(source, {n: self._now[source][n] for n in names}, (kind,))
            if self._random.random() < 0.3:
                yield self._write(source)

    def _alter(
        self, source: str, tables: Mapping[str, Table], kinds: tuple[str, ...]
    ) -> Alter | Statement:
        self._fresh += 1
        draw = alterations.Alterations(self._random, self._row, f"{self._fresh}")
        update = draw.drawn(tables, kinds)
        for alter in alters_of(update):
            self._now[source] = altered(self._now[source], alter)
        return update
