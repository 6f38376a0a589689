"""A storm's figures as a table, for a terminal and for the page between its markers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chaos.storm import Report


def table(report: Report) -> str:
    found = report.as_dict()
    memory = found["memory_bytes_max"]
    waits = found["convergence_seconds"]
    rows = [
        ("seed", report.seed),
        ("seconds", f"{report.seconds:,.0f}"),
        ("rounds, actions", f"{report.rounds:,}, {sum(report.actions.values()):,}"),
        ("faults by kind", _listed(found["faults"])),
        ("actions by name", _listed(found["actions"])),
        ("starts of `run`", f"{report.run_starts:,}"),
        ("transactions at the sources", f"{report.transactions:,}"),
        ("epochs, states checked", f"{report.epochs:,}, {report.states:,}"),
        ("errors by name, all expected", _listed(found["named_errors"]) or "none"),
        (
            "seconds until caught up after a round",
            f"median {waits['median']}, most {waits['most']}",
        ),
        ("longest commit of a writer", f"{report.stall_seconds_max:.2f} s"),
        ("log kept at PostgreSQL, most", _mib(report.log_bytes_max)),
        ("memory of `run`, Python, most", _mib(memory.get("python", 0))),
        ("memory of `run`, JVM, most", _mib(memory.get("java", 0))),
        ("violations", len(report.violations)),
    ]
    return markdown(("figure", "value"), rows)


def markdown(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(str(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


def write_into(page: Path, name: str, text: str) -> None:
    """Put a text between the page's markers of that name; raises ValueError where they are missing."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    content = page.read_text(encoding="utf-8")
    before, found, rest = content.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"{page} has no markers {begin} and {end}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
