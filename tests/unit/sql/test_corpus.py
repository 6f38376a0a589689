"""Every view of tests/corpus: accepted ones are described as expected, refused ones say why and where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unit.sql.corpus import CORPUS, catalog
from viewkeeper.errors import UsageError
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.describe import described
from viewkeeper.views.printing import view_sql

ACCEPTED = sorted((CORPUS / "accepted").glob("*.sql"))
REFUSED = sorted((CORPUS / "refused").glob("*.sql"))


def outcome(path: Path) -> str:
    """What parsing the file gives, as text: a description or an error."""
    text = path.read_bytes().decode()
    try:
        definition = parse_view(path.stem, text, catalog())
    except UsageError as error:
        return f"{error}\n"
    if not definition.steps:
        assert parse_view(path.stem, view_sql(definition), catalog()) == definition
    return json.dumps(described(definition), indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    "path", ACCEPTED + REFUSED, ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_a_view_of_the_corpus_is_read_as_expected(path: Path, rewrite_corpus: bool) -> None:
    found = outcome(path)
    assert found.startswith("{") is (path in ACCEPTED)
    expectation = path.with_suffix(".json" if path in ACCEPTED else ".txt")
    if rewrite_corpus:
        expectation.write_text(found)
    assert found == expectation.read_text()


def test_the_corpus_is_there() -> None:
    assert len(ACCEPTED) >= 45
    assert len(REFUSED) >= 30
