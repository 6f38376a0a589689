"""Every error that the program can raise, read from its source: code, what it says, what helps.

Codes are literals nearly everywhere. Where a code is chosen first and the error made from it later, the
choice is looked for in the same module; a test fails when a code can't be found in either way.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import viewkeeper

PACKAGE = Path(viewkeeper.__file__).parent
FAMILIES = {
    "UsageError": "usage",
    "SourceError": "source",
    "PoisonRow": "source",
    "WarehouseError": "warehouse",
    "ViewkeeperError": "other",
    "Undecided": "other",
}
_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+|unreachable")


@dataclass(frozen=True, order=True)
class Saying:
    """One place that raises a code: the family, the sentence with … for what differs, what helps."""

    code: str
    family: str
    message: str
    hint: str
    module: str


@cache
def sayings() -> list[Saying]:
    """All of them, sorted by code."""
    found: set[Saying] = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        found |= set(module_of(file).sayings())
    return sorted(found)


@cache
def findings() -> list[Saying]:
    """What `viewkeeper check` can find, in the same form."""
    found = set()
    for file in sorted((PACKAGE / "sources").rglob("*.py")):
        module = module_of(file)
        for call in module.calls("Finding"):
            if len(call.args) > 1 and isinstance(call.args[0], ast.Constant):
                texts = [_pattern(argument) for argument in call.args]
                fix = texts[3] if len(texts) > 3 else _keyword(call, "fix")
                found.add(
                    Saying(texts[0], texts[1], texts[2] if len(texts) > 2 else "", fix, module.name)
                )
    return sorted(found)


@cache
def module_of(file: Path) -> _Module:
    """A file of the package, parsed once."""
    return _Module(file)


class _Module:
    def __init__(self, file: Path) -> None:
        self.name = str(file.relative_to(PACKAGE))
        self.tree = ast.parse(file.read_text(encoding="utf-8"))

    def calls(self, *names: str) -> Iterator[ast.Call]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _name(node.func) in names:
                yield node

    def sayings(self) -> Iterator[Saying]:
        for call in self.calls(*FAMILIES):
            if not call.args:
                continue
            family = FAMILIES[_name(call.func)]
            message = _pattern(call.args[1]) if len(call.args) > 1 else ""
            hint = _keyword(call, "hint")
            for code in self._codes(call.args[0]):
                yield Saying(code, family, message, hint, self.name)
        # Helpers that take a code: their callers name it.
        for helper, family in self._helpers():
            for call in self.calls(helper):
                code = call.args[0] if call.args else None
                if isinstance(code, ast.Constant) and _CODE.fullmatch(str(code.value)):
                    message = _pattern(call.args[1]) if len(call.args) > 1 else ""
                    yield Saying(code.value, family, message, _helping(call), self.name)
        for call in self.calls("__init__"):
            if call.args and isinstance(call.args[0], ast.Constant):
                code = str(call.args[0].value)
                if _CODE.fullmatch(code):
                    yield Saying(
                        code, "other", _pattern(call.args[1]), _keyword(call, "hint"), self.name
                    )

    def _helpers(self) -> Iterator[tuple[str, str]]:
        if self.name.startswith("sql/"):
            yield "error", "usage"
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                named = [a.arg for a in node.args.args if a.arg != "self"]
                if named[:1] == ["code"]:
                    yield node.name, "source" if self.name.startswith("sources/") else "usage"

    def _codes(self, node: ast.expr) -> list[str]:
        if isinstance(node, ast.Constant):
            return [str(node.value)]
        if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            start = str(node.values[0].value)
            return [f"{start}{first}" for first in self._first_of_triples()]
        return sorted(set(self._chosen(node)))

    def _chosen(self, node: ast.expr) -> Iterator[str]:
        """Every literal that can have become this code."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and _CODE.fullmatch(str(inner.value)):
                yield str(inner.value)
        for statement in ast.walk(self.tree):
            if isinstance(statement, ast.Assign):
                target = statement.targets[0]
                if _is_code(target):
                    yield from _literals(statement.value)
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.value, ast.Dict):
                for value in statement.value.values:
                    yield from _literals(value)
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
                for value in statement.value.values:
                    yield from _literals(value)
            if isinstance(statement, ast.FunctionDef):
                for argument, default in zip(
                    reversed(statement.args.args), reversed(statement.args.defaults), strict=False
                ):
                    if argument.arg == "code":
                        yield from _literals(default)

    def _first_of_triples(self) -> Iterator[str]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Tuple) and len(node.elts) == 3:
                first = node.elts[0]
                if isinstance(first, ast.Constant) and re.fullmatch(r"[a-z-]+", str(first.value)):
                    yield str(first.value)


