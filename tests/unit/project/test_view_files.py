"""Views in SQL files and in Python files stand beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewkeeper.project.views_folder import view_texts
from viewkeeper.reports.check import relations_of_views

PYTHON = '''
import viewkeeper
from sqlglot import select

@viewkeeper.view(consistency="strong", keep="crm.people")
def sales():
    """Not part of the view."""
    return "SELECT o.id, p.name FROM shop.orders o JOIN crm.people p ON p.id = o.person"

for region in ("north", "south"):
    @viewkeeper.view(name=f"orders_{region}")
    def in_region(region=region):
        return select("id").from_("shop.orders").where(f"region = '{region}'")
    globals()[f"orders_{region}"] = in_region
'''


def folder_with(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        stem, _, kind = name.rpartition("_")
        (tmp_path / f"{stem}.{kind}").write_text(text)
    return tmp_path


def test_functions_are_views_beside_files(tmp_path):
    folder = folder_with(tmp_path, names_sql="SELECT name FROM crm.people", more_py=PYTHON)
    texts = view_texts(folder).texts
    assert list(texts) == ["names", "orders_north", "orders_south", "sales"]
    assert texts["sales"].startswith("-- consistency: strong\n-- keep: crm.people\nSELECT o.id")
    assert texts["orders_south"] == "SELECT id FROM shop.orders WHERE region = 'south'\n"
    assert relations_of_views(folder) == {"crm": {"people"}, "shop": {"orders"}}


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("x = 1\n1 / 0\n", "bad-view-file", "more.py can't be run, line 2"),
        ("def f(:\n", "bad-view-file", "more.py can't be run, line 1"),
        ("raise SystemExit(3)\n", "bad-view-file", "line 1"),
        (
            "import viewkeeper\n@viewkeeper.view\ndef a(): return 3\n",
            "bad-view-function",
            "does not return a query",
        ),
        (
            "import viewkeeper\n@viewkeeper.view(name='a b')\ndef a(): return 'SELECT 1'\n",
            "bad-view-name",
            "a b",
        ),
        (
            "import viewkeeper\n@viewkeeper.view\ndef names(): return 'SELECT 1'\n",
            "view-written-twice",
            "names",
        ),
    ],
)
def test_what_is_wrong_with_a_python_file_is_said(tmp_path, text, code, words):
    folder = folder_with(tmp_path, names_sql="SELECT name FROM crm.people", more_py=text)
    written = view_texts(folder)
    (error,) = written.bad.values()
    assert error.code == code
    assert words in error.message
    # The other file's view is as good as ever, unless it is that one which is written twice.
    assert list(written.texts) == ([] if code == "view-written-twice" else ["names"])
