"""Judging the statements that the log holds as text: which tables' schema or contents they change.

Under row format only definitions come as text; anything else (an INSERT in statement format) changes
rows that the feed can't see, and is `Unknown`: the feed stops there. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.sources.interface import ToldColumns
from viewkeeper.sources.mariadb.dialect import Dialect


@dataclass(frozen=True)
class Harmless:
    """Changes no table's columns or rows."""


@dataclass(frozen=True)
class Commits:
    """Ends a transaction; ``undone`` when its changes are void."""

    undone: bool


@dataclass(frozen=True)
class MarksSavepoint:
    # In small letters: to the server it is the same in capital ones.
    name: str


@dataclass(frozen=True)
class ReturnsToSavepoint:
    name: str


@dataclass(frozen=True)
class ChangesTables:
    """Defines these (database, table) again; ``rewrites``: their rows may differ afterwards.

    A table of ``None`` means every table of the database.
    """

    tables: tuple[tuple[str, str | None], ...]
    rewrites: bool
    # Whether they may differ only in columns that got another type: then the types tell.
    only_retypes: bool = False
    # RENAME TABLE: a table has its rows and columns under its new name.
    only_renames: bool = False
    # Old to new names of columns that were renamed.
    renamed_columns: tuple[tuple[str, str], ...] = ()
    # Old to new (database, table).
    renamed_tables: tuple[tuple[tuple[str, str], tuple[str, str]], ...] = ()
    # Whether the tables are gone afterwards.
    drops: bool = False
    # What it does to columns, where the text says all of it.
    told: ToldColumns | None = None

    def moved(self, place: tuple[str, str]) -> tuple[str, str] | None:
        """Where a table has gone; None when it stayed, or when another took its name."""
        at = place
        for old, new in self.renamed_tables:
            at = new if at == old else at
        is_taken = place in {new for _, new in self.renamed_tables}
        return None if at == place or is_taken else at


@dataclass(frozen=True)
class Unknown:
    """Might change rows without row events."""


Verdict = Harmless | Commits | MarksSavepoint | ReturnsToSavepoint | ChangesTables | Unknown

BEGINNING_TOKENS = 200

# What a quoted text or a comment begins with.
_OPENS = re.compile(r"['\"`]|/\*(?!!|M!)")
UNCLOSED_MAX = 20

# Statements that touch accounts, programs or sessions only.
_HARMLESS_FIRST = frozenset(
    {"grant", "revoke", "set", "flush", "analyze", "optimize", "repair", "check", "begin", "start",
     "release", "xa", "install", "uninstall", "reset", "change", "purge", "lock", "unlock", "use"}
)  # fmt: skip
_HARMLESS_OBJECTS = frozenset(
    {"user", "role", "view", "trigger", "procedure", "function", "event", "server", "package",
     "sequence", "tablespace", "logfile"}
)  # fmt: skip
_OBJECTS = _HARMLESS_OBJECTS | {"table", "tables", "index", "database", "schema", "temporary"}


@dataclass(frozen=True)
class _Token:
    text: str
    is_name: bool  # quoted: never a keyword

    @property
    def word(self) -> str:
        return "" if self.is_name else self.text.lower()


def judged(statement: str, default_database: str, dialect: Dialect | None = None) -> Verdict:
    """What a statement of the log means for tables."""
    dialect = dialect or Dialect()
    beginning = _tokens(statement, dialect, BEGINNING_TOKENS)
    verdict = _judged(beginning, default_database)
    # A view's text, or a program's, may be of any length; what it is stands at its beginning.
    is_told = isinstance(verdict, Harmless) and beginning and beginning[0].word != "set"
    if is_told or len(beginning) < BEGINNING_TOKENS:
        return verdict
    return _judged(_tokens(statement, dialect), default_database)


