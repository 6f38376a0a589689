"""`pytest tests/scenarios --rewrite-scenarios` writes the transcripts anew. Read them before you commit."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-scenarios",
        action="store_true",
        help="write the transcripts in tests/scenarios instead of comparing with them",
    )


@pytest.fixture
def rewriting(request: pytest.FixtureRequest) -> bool:
    # In a run over all tests this file is loaded after the command line was read.
    return bool(request.config.getoption("--rewrite-scenarios", default=False))
