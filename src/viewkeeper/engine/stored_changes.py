"""Schema changes as the ledger keeps them: those that views have taken while their positions are before them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from viewkeeper.sources.interface import RelationSchema, SchemaChange
from viewkeeper.warehouse.columns import schema_from_json, schema_to_json
from viewkeeper.warehouse.entries import Entry


def changes_to_json(changes: Iterable[SchemaChange]) -> list[Any]:
    """What a run must know that meets what was before them once more."""
    return [
        {
            "source": change.source,
            "position": dict(change.position),
            "relation": change.relation,
            "before": _relation_to_json(change.before),
            "after": _relation_to_json(change.after),
            "statement": change.statement,
            "rewrites": change.rewrites,
            "renamed_columns": dict(change.renamed_columns),
            "renamed_to": change.renamed_to,
            "skips": change.skips,
        }
        for change in changes
    ]


def stored_changes(entry: Entry) -> dict[str, tuple[SchemaChange, ...]]:
    """Of each view, the changes that the ledger says it has taken."""
    return {
        name: tuple(_change_from_json(each) for each in state.taken)
        for name, state in entry.views.items()
        if state.taken
    }


def _change_from_json(value: Mapping[str, Any]) -> SchemaChange:
    read = {
        "before": _relation_from_json(value["before"]),
        "after": _relation_from_json(value["after"]),
    }
    return SchemaChange(**(dict(value) | read))


def _relation_to_json(relation: RelationSchema | None) -> Any:
    if relation is None:
        return None
    return {
        "relation": relation.relation,
        "columns": schema_to_json(relation.schema),
        "key": list(relation.key),
    }


def _relation_from_json(value: Any) -> RelationSchema | None:
    if value is None:
        return None
    return RelationSchema(
        value["relation"], schema_from_json(value["columns"]), tuple(value["key"]), ""
    )
