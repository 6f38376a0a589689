"""Statements that a user of one MariaDB database may have logged, whose texts speak of another one's table."""

from __future__ import annotations

# Two columns of a followed table exchanged, in what is a comment on a table of the intruder's own.
CLAUSES = (
    ", RENAME TO {0}.things, RENAME COLUMN size TO weight, RENAME COLUMN weight TO size, "
    "TRUNCATE PARTITION p, COMMENT "
)
ATTEMPTS = [
    ("NO_BACKSLASH_ESCAPES", "utf8mb4", "ALTER TABLE t COMMENT '\\', COMMENT '{1}'"),
    ("NO_BACKSLASH_ESCAPES", "utf8mb4", 'ALTER TABLE t COMMENT "\\", COMMENT "{1}"'),
    ("ANSI_QUOTES", "utf8mb4", "ALTER TABLE t ADD \"a\\\" INT COMMENT '{1}'"),
    ("", "gbk", "ALTER TABLE t COMMENT '縗', COMMENT '{1}'"),
    ("", "utf8mb4", "ALTER TABLE t COMMENT '{1}' /* {1} */"),
    ("", "utf8mb4", "ALTER TABLE t COMMENT 'x' /*!999999 {1} 'x' */"),
    ("", "utf8mb4", "ALTER TABLE t COMMENT 'x' -- {1}"),
    ("", "utf8mb4", "CREATE TABLE `x``; DROP TABLE {0}.things; --` (id INT)"),
    ("", "utf8mb4", "DROP TABLE IF EXISTS t, `{0}.things`"),
    ("", "utf8mb4", "CREATE OR REPLACE VIEW v AS SELECT 1 AS `ALTER TABLE {0}.things`"),
    ("", "utf8mb4", "CREATE TABLE IF NOT EXISTS things (id INT, size INT, weight INT)"),
    ("", "utf8mb4", "CREATE OR REPLACE TEMPORARY TABLE things (id INT)"),
    ("", "utf8mb4", "DROP TEMPORARY TABLE IF EXISTS things"),
    # And whatever else his database lets him have logged.
    *(
        ("", "utf8mb4", text)
        for text in (
            "CREATE SEQUENCE s", "DO SETVAL(s, 100)", "ALTER SEQUENCE s RESTART 7", "CREATE INDEX i ON t (id)",
            "CREATE TABLE w SELECT 1 AS id", "CREATE TABLE e (id INT) ENGINE = MEMORY", "TRUNCATE TABLE t",
            "INSERT INTO e VALUES (1)", "ANALYZE TABLE t", "OPTIMIZE TABLE t", "REPAIR TABLE t",
            "ALTER DATABASE mine COMMENT 'x'",
            "CREATE PROCEDURE p() BEGIN DROP TABLE IF EXISTS w; END", "CALL p()",
            "EXECUTE IMMEDIATE 'CREATE TABLE IF NOT EXISTS u (id INT)'",
            "BEGIN NOT ATOMIC DROP TABLE IF EXISTS u; END",
            "SET STATEMENT max_statement_time = 9 FOR CREATE TABLE IF NOT EXISTS u (id INT)",
            "CREATE EVENT n ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1", "DROP EVENT n",
            "CREATE TABLE k (id INT) WITH SYSTEM VERSIONING",
            "DELETE HISTORY FROM k", "REPLACE INTO e VALUES (2)",
        )
    ),
]  # fmt: skip


def forged(text: str, database: str) -> str:
    """A statement of `ATTEMPTS` that means the table ``things`` of a database."""
    return text.format(database, CLAUSES.format(database))
