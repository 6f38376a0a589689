"""A plan of Spark as a flat list of its nodes: every plan and expression that it holds, wherever.

Spark keeps parts of a plan in fields that its own walks pass over: the plan of a subquery, the queries of
a WITH, the arguments of a function that another one replaces. So every field of every node is looked
into. Nothing is run, and nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import is_instance_of

from viewkeeper.errors import UsageError

NODES_MAX = 10_000
# Spark's own walks use the stack, and so do its tasks: deeper plans could end the whole JVM.
DEPTH_MAX = 400

CATALYST = "org.apache.spark.sql.catalyst."
# Where the words stand that a node names something by.
_WORDS: Mapping[str, str] = {
    f"{CATALYST}analysis.UnresolvedRelation": "multipartIdentifier",
    f"{CATALYST}analysis.UnresolvedFunction": "nameParts",
    f"{CATALYST}analysis.UnresolvedTableValuedFunction": "name",
    f"{CATALYST}plans.logical.UnresolvedHint": "name",
}
_VIEW = f"{CATALYST}plans.logical.View"
_INLINE = f"{CATALYST}plans.logical.LocalRelation"
_STREAMING = f"{CATALYST}analysis.UnresolvedRelation"
# What is in them are values and names, and no plan.
_CONSTANTS = (
    f"{CATALYST}expressions.Literal",
    f"{CATALYST}expressions.AttributeReference",
    f"{CATALYST}analysis.UnresolvedAttribute",
    _INLINE,
)


@dataclass(frozen=True)
class PlanNode:
    """One plan or expression: its class, and the words by which it names what it reads or calls."""

    kind: str
    words: tuple[str, ...] = ()
    is_plan: bool = False

    @property
    def name(self) -> str:
        """The class without its package."""
        return self.kind.rpartition(".")[2]


class PlanReader:
    """Reads plans of one JVM; what each of its classes is, is asked for once."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._sorts: dict[str, str] = {}

    def nodes(self, plan: Any) -> list[PlanNode]:
        """Every node of the plan; the contents of views are left out. Raises UsageError: too deep."""
        found: list[PlanNode] = []
        left = [(plan, 0)]
        while left:
            thing, depth = left.pop()
            kind, sort = self._sort(thing)
            if sort in ("plan", "expression"):
                found.append(PlanNode(kind, self._words(kind, thing), sort == "plan"))
                depth += 1
            if depth > DEPTH_MAX or len(found) > NODES_MAX:
                raise too_deep()
            left += [(part, depth) for part in self._parts(kind, sort, thing) if _is_object(part)]
        return found

    def _words(self, kind: str, node: Any) -> tuple[str, ...]:
        if kind == _VIEW:
            is_temporary = node.isTempView() and node.desc().identifier().database().isEmpty()
            return (node.desc().identifier().table(),) if is_temporary else ()
        if kind not in _WORDS:
            return ()
        words = getattr(node, _WORDS[kind])()
        if isinstance(words, str):
            return (words,)
        more = ("STREAM",) if kind == _STREAMING and node.isStreaming() else ()
        return (*more, *(str(word) for word in _listed(words)))

    def _parts(self, kind: str, sort: str, thing: Any) -> Iterator[Any]:
        if kind == _VIEW or kind in _CONSTANTS:
            return
        if sort == "expression" and self._sorts.get(f"replaced {kind}"):
            # What stands for it is Spark's own and made of its arguments: those are looked at.
            yield from _listed(thing.parameters())
        elif sort == "collection":
            yield from _listed(thing)
        elif sort in ("plan", "expression", "product"):
            for index in range(thing.productArity()):
                yield thing.productElement(index)

    def _sort(self, thing: Any) -> tuple[str, str]:
        kind = str(thing.getClass().getName())
        if kind not in self._sorts:
            self._sorts[kind] = self._new_sort(thing)
            if self._sorts[kind] == "expression":
                replaced = self._is(thing, f"{CATALYST}expressions.InheritAnalysisRules")
                self._sorts[f"replaced {kind}"] = "yes" if replaced else ""
        return kind, self._sorts[kind]

    def _new_sort(self, thing: Any) -> str:
        if self._is(thing, "org.apache.spark.sql.types.DataType"):
            return "value"
        if self._is(thing, f"{CATALYST}plans.QueryPlan"):
            return "plan"
        if self._is(thing, f"{CATALYST}trees.TreeNode"):
            # Also statements of scripts, which are neither plan nor expression.
            return "expression"
        if self._is(thing, "scala.collection.Iterable"):
            return "collection"
        return "product" if self._is(thing, "scala.Product") else "value"

    def _is(self, thing: Any, kind: str) -> bool:
        return bool(is_instance_of(self._gateway, thing, kind))


def too_deep() -> UsageError:
    return UsageError(
        "query-too-deep",
        "the query is nested too deeply or has too many parts",
        detail=f"expected {DEPTH_MAX} levels and {NODES_MAX} parts at most",
        hint="write long chains of operators as IN, or split the query with WITH",
    )


def _listed(sequence: Any) -> list[Any]:
    indexed = sequence.toIndexedSeq()
    return [indexed.apply(index) for index in range(indexed.size())]


def _is_object(thing: Any) -> bool:
    """Whether it is an object of the JVM; numbers, texts and None arrive as Python's own."""
    return hasattr(thing, "_target_id")
