"""Opening pages in a browser, and looking at them with axe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from viewkeeper.dashboard.server import DashboardServer

AXE = Path(__file__).parent / "vendor" / "axe.min.js"


def open_page(page: Any, server: DashboardServer, path: str) -> None:
    """Go there and wait until the page has been filled with a moment."""
    page.goto(f"http://127.0.0.1:{server.port}{path}")
    page.wait_for_selector("main[data-moment]")
    if path == "/lab":
        page.wait_for_selector(".sequence")
        page.wait_for_selector("#painting .painting")


def photograph(page: Any, name: str) -> None:
    """The whole page as a picture, into the folder that VIEWKEEPER_SCREENSHOTS names, if it does."""
    folder = os.environ.get("VIEWKEEPER_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def serious_faults(page: Any) -> list[str]:
    """What axe calls serious or critical, with the elements that have it."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run()")
    return [
        f"{fault['id']}: {', '.join(str(node['target']) for node in fault['nodes'])}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
