"""The pages that are made from the program: ``docs/reference``, and which protocol keeps what."""

from __future__ import annotations

from docsite import commands, error_codes, events, settings, shapes, view_classes
from docsite.interface import page as interface_page
from viewkeeper.reports.metrics import METRICS


def pages() -> dict[str, str]:
    """Every page by its path below ``docs``. Starts Spark for the page of JSON."""
    return quick_pages() | {"reference/json.md": shapes.page()}


def quick_pages() -> dict[str, str]:
    """Those that need nothing but the program's text."""
    return {
        "reference/commands.md": commands.page(),
        "reference/settings.md": settings.page(),
        "reference/errors.md": error_codes.page(),
        "reference/events.md": events.page(),
        "reference/metrics.md": metrics_page(),
        "reference/api.md": interface_page(),
        "protocols/classes.md": view_classes.page(),
    }


def metrics_page() -> str:
    lines = [
        "# Metrics\n",
        (
            "Made from the program by `make reference`. `viewkeeper run --metrics-port PORT` serves them at `/metrics` on "
            "loopback, in Prometheus' text form. How to scrape and draw them: [Prometheus and Grafana]"
            "(../howto/prometheus.md).\n"
        ),
        "| name | kind | what it is |\n|---|---|---|",
        *(f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning in METRICS),
    ]
    return "\n".join(lines) + "\n"
