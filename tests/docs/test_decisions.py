"""Every decision is in the index, and one that a later page changes names that page."""

from __future__ import annotations

from pathlib import Path

import pytest

from docsite import decisions

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"


def written(folder: Path, **pages: str) -> list[str]:
    """What is found in a folder of pages whose index was made from them."""
    for name, text in pages.items():
        (folder / f"{name.removeprefix('_')}.md").write_text(text)
    (folder / "README.md").write_text(decisions.page(folder))
    return decisions.problems(folder)


def test_the_pages_and_their_index_agree() -> None:
    assert decisions.problems(FOLDER) == []
    assert len(decisions.read(FOLDER)) > 90


def test_a_page_that_is_missing_in_the_index_is_found(tmp_path: Path) -> None:
    assert written(tmp_path, _0001="# 0001: One\n") == []
    (tmp_path / "0002.md").write_text("# 0002: Two\n")
    assert decisions.problems(tmp_path) == [
        "README.md: it is not what the pages say: run make decisions"
    ]


def test_a_status_reaches_the_index(tmp_path: Path) -> None:
    old = "# 0001: One\n\n*Superseded by [0002](0002.md): two is better.*\n\nText.\n"
    assert written(tmp_path, _0001=old, _0002="# 0002: Two\n") == []
    index = (tmp_path / "README.md").read_text()
    assert "| 0001 | [One](0001.md) | superseded by [0002](0002.md) |\n" in index
    assert "| 0002 | [Two](0002.md) | accepted |\n" in index


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# 1. One\n", "0001.md: its first line is not '# NNNN: title'"),
        ("# 0007: One\n", "0001.md: its title has the number 0007"),
        ("# 0001: One\n\nSuperseded by two.\n", "0001.md: its status is not written as a status"),
        (
            "# 0001: One\n\n*Superseded by [0009](0009.md): gone.*\n",
            "0001.md: superseded by 0009, which is no later page",
        ),
        (
            "# 0001: One\n\n*Refined by [0001](0001.md): itself.*\n",
            "0001.md: refined by 0001, which is no later page",
        ),
    ],
)
def test_what_is_wrong_with_a_page_is_named(tmp_path: Path, text: str, said: str) -> None:
    assert written(tmp_path, _0001=text, _0002="# 0002: Two\n") == [said]
