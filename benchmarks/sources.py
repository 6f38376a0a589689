"""What the sources cost: rows per second of each feed, milliseconds per query at a cut.

    python benchmarks/sources.py [--kinds postgres,mariadb,sqlite] [--json FILE]

Every kind is set up and filled in ``sources_<kind>.py`` and measured by ``sources_measuring``. A kind whose
server is not on this machine is left out, and said so.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from viewkeeper.errors import ViewkeeperError

KINDS = ("postgres", "mariadb", "sqlite")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--json", metavar="FILE", type=Path)
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    load = os.getloadavg()[0]
    figures = [measured(kind) for kind in arguments.kinds.split(",")]
    show(figures)
    document = {"processors": os.cpu_count(), "load_before": round(load, 1), "sources": figures}
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    sys.stdout.write(json.dumps(document) + "\n")


def measured(kind: str) -> dict[str, Any]:
    """A kind's figures, or why there are none."""
    try:
        figures: dict[str, Any] = importlib.import_module(f"sources_{kind}").measure()
    except ModuleNotFoundError as error:
        return {"kind": kind, "left_out": f"no module {error.name}"}
    except (ViewkeeperError, FileNotFoundError) as error:
        return {"kind": kind, "left_out": str(error).splitlines()[0]}
    return figures


def show(figures: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for each in figures for name in each if name != "kind"))
    table = Table(title="What the sources cost")
    table.add_column("")
    for each in figures:
        table.add_column(each["kind"], justify="right")
    for name in names:
        table.add_row(name.replace("_", " "), *(str(each.get(name, "")) for each in figures))
    Console().print(table)


if __name__ == "__main__":
    main()
