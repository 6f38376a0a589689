"""Text to syntax tree, by sqlglot's Spark dialect; the only file that knows how sqlglot is driven.

The dialect is narrowed so that the tree says what the user wrote: functions stay calls by name, no
rewriting into another function; CAST is not TRY_CAST; every leaf remembers its position.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parsers.spark import SparkParser

from viewkeeper.errors import UsageError
from viewkeeper.sql.sqltext import SqlText

_SPECIAL_CALLS = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "SUBSTR", "TRIM")


def _placed(node: exp.Expr, token: Token) -> exp.Expr:
    return node.update_positions(token)


class _Views(Spark):
    """Spark SQL as views are read. Not registered under a name: no other code should find it."""

    class Tokenizer(Spark.Tokenizer):
        # Spark 4 reads '' inside a string as one quote.
        STRING_ESCAPES: ClassVar[list[str]] = ["'", "\\"]

    class Parser(SparkParser):
        STRICT_CAST = True
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parse
            for name, parse in SparkParser.FUNCTION_PARSERS.items()
            if name in _SPECIAL_CALLS
        }
        PRIMARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
            **SparkParser.PRIMARY_PARSERS,
            TokenType.STRING: lambda _, token: _placed(exp.Literal.string(token.text), token),
            TokenType.NUMBER: lambda _, token: _placed(exp.Literal.number(token.text), token),
            TokenType.NULL: lambda _, token: _placed(exp.Null(), token),
            TokenType.TRUE: lambda _, token: _placed(exp.Boolean(this=True), token),
            TokenType.FALSE: lambda _, token: _placed(exp.Boolean(this=False), token),
        }


_DIALECT = _Views()
_BEGINNINGS = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)
# sqlglot forgives some of these when nothing stands between the first and the second; Spark does not.
_WANTS_MORE = (
    TokenType.COMMA,
    TokenType.SELECT,
    TokenType.FROM,
    TokenType.JOIN,
    TokenType.ON,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.IN,
    TokenType.AND,
    TokenType.OR,
    TokenType.NOT,
)
_BEFORE_A_SIGN = (
    TokenType.COMMA,
    TokenType.SELECT,
    TokenType.L_PAREN,
    TokenType.WHERE,
    TokenType.ON,
    TokenType.AND,
    TokenType.OR,
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
    TokenType.PLUS,
    TokenType.DASH,
    TokenType.SLASH,
)
_BEGINS_ANEW = (
    TokenType.COMMA,
    TokenType.FROM,
    TokenType.JOIN,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.UNION,
    TokenType.R_PAREN,
    TokenType.AND,
    TokenType.OR,
)


def parsed(text: SqlText) -> exp.Query:
    """The tree of the one query in the text; fills in its tokens. Raises UsageError."""
    text.tokens = _tokens(text)
    _require_one_query(text)
    try:
        trees = _DIALECT.parser(error_level=ErrorLevel.IMMEDIATE).parse(text.tokens, text.text)
    except ParseError as error:
        raise _syntax_error(text, error) from None
    except RecursionError:
        raise
    except Exception:
        # sqlglot trips over some malformed texts instead of refusing them.
        raise text.error("syntax-error", "this is not valid SQL") from None
    tree = trees[0]
    if not isinstance(tree, exp.Query):
        raise text.error("not-a-query", "a view is defined by one SELECT")
    return tree


def _tokens(text: SqlText) -> list[Token]:
    try:
        return _DIALECT.tokenize(text.text)
    except TokenError:
        raise text.error(
            "syntax-error",
            "a string, name or comment begins here and is never closed",
            _unclosed(text.text),
            hint="close it with the character that opened it",
        ) from None


_PIECE = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`|[^-/'\"`]+|[-/](?!\*)",
    re.DOTALL,
)


def _unclosed(text: str) -> int:
    """Where the first piece begins that nothing closes."""
    offset = 0
    while (piece := _PIECE.match(text, offset)) is not None:
        offset = piece.end()
    return min(offset, max(len(text) - 1, 0))


def _require_one_query(text: SqlText) -> None:
    while text.tokens and text.tokens[-1].token_type is TokenType.SEMICOLON:
        text.tokens.pop()
    if not text.tokens:
        raise text.error("empty-view", "there is no SELECT", hint="write the view as one SELECT")
    first = text.tokens[0]
    if first.token_type not in _BEGINNINGS:
        raise text.error(
            "not-a-query",
            f"a view is defined by one SELECT, and this begins with {first.text}",
            first.start,
            hint="leave out CREATE VIEW … AS and the like; the file's name is the view's name",
        )
    previous: Token | None = None
    for token, after in zip_longest(text.tokens, text.tokens[1:]):
        _require_plain(text, previous, token, after)
        previous = token


def _require_plain(
    text: SqlText, previous: Token | None, token: Token, after: Token | None
) -> None:
    """Refuse what sqlglot would pass over or drop without a word."""
    if token.token_type is TokenType.SEMICOLON:
        raise text.error(
            "several-statements",
            "the text goes on after a semicolon",
            token.start,
            hint="one file holds one view: put the second statement into its own file",
        )
    if token.token_type is TokenType.PIPE_GT:
        raise text.error(
            "unsupported-pipe",
            "the pipe |> is not supported",
            token.start,
            hint="write the query as SELECT … FROM … WHERE",
        )
    is_sign = previous is not None and previous.token_type in _BEFORE_A_SIGN
    is_number = after is not None and after.token_type is TokenType.NUMBER
    if token.token_type is TokenType.PLUS and is_sign and not is_number:
        raise text.error(
            "unsupported-sign", "a sign + is not supported", token.start, hint="leave it out"
        )
    if token.token_type in _WANTS_MORE and (after is None or after.token_type in _BEGINS_ANEW):
        is_comma = token.token_type is TokenType.COMMA
        raise text.error(
            "syntax-error",
            f"{'a comma' if is_comma else token.text.upper()} with nothing behind it",
            token.start,
            hint="remove it, or write what is missing",
        )


def _syntax_error(text: SqlText, error: ParseError) -> UsageError:
    """sqlglot's finding in our words; its own text carries colours and class names."""
    found: dict[str, Any] = error.errors[0] if error.errors else {}
    where = (found.get("line"), found.get("col"))
    token = next((t for t in text.tokens if (t.line, t.col) == where), None)
    description = str(found.get("description") or "")
    expected = re.fullmatch(r"Expect(?:ing|ed) ([^<]{1,20})", description)
    last = token is None or token is text.tokens[-1]
    if description.startswith("Required"):
        what = "something is missing at the end or before it" if last else "something is missing"
    elif token is None or (last and "Unexpected" not in description):
        what = "the text ends too early"
    else:
        what = f"syntax error at {token.text!r}"
    return text.error(
        "syntax-error",
        what,
        token.start if token is not None else len(text.text.rstrip()),
        detail=f"expected {expected[1]} here" if expected else "",
        hint="check commas, parentheses and the order SELECT, FROM, WHERE, GROUP BY, HAVING",
    )
