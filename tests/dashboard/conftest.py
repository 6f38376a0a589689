"""A small project, a dashboard over it, and a real browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboard.serving import dashboard
from dashboard.small_project import SmallProject
from viewkeeper.dashboard.server import DashboardServer

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    return SmallProject(tmp_path / "project")


@pytest.fixture
def server(project: SmallProject) -> Iterator[DashboardServer]:
    with dashboard(project.folder) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright, for the whole run."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("there is no Chromium here: make chromium installs it")
    # As root, Chromium has no sandbox to enter; pages here are our own.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=program, args=arguments)
        yield launched
        launched.close()


class Troubles(list[str]):
    """What the browser complained about; a test that provokes something may clear it."""


@pytest.fixture
def troubles() -> Troubles:
    return Troubles()


@pytest.fixture
def page(browser: Any, troubles: Troubles) -> Iterator[Any]:
    """A page of its own; at the end nothing may have been complained about."""
    context = browser.new_context(viewport={"width": 1280, "height": 850})
    opened = context.new_page()
    opened.set_default_timeout(30_000)
    opened.on("console", lambda m: troubles.append(m.text) if m.type == "error" else None)
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    yield opened
    context.close()
    assert not troubles
