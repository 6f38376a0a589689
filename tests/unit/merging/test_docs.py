"""The page on merging does what it says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "protocols" / "merging.md"


def test_the_example_on_the_page_runs_and_commits_both_views_at_once() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(compile(code, str(PAGE), "exec"), names)
    assert names["commit"].views == ("balances", "totals")
    assert names["merge"].is_idle
