"""``viewkeeper query``, ``history`` and ``vacuum``: what people ask of the warehouse."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeeper.cli.run import Project
from viewkeeper.errors import UsageError
from viewkeeper.project.config import ProjectConfig, read_project
from viewkeeper.reports.values import json_value
from viewkeeper.terminal import Grid, Json, console, write_json, write_line

if TYPE_CHECKING:
    import pyarrow as pa

    from viewkeeper.project.querying import Answer
    from viewkeeper.warehouse import Entry, Warehouse

SHOWN_ROWS, JSON_ROWS = 100, 100_000


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("query")(query)
    app.command("history")(history)
    app.command("vacuum")(vacuum)


def query(
    sql: Annotated[str, typer.Argument(help="A SELECT over the views, in Spark SQL.")],
    as_of: Annotated[
        int | None, typer.Option("--as-of", help="The transaction number to read at.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=0, help=f"Rows at most ({SHOWN_ROWS} as text, {JSON_ROWS:,} as JSON)."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="Give up after so long.")
    ] = 300.0,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Ask the views, all at one cut of every source: the newest that those it names have passed.

    It reads the views and computes from their rows; whatever else Spark SQL could do is refused.
    """
    _require_query(sql)
    config = read_project(project)
    # Everything that can be wrong is reported before Spark takes its seconds to start.
    _warehouse(config).snapshot(as_of)
    from viewkeeper.project.keeper import Keeper

    rows_max = limit if limit is not None else JSON_ROWS if as_json else SHOWN_ROWS
    with Keeper(config) as keeper:
        answer = keeper.sql(sql, as_of, rows_max=rows_max, seconds_max=timeout)
    _show_answer(answer, as_json=as_json)


def _require_query(sql: str) -> None:
    """Raise UsageError for what is clearly no query, before Spark is started to judge the rest."""
    import sqlglot
    from sqlglot import TokenType

    from viewkeeper.spark.gate import require_length

    require_length(sql)
    try:
        tokens = sqlglot.tokenize(sql, dialect="spark")
    except sqlglot.TokenError:
        return  # Spark says where a string or a comment is not closed
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    found = ""
    if not tokens:
        found = "nothing"
    elif any(token.token_type is TokenType.SEMICOLON for token in tokens):
        found = "several statements"
    elif tokens[0].text.upper() not in ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "("):
        found = tokens[0].text.upper()
    if found:
        raise UsageError(
            "not-a-query",
            "viewkeeper query takes one SELECT",
            detail=f"found {found}",
            hint="the views are kept by Viewkeeper; the warehouse is read only",
        )


def _show_answer(answer: Answer, *, as_json: bool) -> None:
    rows = [list(row) for row in _rows(answer.table)]
    if as_json:
        write_json(
            {
                "as_of": answer.txn,
                "states": dict(answer.states),
                "columns": [{"name": name, "type": type} for name, type in answer.columns],
                "rows": [[json_value(value) for value in row] for row in rows],
                "truncated": answer.is_cut,
            }
        )
        return
    grid = Grid()
    for name in answer.table.column_names:
        # A long word goes on in the next line: cut off, two different values could look the same.
        grid.add_column(str(name), overflow="fold")
    for row in rows:
        grid.add_row(*(text_value(value) for value in row))
    console().print(grid)
    more = " (more: --limit)" if answer.is_cut else ""
    older = [f"{view} as of {txn}" for view, txn in answer.states.items() if txn < answer.txn]
    together = f" ({', '.join(older)}: one cut of every source)" if older else ""
    write_line(f"{len(rows)} rows{more} at state {answer.txn}{together}")


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return zip(*columns, strict=True) if columns else ()


def text_value(value: Any) -> str:
    """A value in a table for people."""
    if value is None:
        return "NULL"
    found = json_value(value)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)


# -- history --------------------------------------------------------------------------------------


