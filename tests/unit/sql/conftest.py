"""The flag that rewrites the corpus' expectations, to be read before they are committed."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-corpus",
        action="store_true",
        help="write what the views of tests/corpus give now as what is expected of them",
    )


@pytest.fixture
def rewrite_corpus(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite-corpus", default=False))
