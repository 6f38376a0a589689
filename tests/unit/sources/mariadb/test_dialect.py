"""Where texts end in a statement of the log is decided by the session that wrote it, and texts are not kept."""

import struct

import pytest

from viewkeeper.sources.mariadb.ddl import Harmless, judged
from viewkeeper.sources.mariadb.dialect import Dialect, logged

# To the server a comment is in quotes; to who reads quotes otherwise, it is a clause.
CLAUSES = ", RENAME TO shop.orders, RENAME COLUMN a TO b, RENAME COLUMN b TO a, COMMENT "
FORGED = {
    "no escapes": (1 << 20, 45, rf"ALTER TABLE t COMMENT '\', COMMENT '{CLAUSES}'".encode()),
    "no escapes in double quotes": (
        1 << 20, 45, rf'ALTER TABLE t COMMENT "\", COMMENT "{CLAUSES}"'.encode(),
    ),
    "names in double quotes": (
        1 << 2, 45, rf'ALTER TABLE t ADD "a\" INT COMMENT "{CLAUSES}"'.encode(),
    ),
    **{
        f"half a character, {collation}": (
            0, collation,
            b"ALTER TABLE t COMMENT '" + pair + b"', COMMENT '" + CLAUSES.encode() + b"'",
        )
        for collation, pair in ((28, b"\xbf\x5c"), (13, b"\x83\x5c"), (1, b"\xa5\x5c"),
                                (95, b"\x83\x5c"), (87, b"\xfe\x5c"), (1052, b"\xbf\x5c"))
    },
}  # fmt: skip


def query_event(sql_mode: int, charset: int, text: bytes, database: bytes = b"mine") -> bytes:
    status = struct.pack("<BIBQ", 0, 0, 1, sql_mode)
    status += b"\6\3std" + b"\3" + bytes(4) + b"\4" + struct.pack("<HHH", charset, 33, 8)
    status += b"\x80unknown"
    head = struct.pack("<IIBHH", 7, 0, len(database), 0, len(status))
    return head + status + database + b"\0" + text


@pytest.mark.parametrize(("mode", "charset", "text"), FORGED.values(), ids=FORGED)
def test_a_text_of_one_table_is_no_clause_about_another(mode, charset, text):
    said = logged(query_event(mode, charset, text))
    verdict = judged(said.text, said.database, said.dialect)
    assert said.database == "mine"
    assert verdict.tables == (("mine", "t"),)
    assert (verdict.renamed_columns, verdict.renamed_tables) == ((), ())


def test_names_in_double_quotes_are_names_where_the_session_says_so():
    said = logged(query_event(1 << 2, 45, b'ALTER TABLE "shop"."or""ders" DROP "a"'))
    assert judged(said.text, "mine", said.dialect).tables == (("shop", 'or"ders'),)


def test_no_text_and_no_comment_of_a_statement_is_kept():
    text = """ALTER TABLE t /* hunter2 */ ADD p VARCHAR(9) DEFAULT 'hunter2', -- hunter2
      CONNECTION="mysql://u:hunter2@h", COMMENT 'it''s hunter2 \\' hunter2', # hunter2
      ADD `hunter` INT /*!50000 COMMENT 'hunter2' */"""
    kept = Dialect().masked(text)
    assert "hunter2" not in kept
    assert kept.startswith(
        "ALTER TABLE t ADD p VARCHAR(9) DEFAULT '…', CONNECTION='…', COMMENT '…',"
    )
    assert "ADD `hunter` INT" in kept
    plain = Dialect(backslash_escapes=False).masked(r"ALTER TABLE t COMMENT '\', COMMENT 'hunter2'")
    assert plain == "ALTER TABLE t COMMENT '…', COMMENT '…'"


def test_a_long_text_of_a_view_is_judged_by_its_beginning():
    begun = "CREATE VIEW v AS SELECT 1"
    assert judged(begun + "+1" * 1_000_000, "d") == Harmless()
    tables = ", ".join(f"t{number}" for number in range(300))
    assert len(judged(f"DROP TABLE {tables}", "d").tables) == 300
