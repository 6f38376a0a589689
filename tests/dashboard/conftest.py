"""A small project, a dashboard over it, and a real browser."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect, sync_playwright

from dashboard.serving import dashboard
from dashboard.small_project import SmallProject
from viewkeeper.dashboard.server import DashboardServer

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# A machine that is busy with other tests is slow; Playwright's own limit for `expect` is five seconds.
WAIT_MS = 180_000
expect.set_options(timeout=WAIT_MS)


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
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("there is no Chromium here: make chromium installs it")
    # As root, Chromium has no sandbox to enter; pages here are our own.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as running:
        launched = running.chromium.launch(executable_path=program, args=arguments)
        yield launched
        launched.close()


class Troubles(list[str]):
    """What the browser complained about; a test that provokes something may clear it."""


@pytest.fixture
def troubles() -> Troubles:
    return Troubles()


@pytest.fixture
def page(browser: Any, troubles: Troubles, server: DashboardServer) -> Iterator[Any]:
    """A page of its own; when it is closed, nothing may have been complained about."""
    with opened(browser, troubles) as found:
        yield found
    assert not troubles


@pytest.fixture
def examined_page(browser: Any, troubles: Troubles, server: DashboardServer) -> Iterator[Any]:
    """A page into which a test may bring a script of its own, which our policy forbids."""
    with opened(browser, troubles, bypass_csp=True) as found:
        yield found
    assert not troubles


@contextlib.contextmanager
def opened(browser: Any, troubles: Troubles, **options: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 850}, **options)
    found = context.new_page()
    found.set_default_timeout(WAIT_MS)
    found.on("console", lambda m: troubles.append(m.text) if m.type == "error" else None)
    found.on("pageerror", lambda error: troubles.append(str(error)))
    yield found
    context.close()