def _is_code(target: ast.expr) -> bool:
    first = target.elts[0] if isinstance(target, ast.Tuple) else target
    return isinstance(first, ast.Name) and first.id == "code"


def _literals(value: ast.expr) -> Iterator[str]:
    first = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
    if isinstance(first, ast.Constant) and _CODE.fullmatch(str(first.value)):
        yield str(first.value)


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _keyword(call: ast.Call, name: str) -> str:
    return next((_pattern(k.value) for k in call.keywords if k.arg == name), "")


def _helping(call: ast.Call) -> str:
    hint = _keyword(call, "hint")
    return hint or (_pattern(call.args[2]) if len(call.args) == 3 else "")


def _pattern(node: ast.expr) -> str:
    """The text of an expression, with … where a value stands."""
    match node:
        case ast.Constant():
            return str(node.value)
        case ast.JoinedStr():
            return "".join(_pattern(value) for value in node.values)
        case ast.FormattedValue():
            return "…"
        case ast.BinOp(left=left, right=right):
            return _pattern(left) + _pattern(right)
        case ast.IfExp(body=body, orelse=otherwise):
            return " / ".join(filter(None, (_pattern(body), _pattern(otherwise))))
        case ast.Call(func=ast.Name(id="did_you_mean"), args=[_, _, *otherwise]):
            return " / ".join(("did you mean …?", *map(_pattern, otherwise)))
        case _:
            return "…"


def page() -> str:
    """The page of errors."""
    lines = [
        "# Errors\n",
        (
            "Read from the source by `make reference`. Every error has the same five fields, in text, in `--json`, in the "
            "log and in the dashboard: family (who must act), code, message, detail, hint. A code is stable: grep for it. "
            "… stands for names and values.\n"
        ),
        "| family | who must act | exit code |\n|---|---|---|",
        "| usage | you: configuration, SQL, the command line | 2 |",
        "| source | the source, or its owner; some pass by themselves and are waited for | 1 |",
        "| warehouse | whoever owns the storage | 1 |",
        "| internal | us: `invariant-violated` is a defect, please report it | 1 |",
        "| other | undecided (`too-many-cuts`), and what a running keeper answered | 3, 1 |",
        "\n## All codes\n",
        *_table(sayings()),
        (
            "| `invariant-violated` | internal | Viewkeeper contradicted itself | "
            "this is a defect of Viewkeeper: please report it with the output of --verbose |"
        ),
        "\n## What check finds\n",
        (
            "`viewkeeper check` tells these of a source: *refused* means it can't be read exactly as it is, *warning* that "
            "it could be harmed or slow.\n"
        ),
        *_table(findings(), head="| finding | severity | what it says | what helps |"),
    ]
    return "\n".join(lines) + "\n"


def _table(
    found: list[Saying], head: str = "| code | family | what it says | what helps |"
) -> list[str]:
    lines = [head, "|---|---|---|---|"]
    for code in dict.fromkeys(saying.code for saying in found):
        same = [saying for saying in found if saying.code == code]
        messages = _distinct(saying.message for saying in same)
        hints = _distinct(saying.hint for saying in same)
        families = ", ".join(dict.fromkeys(saying.family for saying in same))
        lines.append(f"| `{code}` | {families} | {_joined(messages)} | {_joined(hints)} |")
    return lines


def _distinct(texts: Iterator[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text and text != "…"]


def _joined(texts: list[str], most: int = 4) -> str:
    shown = texts[:most] + (["…"] if len(texts) > most else [])
    return "<br>".join(
        text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;") for text in shown
    )
