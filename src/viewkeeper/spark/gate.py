"""The gate for queries of readers: they compute from the views' rows, and reach nothing else.

A query is judged twice, on Spark's own trees, and nothing of it runs before. First as it was parsed: Spark
executes some texts while it analyses them (EXECUTE IMMEDIATE, a script, a path that it looks into), so
those must be gone by then. Then as it was analysed: what every name stands for now. Both are lists of what
is allowed; what is on neither, a later Spark's new word included, is refused. The plan that was judged is
the one that runs: no text is parsed a second time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException
from pyspark.sql import DataFrame

from viewkeeper.errors import UsageError, did_you_mean
from viewkeeper.spark.failures import translated
from viewkeeper.spark.plan_nodes import CATALYST, PlanNode, PlanReader, too_deep
from viewkeeper.spark.query_functions import FUNCTIONS, TABLE_FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY_CHARACTERS_MAX = 100_000


def _classes(package: str, names: str) -> frozenset[str]:
    return frozenset(f"{CATALYST}{package}.{name}" for name in names.split())


_RELATION = f"{CATALYST}analysis.UnresolvedRelation"
_FUNCTION = f"{CATALYST}analysis.UnresolvedFunction"
_TABLE_FUNCTION = f"{CATALYST}analysis.UnresolvedTableValuedFunction"
_HINT = f"{CATALYST}plans.logical.UnresolvedHint"
_VIEW = f"{CATALYST}plans.logical.View"

_HINTS = frozenset(
    {
        "BROADCAST",
        "BROADCASTJOIN",
        "MAPJOIN",
        "MERGE",
        "SHUFFLE_MERGE",
        "MERGEJOIN",
        "SHUFFLE_HASH",
        "SHUFFLE_REPLICATE_NL",
    }
)

_PLANS = _classes(
    "plans.logical",
    """
    Aggregate Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin LocalLimit LocalRelation
    Offset OneRowRelation Project Sample Sort SubqueryAlias Union
    """,
) | _classes("expressions", "PipeOperator")
_PARSED_PLANS = (
    _PLANS
    | _classes("plans.logical", "Pivot UnresolvedHint UnresolvedWith Unpivot WithWindowDefinition")
    | _classes(
        "analysis",
        """
        UnresolvedHaving UnresolvedInlineTable UnresolvedRelation UnresolvedSubqueryColumnAliases
        UnresolvedTableValuedFunction UnresolvedTVFAliases
        """,
    )
)
_ANALYSED_PLANS = _PLANS | _classes(
    "plans.logical",
    """
    CTERelationDef CTERelationRef Expand Range ResolvedHint UnionLoop UnionLoopRef View Window WithCTE
    """,
)

# What the parser and the analyser make of operators, of SQL's own syntax, and of functions that have
# several forms. Each computes from its arguments alone.
_EXPRESSIONS = _classes(
    "expressions",
    """
    Add Alias And AttributeReference BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast Coalesce
    Concat CreateArray CreateNamedStruct Cube CurrentRow$ Divide EqualNullSafe EqualTo Exists GetArrayItem
    GetArrayStructFields GetMapValue GetStructField GreaterThan GreaterThanOrEqual GroupingSets If ILike In
    InSubquery IntegralDivide IsNotNull IsNull LambdaFunction LateralSubquery LessThan LessThanOrEqual Like
    LikeAll LikeAny ListQuery Literal Lower Multiply NamedArgumentExpression NamedLambdaVariable Not NotLikeAll
    NotLikeAny Or OuterReference PipeExpression RLike Remainder Rollup ScalarSubquery ShiftLeft ShiftRight
    ShiftRightUnsigned SortOrder SpecifiedWindowFrame StringLocate StringTrim StringTrimBoth StringTrimLeft
    StringTrimRight Substring Subtract TryEval UnaryMinus UnaryPositive UnboundedFollowing$ UnboundedPreceding$
    UnresolvedNamedLambdaVariable UnresolvedWindowExpression UnspecifiedFrame$
    WindowExpression WindowSpecDefinition

    CurrentDate CurrentTimeZone CurrentTimestamp DateAdd DateAddInterval DateAddYMInterval DateDiff
    DateFormatClass DateSub DatetimeSub DivideDTInterval DivideInterval DivideYMInterval Extract Hour LocalTimestamp
    MakeTimestamp MakeTimestampFromDateTime MakeTimestampNTZ Minute MultiplyDTInterval MultiplyInterval
    MultiplyYMInterval Now ParseToDate ParseToTimestamp Second SubtractDates SubtractTimestamps TimestampAdd
    TimestampAddInterval TimestampAddYMInterval TimestampDiff TryMakeTimestamp TryMakeTimestampFromDateTime

    Base64 BinaryPad BinaryPredicate Ceil Collate Contains Decode EndsWith Explode Floor Hex Inline Mask
    Overlay PosExplode ResolvedCollation RoundCeil RoundFloor StartsWith StringInstr
    StringInstrWithOccurrence StringLPad StringRPad ToCharacter UnresolvedCollation
    """,
) | _classes(
    "expressions",
    """
    aggregate.AggregateExpression aggregate.AnyValue aggregate.Average aggregate.First aggregate.Last
    aggregate.MaxBy aggregate.MaxMinByK aggregate.MinBy aggregate.Mode aggregate.PercentileCont
    aggregate.PercentileDisc aggregate.PivotFirst aggregate.Sum variant.ParseJson variant.VariantGet
    """,
)
_PARSED_EXPRESSIONS = _EXPRESSIONS | _classes(
    "analysis",
    """
    MultiAlias UnresolvedAlias UnresolvedAttribute UnresolvedExtractValue UnresolvedFunction
    UnresolvedGenerator UnresolvedOrdinal UnresolvedStar UnresolvedStarExceptOrReplace
    """,
)


@dataclass(frozen=True)
class ParsedQuery:
    """A query that Spark could parse and whose words are all allowed. Nothing has looked at the views."""

    session: SparkSession
    reader: PlanReader
    plan: Any
    nodes: tuple[PlanNode, ...]

    @cached_property
    def relations(self) -> frozenset[str]:
        """The names it reads from: views, and the names that it gives itself in a WITH."""
        return frozenset(node.words[0] for node in self.nodes if node.kind == _RELATION)

    def frame(self, views: Collection[str]) -> DataFrame:
        """The query over temporary views of these names, checked and not yet run. Raises UsageError."""
        state = self.session._jsparkSession.sessionState()
        jvm: Any = self.session._jvm
        skip = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
        with answering():
            analysed = state.executePlan(self.plan, skip).analyzed()
            classes = _function_classes(jvm, self.nodes)
            judge_analysed(self.reader.nodes(analysed), views, classes)
            dataset = jvm.org.apache.spark.sql.classic.Dataset
            return DataFrame(dataset.ofRows(self.session._jsparkSession, analysed), self.session)


def parsed_query(session: SparkSession, text: str) -> ParsedQuery:
    """The query that a text holds, with every word of it allowed; raises UsageError."""
    require_length(text)
    reader = PlanReader(session.sparkContext._gateway)
    with answering():
        plan = session._jsparkSession.sessionState().sqlParser().parsePlan(text)
        nodes = tuple(reader.nodes(plan))
        judge_parsed(nodes)
    return ParsedQuery(session, reader, plan, nodes)


def require_length(text: str) -> None:
    if len(text) > QUERY_CHARACTERS_MAX:
        raise UsageError(
            "query-too-long",
            f"the query has {len(text):,} characters",
            detail=f"expected {QUERY_CHARACTERS_MAX:,} at most",
            hint="join with a view instead of listing many values",
        )


@contextmanager
def answering() -> Iterator[None]:
    """Around all that Spark does for a reader's text: whatever fails raises UsageError, with a name."""
    try:
        with translated():
            try:
                yield
            except ParseException as failure:
                raise _unparsable(failure) from None
    except Py4JJavaError as failure:
        java: Any = failure.java_exception
        if "StackOverflowError" in str(java.getClass().getName()):
            raise too_deep() from None
        detail = str(java.toString()).splitlines()[0]
        raise UsageError(
            "spark-query-failed", "Spark could not run the query", detail=detail
        ) from None


