"""A PostgreSQL server of our own, from a wheel; it ends with this program."""

from viewkeeper.testing.postgres import EmbeddedPostgres

server = EmbeddedPostgres()
server.run_script(
    "CREATE TABLE accounts (account_id INTEGER PRIMARY KEY, till_id INTEGER, balance INTEGER);"
    "INSERT INTO accounts VALUES (10, 1, 1000), (11, 2, 2000), (12, 2, 300)"
)


def transfer(amount: int) -> None:
    """Cash from the till in Ulm to account 10: two databases, two transactions, one transfer."""
    import sqlite3

    with sqlite3.connect("branch.db") as branch:
        branch.execute("UPDATE tills SET cash = cash - ? WHERE till_id = 1", (amount,))
        branch.execute("INSERT INTO outbox VALUES (?, 2)", (f"transfer-{amount}",))
    branch.close()
    server.run_script(
        "BEGIN;"
        f"UPDATE accounts SET balance = balance + {amount} WHERE account_id = 10;"
        "SELECT pg_logical_emit_message(true, 'viewkeeper.transaction',"
        f' \'{{"id": "transfer-{amount}", "parts": 2}}\');'
        "COMMIT"
    )
