"""Foreign texts made visible: nothing steers a terminal, nothing is lost, JSON stays exact."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.visible import json_text, visible, visible_lines

# What may stay of the invisible ones: the two joiners.
JOINERS = "\u200c\u200d"


def is_unseen(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and character not in JOINERS
    )


def test_no_character_of_unicode_without_a_look_passes() -> None:
    every = [chr(code) for code in range(0x110000)]
    passed = [c for c in every if is_unseen(c) and visible(c) == c]
    assert passed == []
    changed = [c for c in every if visible(c) != c and not is_unseen(c)]
    # Room that Unicode keeps for more of the same.
    assert {unicodedata.category(c) for c in changed} <= {"Cn", "Mn"}
    assert len(changed) < 4200


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[urgent] fix", "[urgent] fix"),
        ("a\x1b[31mred\x1b[0m", r"a\x1b[31mred\x1b[0m"),
        ("one\ntwo\r\n\tthree", r"one\ntwo\r\n\tthree"),
        ("\x9b31m", r"\x9b31m"),
        ("abc\u202edef", r"abc\u202edef"),
        ("half \udc80", r"half \udc80"),
        ("\U000e0041", r"\U000e0041"),
        ("größe 日本 🙂 👩\u200d🚀", "größe 日本 🙂 👩\u200d🚀"),
        (r"C:\new", r"C:\new"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_stay_lines_where_a_text_has_several() -> None:
    assert visible_lines("a\x1b\n\tb\r\nc") == "a\\x1b\n        b\\r\nc"


@given(st.recursive(st.text() | st.integers() | st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))  # fmt: skip
def test_json_is_the_same_document_and_has_nothing_unseen_in_it(document: object) -> None:
    text = json_text(document)
    assert json.loads(text) == document
    assert not any(is_unseen(character) for character in text)


def test_half_a_character_survives_json() -> None:
    assert json.loads(json_text({"\udc80": "\ud83d"})) == {"\udc80": "\ud83d"}
    json_text("\udc80").encode()
