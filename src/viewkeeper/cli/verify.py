"""``viewkeeper verify``: is every file of the warehouse what was written?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from viewkeeper.cli.run import Project
from viewkeeper.errors import UsageError, WarehouseError
from viewkeeper.project.config import read_project
from viewkeeper.terminal import FAILED, GOOD, Json, console, write_json, write_line

if TYPE_CHECKING:
    from viewkeeper.warehouse.storage import Storage
    from viewkeeper.warehouse.verifying import Damage, Verification


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("verify")(verify)


def verify(
    views: Annotated[
        list[str] | None, typer.Argument(help="Views to verify; all of them if none is named.")
    ] = None,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Read all files of the warehouse and compare them with the checksums taken when they were written.

    Exits with 1 when something is damaged. No source is asked; a run may go on meanwhile.
    """
    from viewkeeper.project.remembering import remembered_head
    from viewkeeper.project.settings import storage_of
    from viewkeeper.warehouse.verifying import verify as run_verify

    config = read_project(project)
    storage = storage_of(config)
    _require_known(storage, views or [])
    with _progress(shown=not as_json and console(stderr=True).is_terminal) as progress:
        head = remembered_head(config.folder, storage)
        found = run_verify(storage, views or (), remembered=head, progress=progress)
    if as_json:
        write_json(found.as_dict())
    else:
        _show(found)
    raise typer.Exit(FAILED if found.damages else GOOD)


def _require_known(storage: Storage, views: list[str]) -> None:
    from viewkeeper.warehouse.ledger import Ledger

    try:
        known = sorted(Ledger.open(storage).latest().shown_views)
    except WarehouseError:
        return  # that is the finding
    for view in views:
        if view not in known:
            raise UsageError(
                "unknown-view",
                f"there is no view {view} in the warehouse",
                detail=f"its views are {', '.join(known) or 'none yet'}",
            )


@contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """How much has been read, on a terminal."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True, disable=not shown) as bar:
        task = bar.add_task("verify", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _show(found: Verification) -> None:
    for damage in found.damages:
        write_line(_told(damage))
        write_line(f"    {damage.error.detail}")
        write_line(f"    {damage.error.hint}")
    write_line(
        f"{found.files:,} files ({found.size:,} bytes) and {found.entries:,} entries of the ledger "
        f"read: {len(found.damages) or 'none'} damaged"
    )
    if found.unchecked:
        write_line(
            f"{found.unchecked:,} of them were written before there were checksums: only their sizes "
            "and pages could be looked at; viewkeeper rebuild VIEW replaces a view's files"
        )


def _told(damage: Damage) -> str:
    first, last = damage.states
    states = f"state {last}" if first == last else f"states {first} to {last}"
    return f"{damage.view}, {states}: {damage.file}: {damage.error.message}"