def _unparsable(failure: ParseException) -> UsageError:
    if failure.getCondition() == "FAILED_TO_PARSE_TOO_COMPLEX":
        return too_deep()
    lines = str(failure).strip().splitlines()
    return UsageError(
        "query-syntax",
        "Spark can't parse the query",
        detail=lines[0] if lines else "",
        hint="one SELECT in Spark SQL is expected",
    )


# -- what is allowed ------------------------------------------------------------------------------


def judge_parsed(nodes: Iterable[PlanNode]) -> None:
    """Raise UsageError unless every node of a parsed query is on the lists."""
    for node in nodes:
        allowed = _PARSED_PLANS if node.is_plan else _PARSED_EXPRESSIONS
        if node.kind not in allowed:
            raise _refused(node)
        match node.kind:
            case kind if kind == _RELATION and len(node.words) != 1:
                raise _not_allowed(f"the table {'.'.join(node.words)}")
            case kind if kind == _FUNCTION and not _is_listed(node.words, FUNCTIONS):
                raise _unlisted("function", node.words, FUNCTIONS)
            case kind if kind == _TABLE_FUNCTION and not _is_listed(node.words, TABLE_FUNCTIONS):
                raise _unlisted("table function", node.words, TABLE_FUNCTIONS)
            case kind if kind == _HINT and node.words[0].upper() not in _HINTS:
                raise _not_allowed(f"the hint {node.words[0]}")


