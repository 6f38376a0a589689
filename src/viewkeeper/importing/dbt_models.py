"""One dbt model as a view: ``ref`` and ``source`` become names, all other templates are refused.

dbt's models are templates: anything can be computed in them, and only dbt knows what comes out. We take the
part that is plain SQL with names of other models and of sources; a macro, a variable or a condition is an
error that names its line, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# What is never closed goes on to the end: looking for its end from each beginning would take for ever.
_COMMENT = re.compile(r"\{#.*?(?:(?P<end>#\})|\Z)", re.DOTALL)
_TEMPLATE = re.compile(
    r"\{\{-?(?P<call>.*?)(?:-?(?P<end>\}\})|\Z)|\{%-?(?P<block>.*?)(?:-?(?P<block_end>%\})|\Z)",
    re.DOTALL,
)
_CALL = re.compile(r"\s*(?P<name>\w+)\s*\((?P<arguments>.*)\)\s*", re.DOTALL)
_TEXT = re.compile(r"""\s*(?:'([^'{}]*)'|"([^"{}]*)")\s*""")

# What users ask most often, and what they can do.
_HINTS = {
    "is_incremental": "leave the condition out: every view is kept from changes here",
    "var": "write the value itself",
    "env_var": "write the value itself",
    "dbt_utils": "write out what the macro makes: `dbt compile` prints it",
}


@dataclass(frozen=True)
class SourceTable:
    """A table of a dbt source: how a view names it here."""

    source: str
    table: str
    schema: str | None = None

    @property
    def name(self) -> str:
        return ".".join(filter(None, (self.source, self.schema, self.table)))


@dataclass(frozen=True)
class Refusal:
    """What of a model can't be translated: the line, the reason, and what to write instead."""

    model: str
    line: int
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.model}, line {self.line}: {self.reason}" + (
            f" ({self.hint})" if self.hint else ""
        )


@dataclass(frozen=True)
class Translation:
    """A model as SQL with plain names, the models and sources it reads, and what was refused."""

    text: str
    models: tuple[str, ...]
    sources: tuple[str, ...]
    refusals: tuple[Refusal, ...]


def translated(
    model: str, text: str, models: frozenset[str], tables: Mapping[tuple[str, str], SourceTable]
) -> Translation:
    """The model's text with names in place of ``ref`` and ``source``; what is refused stays as it is."""
    # Comments keep their lines, so that what is refused further down is told by the right line.
    reading = _Reading(model, models, tables)
    whole = text
    text = _COMMENT.sub(lambda found: reading.commented(found, whole), whole)
    plain = _TEMPLATE.sub(lambda found: reading.replaced(found, text), text)
    return Translation(
        plain.strip() + "\n",
        tuple(dict.fromkeys(reading.models)),
        tuple(dict.fromkeys(reading.sources)),
        tuple(reading.refusals),
    )


class _Reading:
    """What is found while the templates of one model are gone through."""

    def __init__(
        self,
        model: str,
        known: frozenset[str],
        tables: Mapping[tuple[str, str], SourceTable],
    ) -> None:
        self.model = model
        self.known = known
        self.tables = tables
        self.models: list[str] = []
        self.sources: list[str] = []
        self.refusals: list[Refusal] = []

    def commented(self, found: re.Match[str], text: str) -> str:
        """The lines of a comment, empty."""
        if found["end"] is None:
            self._refuse_open(found, text)
        return "\n" * found[0].count("\n")

    def _refuse_open(self, found: re.Match[str], text: str) -> str:
        line = text.count("\n", 0, found.start()) + 1
        opened = found[0][:2]
        reason = f"{opened} is never closed"
        self.refusals.append(Refusal(self.model, line, reason, "close it where it ends"))
        return found[0]

    def replaced(self, found: re.Match[str], text: str) -> str:
        if found["end"] is None and found["block_end"] is None:
            return self._refuse_open(found, text)
        line = text.count("\n", 0, found.start()) + 1

        def refuse(reason: str, hint: str = "") -> str:
            self.refusals.append(Refusal(self.model, line, reason, hint))
            return found[0]

        if found["block"] is not None:
            words = found["block"].split()
            hint = next((h for word, h in _HINTS.items() if word in found["block"]), "")
            return refuse(
                f"the template block {{% {words[0] if words else ''} … %}} is not supported",
                hint or "write out the SQL that it makes: `dbt compile` prints it",
            )
        call = _CALL.fullmatch(found["call"])
        name = call["name"] if call else found["call"].strip().split("(")[0]
        arguments = _texts(call["arguments"]) if call else None
        match name, arguments:
            case "config", _ if call:
                return ""  # how dbt stores the model; a view here says that in its headers
            case "ref", [other]:
                return self._model(other, refuse)
            case "source", [source, table]:
                return self._table(source, table, refuse)
            case (("ref" | "source"), _):
                return refuse(
                    f"{name}({call['arguments'] if call else ''}) is not supported",
                    "ref('model') and source('source', 'table') with plain texts are",
                )
            case _:
                hint = next((h for word, h in _HINTS.items() if name.startswith(word)), "")
                return refuse(f"the macro {name} is not supported", hint or _HINTS["dbt_utils"])

    def _model(self, other: str, refuse: Callable[[str, str], str]) -> str:
        if other not in self.known:
            return refuse(
                f"there is no model {other}",
                "seeds and snapshots can't be imported: keep them in a database of their own",
            )
        self.models.append(other)
        return other

    def _table(self, source: str, table: str, refuse: Callable[[str, str], str]) -> str:
        found = self.tables.get((source, table))
        if found is None:
            return refuse(f"no schema file declares the source {source}.{table}", "")
        self.sources.append(found.source)
        return found.name


def _texts(arguments: str) -> list[str] | None:
    """The arguments of a call if all of them are plain texts."""
    found = []
    for part in arguments.split(","):
        text = _TEXT.fullmatch(part)
        if text is None:
            return None
        found.append(text[1] if text[1] is not None else text[2])
    return found
