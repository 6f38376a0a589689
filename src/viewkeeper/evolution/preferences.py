"""What a view says about its parts: dispensable, replaceable, and how its extent may differ.

Written in the view's header, or for a view by name in ``viewkeeper.toml``:

    -- dispensable: phone, relation c, condition o.qty
    -- irreplaceable: name
    -- extent: superset
    -- evolve: approve

A bare word is an output column; ``relation`` is followed by an alias of the view; ``condition`` by a
column, and means all conditions that read it. Defaults: nothing is dispensable, everything is
replaceable, the extent must stay equal, and the policy is `auto`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from viewkeeper.algebra.expressions import Expression, columns_of
from viewkeeper.errors import UsageError, did_you_mean
from viewkeeper.evolution.quality import Extent
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.names import listed

E = TypeVar("E", bound=enum.Enum)


class Policy(enum.Enum):
    """Who decides: nobody (it is done), a person, or the view stays as it is."""

    AUTO = "auto"
    APPROVE = "approve"
    FREEZE = "freeze"


@dataclass(frozen=True)
class Parts:
    """Some parts of a view: outputs by name, relations by alias, conditions by a column they read."""

    outputs: frozenset[str] = frozenset()
    relations: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()

    def has_condition(self, condition: Expression) -> bool:
        return bool(columns_of(condition) & self.conditions)

    def renamed(self, columns: Mapping[str, str]) -> Parts:
        """The same parts where columns have moved, full names to full names."""
        moved = frozenset(columns.get(column, column) for column in self.conditions)
        return replace(self, conditions=moved)

    def __or__(self, other: Parts) -> Parts:
        return Parts(
            self.outputs | other.outputs,
            self.relations | other.relations,
            self.conditions | other.conditions,
        )

    def as_list(self) -> list[str]:
        """As the user writes them, in a fixed order."""
        return [
            *sorted(self.outputs),
            *(f"relation {alias}" for alias in sorted(self.relations)),
            *(f"condition {column}" for column in sorted(self.conditions)),
        ]


@dataclass(frozen=True)
class Preferences:
    """Everything that one view says about how it may evolve."""

    dispensable: Parts = Parts()
    irreplaceable: Parts = Parts()
    extent: Extent = Extent.EQUAL
    policy: Policy = Policy.AUTO

    def renamed(self, columns: Mapping[str, str]) -> Preferences:
        return replace(
            self,
            dispensable=self.dispensable.renamed(columns),
            irreplaceable=self.irreplaceable.renamed(columns),
        )

    def as_dict(self) -> dict[str, Any]:
        """For `explain --json`."""
        return {
            "dispensable": self.dispensable.as_list(),
            "irreplaceable": self.irreplaceable.as_list(),
            "extent": self.extent.value,
            "evolve": self.policy.value,
        }


def preferences_of(
    definition: ViewDefinition, configured: Mapping[str, Any] | None = None
) -> Preferences:
    """What the view's header says, and for what it does not say, its table in ``viewkeeper.toml``.

    Parts add up. Raises UsageError for a part that the view does not have, or an unknown word.
    """
    header = {name: value for name, value in definition.settings if name in _READERS}
    from_file = dict(configured or {})
    where = f"view {definition.name}"
    for word in from_file:
        if word not in _READERS:
            raise _unknown(f"[knowledge.views.{definition.name}]", "entry", word, _READERS)
    return Preferences(
        _parts(definition, "dispensable", header, from_file),
        _parts(definition, "irreplaceable", header, from_file),
        _choice(Extent, where, "extent", header, from_file, Extent.EQUAL),
        _choice(Policy, where, "evolve", header, from_file, Policy.AUTO),
    )


_READERS = ("dispensable", "irreplaceable", "extent", "evolve")


def _parts(
    definition: ViewDefinition, word: str, header: Mapping[str, str], from_file: Mapping[str, Any]
) -> Parts:
    written: list[str] = header[word].split(",") if word in header else []
    more = from_file.get(word, [])
    if not isinstance(more, list) or not all(isinstance(item, str) for item in more):
        raise UsageError(
            "bad-knowledge",
            f"{word} in [knowledge.views.{definition.name}] is not a list of texts",
            hint=f'{word} = ["phone", "relation c", "condition o.qty"]',
        )
    parts = Parts()
    for item in [*written, *more]:
        parts |= _part(definition, word, item.strip())
    return parts


def _part(definition: ViewDefinition, word: str, item: str) -> Parts:
    kind, _, name = item.rpartition(" ")
    match kind.strip():
        case "":
            known: Iterable[str] = definition.schema.names
            made = Parts(outputs=frozenset({name}))
        case "relation":
            known = [o.alias for term in definition.all_terms for o in term.occurrences]
            made = Parts(relations=frozenset({name}))
        case "condition":
            known = [
                c for t in definition.all_terms for p in t.predicates for c in sorted(columns_of(p))
            ]
            made = Parts(conditions=frozenset({name}))
        case other:
            raise _unknown(f"view {definition.name}", f"kind of {word} part", other, _KINDS)
    known = list(dict.fromkeys(known))
    if name not in known:
        raise _unknown(f"view {definition.name}", kind.strip() or "output column", name, known)
    return made


_KINDS = ("relation", "condition")


def _choice(
    kind: type[E],
    where: str,
    word: str,
    header: Mapping[str, str],
    from_file: Mapping[str, Any],
    default: E,
) -> E:
    value = header.get(word, from_file.get(word))
    if value is None:
        return default
    known = [member.value for member in kind]
    if value not in known:
        raise _unknown(where, word, str(value), known)
    return kind(value)


def _unknown(where: str, what: str, found: str, known: Iterable[str]) -> UsageError:
    choices = list(known)
    return UsageError(
        "bad-knowledge",
        f"{where}: there is no {what} {found}",
        detail=f"known are {listed(choices)}" if choices else "there are none",
        hint=did_you_mean(found, choices),
    )