def judge_analysed(
    nodes: Iterable[PlanNode], views: Collection[str], function_classes: Collection[str]
) -> None:
    """Raise UsageError unless an analysed query reads these views alone and computes with these classes."""
    for node in nodes:
        if node.kind == _VIEW:
            if len(node.words) != 1 or node.words[0] not in views:
                raise _not_allowed(f"the table {'.'.join(node.words)}")
        elif node.is_plan:
            if node.kind not in _ANALYSED_PLANS:
                raise _refused(node)
        elif node.kind not in _EXPRESSIONS and node.kind not in function_classes:
            raise _refused(node)


def _is_listed(words: tuple[str, ...], listed: Collection[str]) -> bool:
    return len(words) == 1 and words[0].lower() in listed


def _function_classes(jvm: Any, nodes: Iterable[PlanNode]) -> frozenset[str]:
    """The classes of Spark's own functions that the query names, whatever the session calls so."""
    catalyst = jvm.org.apache.spark.sql.catalyst
    registries = {
        _FUNCTION: catalyst.analysis.FunctionRegistry.builtin(),
        _TABLE_FUNCTION: catalyst.analysis.TableFunctionRegistry.builtin(),
    }
    called = {(n.kind, n.words[0].lower()) for n in nodes if n.kind in registries}
    found: set[str] = set()
    for kind, name in called:
        info = registries[kind].lookupFunction(catalyst.FunctionIdentifier(name))
        if info.isDefined():
            found.add(str(info.get().getClassName()))
    return frozenset(found)


# What people know these nodes as.
_KNOWN_AS = {
    "ScriptTransformation": "TRANSFORM, which runs a program",
    "InsertIntoDir": "INSERT OVERWRITE DIRECTORY",
    "InsertIntoStatement": "INSERT",
    "CompoundBody": "a script (BEGIN … END)",
    "UnresolvedExecuteImmediate": "EXECUTE IMMEDIATE",
    "SetCommand": "SET",
    "SetVariable": "SET VARIABLE",
    "RelationTimeTravel": "VERSION AS OF or TIMESTAMP AS OF",
}


def _refused(node: PlanNode) -> UsageError:
    return _not_allowed(_KNOWN_AS.get(node.name, node.name))


def _unlisted(what: str, words: tuple[str, ...], listed: Collection[str]) -> UsageError:
    name = ".".join(words)
    return _not_allowed(f"the {what} {name}", did_you_mean(name, listed))


def _not_allowed(what: str, hint: str = "") -> UsageError:
    return UsageError(
        "query-not-allowed",
        f"a query may not use {what}",
        detail="it reads the project's views and computes from their rows; nothing is run or written",
        hint=hint or "viewkeeper query takes one SELECT over the views, in Spark SQL",
    )
