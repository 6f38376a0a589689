"""Retired words become fewer and never more: docs/glossary.md says which, docs/retired-words.txt how many there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docsite import words

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / words.GLOSSARY).read_text("utf-8")


def tree(folder: Path, **files: str) -> Path:
    """A small tree with our glossary and a table of what is in it now."""
    (folder / "docs").mkdir()
    (folder / "src" / "viewkeeper").mkdir(parents=True)
    (folder / words.GLOSSARY).write_text(GLOSSARY)
    for name, text in files.items():
        (folder / "src" / "viewkeeper" / f"{name}.py").write_text(text)
    assert words.write(folder) is None
    return folder


def test_no_file_has_more_retired_words_than_it_had() -> None:
    assert words.problems(ROOT) == []


def test_files_in_the_table_exist() -> None:
    """`make words` takes those out that are gone."""
    assert [file for file in words.allowed(ROOT) if not (ROOT / file).exists()] == []


def test_the_words_of_the_glossary_are_found() -> None:
    said, names = words.retired(ROOT)
    assert {"nobody", "whoever", "anew", "by turns", "in earnest", "catalogue"} <= set(said)
    assert {"surroundings", "telling", "keeping"} <= set(names)


@pytest.mark.parametrize(
    "text",
    [
        "# Nobody asks.\n",
        '"""It is computed\n    anew."""\n',
        "# it goes by\n    # turns\n",
        "Whoever = 1\n",
    ],
)
def test_a_new_retired_word_is_refused(tmp_path: Path, text: str) -> None:
    root = tree(tmp_path, old="# whoever\n")
    (root / "src" / "viewkeeper" / "new.py").write_text(text)
    assert words.problems(root) == [
        "src/viewkeeper/new.py: 1 retired words, 0 allowed: see docs/glossary.md"
    ]
    assert words.write(root) is not None


def test_a_file_with_a_retired_name_is_refused(tmp_path: Path) -> None:
    root = tree(tmp_path)
    (root / "src" / "viewkeeper" / "telling.py").write_text("")
    assert len(words.problems(root)) == 1


def test_a_count_may_fall_and_words_may_move_with_their_file(tmp_path: Path) -> None:
    root = tree(tmp_path, old="# whoever, nobody\n")
    (root / "src" / "viewkeeper" / "old.py").rename(root / "src" / "viewkeeper" / "moved.py")
    assert words.problems(root) != []
    assert words.write(root) is None
    assert words.problems(root) == []
    (root / "src" / "viewkeeper" / "moved.py").write_text("# whoever\n")
    assert words.problems(root) == []
    assert words.write(root) is None
    assert words.allowed(root) == {"src/viewkeeper/moved.py": 1}


def test_no_word_is_explained_twice() -> None:
    table = GLOSSARY.partition("## What we say")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)[1:]
    said = [word.strip() for row in rows for word in row.split(",")]
    assert len(said) == len(set(said)) > 40
