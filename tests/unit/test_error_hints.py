"""Every error that only people can mend says what mends it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import viewkeeper

ROOT = Path(viewkeeper.__file__).parent


def permanent_errors() -> Iterator[tuple[str, ast.Call]]:
    """Every place that makes a SourceError which is not, or not always, worth another try."""
    for file in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "SourceError":
                words = {word.arg: word.value for word in node.keywords}
                again = words.get("retryable")
                if not (isinstance(again, ast.Constant) and again.value is True):
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", node


def test_permanent_source_errors_have_a_code_a_sentence_and_a_fix():
    found = list(permanent_errors())
    assert len(found) > 25
    for place, call in found:
        assert len(call.args) == 2, f"{place}: code and message"
        hint = next((word.value for word in call.keywords if word.arg == "hint"), None)
        assert hint is not None, f"{place}: no hint"
        assert not (isinstance(hint, ast.Constant) and not hint.value), f"{place}: an empty hint"


def test_what_a_feed_cannot_pass_names_the_command_that_fills_its_views_anew():
    """A feed-gap is past mending: whoever raises it must name the rebuild."""
    gaps = [
        (place, call)
        for place, call in permanent_errors()
        if isinstance(call.args[0], ast.Constant) and call.args[0].value == "feed-gap"
    ]
    assert len(gaps) >= 4
    for place, call in gaps:
        hint = next(word.value for word in call.keywords if word.arg == "hint")
        assert "rebuild_command" in ast.unparse(hint), place