def _tokens(statement: str, dialect: Dialect, most: int | None = None) -> list[_Token]:
    tokens: list[_Token] = []
    unclosed = 0
    for found in dialect.tokens.finditer(statement):
        if len(tokens) == most:
            break
        if found["sign"] and _OPENS.match(statement, found.start()):
            # Each was followed to the end in vain. No valid statement has many: the rest is one text.
            unclosed += 1
            if unclosed > UNCLOSED_MAX:
                break
        if found["quoted"]:
            mark = found["quoted"][0]
            tokens.append(_Token(found["quoted"][1:-1].replace(mark * 2, mark), True))
        elif found["text"]:
            tokens.append(_Token(found["text"], True))
        elif found["word"] or found["sign"]:
            tokens.append(_Token(found["word"] or found["sign"], False))
    return tokens


def _judged(tokens: list[_Token], database: str) -> Verdict:
    words = [token.word for token in tokens]
    match words:
        case []:
            return Harmless()
        case ["commit", *_]:
            return Commits(undone=False)
        case ["rollback", "to", *_]:
            return ReturnsToSavepoint(tokens[-1].text.casefold())
        case ["rollback", *_]:
            return Commits(undone=True)
        case ["savepoint", _]:
            return MarksSavepoint(tokens[1].text.casefold())
        case ["set", "statement", *_] if "for" in words:
            return _judged(tokens[words.index("for") + 1 :], database)
        case ["truncate", *rest]:
            names = _names(tokens[1 + (rest[:1] == ["table"]) :], database)
            return ChangesTables(names[:1], rewrites=True)
        case ["create" | "alter" | "drop" | "rename", *_]:
            return _definition(tokens, words, database)
        case [first, *_] if first in _HARMLESS_FIRST:
            return Harmless()
    return Unknown()


def _definition(tokens: list[_Token], words: list[str], database: str) -> Verdict:
    at = next((i for i, word in enumerate(words) if i and word in _OBJECTS), None)
    if at is None:
        return Unknown()
    match words[0], words[at]:
        case _, "temporary":
            return Harmless()
        case "drop", "database" | "schema":
            return ChangesTables(((tokens[-1].text, None),), rewrites=True, drops=True)
        case _, "database" | "schema":
            return Harmless()
        case _, "index":
            on = words.index("on", at) if "on" in words[at:] else len(words)
            names = _names(tokens[on + 1 :], database)[:1]
            return ChangesTables(names, rewrites=False, told=ToldColumns())
        case "alter", "table":
            return _alter(tokens[at + 1 :], "ignore" in words[:at], database)
        case "create", "table":
            return ChangesTables(_names(tokens[at + 1 :], database)[:1], rewrites=True)
        case "drop", "table" | "tables":
            return ChangesTables(_names(tokens[at + 1 :], database), rewrites=True, drops=True)
        case "rename", "table" | "tables":
            names = _names(tokens[at + 1 :], database)
            pairs = tuple(zip(names[::2], names[1::2], strict=False))
            return ChangesTables(names, rewrites=True, only_renames=True, renamed_tables=pairs)
    return Harmless()


def _names(tokens: Sequence[_Token], database: str) -> tuple[tuple[str, str], ...]:
    """The tables in a list like ``IF EXISTS a, b.c TO d``, up to the first bracket."""
    found: list[tuple[str, str]] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.text == "(" and not token.is_name:
            break
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if token.word in (
            "if",
            "not",
            "exists",
            "to",
            ",",
            "restrict",
            "cascade",
            "wait",
            "nowait",
        ):
            index += 1
        elif following == "." and index + 2 < len(tokens):
            found.append((token.text, tokens[index + 2].text))
            index += 3
        else:
            found.append((database, token.text))
            index += 1
    return tuple(found)


