import pytest


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch):
    """Output as where nobody says how wide or how colourful it should be."""
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