def history(
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many, newest first.")] = 20,
    every: Annotated[
        bool, typer.Option("--all", help="Also leases, consolidations, vacuums, publications.")
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="The versions of the views' definitions instead.")
    ] = False,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """List the epochs: their transactions, rows changed, the sources' positions."""
    from viewkeeper.reports.history import entry_document

    entries = [e for e in _warehouse(read_project(project)).history() if every or e.kind == "epoch"]
    if schema:
        _definitions(entries, limit, as_json=as_json)
        return
    newest = entries[: -limit - 1 : -1]
    if as_json:
        write_json({"epochs": [entry_document(entry) for entry in newest]})
        return
    _show_history(newest, every=every)
    if len(entries) > len(newest):
        write_line(f"the newest {len(newest)} of {len(entries)}; --limit shows more")


def _definitions(entries: list[Entry], limit: int, *, as_json: bool) -> None:
    """What became of the views' definitions, why, and what it cost; newest first."""
    from viewkeeper.reports.history import definition_documents

    newest = definition_documents(entries)[: -limit - 1 : -1]
    if as_json:
        write_json({"definitions": newest})
        return
    for each in newest:
        story = each["evolved"]
        what = "defined" if story is None else f"{story['effect']}: {story['statement']}"
        refilled = each["rebuilt"]
        if refilled is not None:
            what = f"refilled: {refilled['reason']}"
        write_line(f"{each['committed_at']}  {each['view']} version {each['version']}  {what}")
        if refilled is not None:
            write_line(
                f"    no state shows what its sources did after {refilled['gap']['after_txn']}"
            )
            continue
        if story is not None:
            cost = ""
            if "seconds" in story:
                cost = f" in {story['seconds']} s, {story['rows_read']:,} rows read"
            lines = [story["reason"], *story.get("mapping", ())]
            if story.get("method"):
                lines.append(f"extent: {story['method']}{cost}")
            for line in lines:
                write_line(f"    {line}")


def _show_history(entries: list[Entry], *, every: bool) -> None:
    from viewkeeper.reports.positions import position_text

    headings = ["epoch", "transactions", "committed", "rows changed", "positions"]
    grid = Grid(*(["entry", "kind"] if every else []), *headings)
    for entry in entries:
        changed = ", ".join(
            f"{view} +{tally.inserted} −{tally.deleted}"
            for view, tally in entry.shown_statistics.items()
            if tally.rows
        )
        grid.add_row(
            *([str(entry.entry), entry.kind] if every else []),
            str(entry.epoch),
            _range(entry),
            entry.committed_at.strftime("%Y-%m-%d %H:%M:%S"),
            changed or "none",
            ", ".join(
                f"{source} {position_text(value)}" for source, value in entry.positions.items()
            ),
        )
    console().print(grid)


def _range(entry: Entry) -> str:
    if entry.first_txn > entry.last_txn:
        return f"none (at {entry.last_txn})"
    if entry.first_txn == entry.last_txn:
        return str(entry.last_txn)
    return f"{entry.first_txn}–{entry.last_txn}"


# -- vacuum ---------------------------------------------------------------------------------------


def vacuum(project: Project = Path("."), as_json: Json = False) -> None:
    """Delete what no state within the retention needs. Refused while another writer runs."""
    from viewkeeper.project.settings import retention_of
    from viewkeeper.warehouse import vacuum as run_vacuum

    config = read_project(project)
    with _warehouse(config).writer() as writer:
        report = run_vacuum(writer, retention_of(config))
    if as_json:
        write_json(vars(report))
        return
    write_line(
        f"{report.files} files deleted, {report.size:,} bytes; "
        f"the oldest state is {report.oldest_txn}"
    )


def _warehouse(config: ProjectConfig) -> Warehouse:
    from viewkeeper.project.remembering import opened_warehouse
    from viewkeeper.project.settings import heed_group

    heed_group(config)
    return opened_warehouse(config)