def _alter(tokens: list[_Token], ignore: bool, database: str) -> Verdict:
    while tokens and tokens[0].word in ("if", "exists"):
        tokens = tokens[1:]
    qualified = len(tokens) > 1 and tokens[1].text == "."
    name, tokens = (
        _names(tokens[: 3 if qualified else 1], database),
        tokens[3 if qualified else 1 :],
    )
    while tokens and (tokens[0].word in ("wait", "nowait") or tokens[0].text.isdigit()):
        tokens = tokens[1:]
    clauses = _clauses(tokens)
    moved: list[tuple[str, str]] = []
    columns: list[tuple[str, str]] = []
    for clause in clauses:
        words = [token.word for token in clause]
        match words:
            case ["rename", "column", *_] if len(clause) == 5:
                columns.append((clause[2].text, clause[4].text))
            case ["rename", "index" | "key", *_]:
                pass
            case ["rename", *_]:
                moved += _names([t for t in clause[1:] if t.word not in ("as", "=")], database)
            case ["change", *_]:
                old, new = [t.text for t in clause[1:] if t.word not in _CHANGE_NOISE][:2]
                columns += [(old, new)] if old != new else []
    doubtful = [c for words in clauses if not _keeps_rows(c := [t.word for t in words])]
    return ChangesTables(
        (*name, *moved),
        rewrites=ignore or bool(doubtful),
        only_retypes=not ignore and bool(doubtful) and all(map(_retypes, doubtful)),
        renamed_columns=tuple(columns),
        renamed_tables=tuple((name[0], new) for new in moved),
        told=None if ignore else _told(clauses),
    )


_CHANGE_NOISE = frozenset({"column", "if", "exists"})
_NOISE = _CHANGE_NOISE | {"not"}


def _told(clauses: list[list[_Token]]) -> ToldColumns | None:
    """What the clauses do to columns; None when one may do more than rename, drop or add some."""
    renamed: dict[str, str] = {}
    dropped: list[str] = []
    added: list[str] = []
    for clause in clauses:
        words = [token.word for token in clause]
        match words:
            case _ if "primary" in words:
                return None
            case ["rename", "column", *_] if len(clause) == 5:
                renamed[clause[2].text] = clause[4].text
            case ["rename", "column", *_]:
                return None
            case ["rename" | "alter", *_]:
                pass  # an index, the table itself, a default
            case ["add" | "drop", second, *_] if second in _KEY_WORDS:
                pass
            case ["add" | "drop", "partition" | "period" | "system", *_]:
                return None
            case ["add" | "drop" as what, *_]:
                named = [token for token in clause[1:] if token.word not in _NOISE]
                if not named or named[0].word == "(" or "key" in words:
                    return None
                (added if what == "add" else dropped).append(named[0].text)
            case [first, *_] if first in _OPTIONS:
                pass
            case _:
                return None
    return ToldColumns(renamed, tuple(dropped), tuple(added))


def _clauses(tokens: list[_Token]) -> list[list[_Token]]:
    """The parts between commas that stand outside brackets."""
    clauses: list[list[_Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        if token.word == "," and depth == 0:
            clauses.append([])
        else:
            clauses[-1].append(token)
    return [clause for clause in clauses if clause]


_KEY_WORDS = frozenset(
    {"index", "key", "unique", "fulltext", "spatial", "constraint", "foreign", "primary", "check"}
)
# A new column with any of these starts with other values than NULL.
_FILLING = frozenset(
    {
        "default",
        "not",
        "as",
        "generated",
        "auto_increment",
        "timestamp",
        "serial",
        "period",
        "system",
    }
)
_OPTIONS = frozenset(
    {"comment", "auto_increment", "row_format", "force", "algorithm", "lock", "enable", "disable",
     "order", "key_block_size", "stats_persistent", "stats_auto_recalc", "stats_sample_pages",
     "page_compressed", "page_compression_level", "encrypted", "encryption_key_id", "default",
     "character", "charset", "collate", "max_rows", "min_rows", "engine"}
)  # fmt: skip


# What may put other values in a column than its new type's form of the old ones.
_REPLACING = _FILLING - {"default"} | _KEY_WORDS | {"character", "charset", "collate", "references"}


def _retypes(words: list[str]) -> bool:
    """Whether the clause does nothing to values but to bring them to a type."""
    return words[0] in ("modify", "change") and not _REPLACING & set(words)


def _keeps_rows(words: list[str]) -> bool:
    """Whether the clause surely leaves every value of the columns that remain as it was."""
    match words:
        case ["add", second, *_] if second in _KEY_WORDS:
            return True
        case ["add", "partition", *_]:
            return True
        case ["add", *rest]:
            return not _FILLING & set(rest)
        case ["drop", second, *_]:
            return second not in ("partition", "system", "period")
        case ["alter", *_]:
            return True
        case ["rename", *_]:
            return True
        case [first, *_]:
            return first in _OPTIONS
    return False
