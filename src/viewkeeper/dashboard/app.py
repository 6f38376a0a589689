"""The dashboard as one ASGI application: pages, assets, the API and the live stream."""

from __future__ import annotations

import importlib.resources
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from viewkeeper.dashboard.access import COOKIE, Access, Guard
from viewkeeper.dashboard.api import Api, with_description
from viewkeeper.dashboard.endpoints import refusal
from viewkeeper.dashboard.lab_endpoints import lab_endpoints
from viewkeeper.dashboard.limits import BodyLimit
from viewkeeper.dashboard.live import LISTENERS_MAX, Live
from viewkeeper.dashboard.project_monitor import ProjectMonitor
from viewkeeper.errors import UsageError
from viewkeeper.project.config import ProjectConfig

# One shell for all pages: its script looks at the address.
PAGES = ("/", "/views/{view}", "/merge", "/evolution", "/lab")


def dashboard_app(config: ProjectConfig, access: Access) -> Starlette:
    """The application for one project under one set of rules."""
    monitor = ProjectMonitor(config)
    api = Api(monitor)
    live = Live(api.pulse, api.moment)
    static = importlib.resources.files("viewkeeper.dashboard") / "static"

    async def page(request: Request) -> Response:
        return FileResponse(str(static / "index.html"))

    async def events(request: Request) -> Response:
        if live.is_full:
            return refusal(
                UsageError("too-many-pages", f"{LISTENERS_MAX} live pages are open: close some")
            )
        return StreamingResponse(live.events(), media_type="text/event-stream")

    async def session(request: Request) -> Response:
        return _session(access, request)

    async def login(request: Request) -> Response:
        return await _login(access, request)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        monitor.close()

    app = Starlette(
        routes=[
            *(Route(path, page) for path in PAGES),
            *(each.route() for each in with_description([*api.endpoints(), *lab_endpoints()])),
            Route("/api/events", events),
            Route("/api/session", session),
            Route("/api/login", login, methods=["POST"]),
            Mount("/static", StaticFiles(directory=str(static))),
        ],
        middleware=[Middleware(Guard, access=access), Middleware(BodyLimit)],
        lifespan=lifespan,
    )
    app.state.live = live
    return app


def _session(access: Access, request: Request) -> Response:
    """Whether the sender may look, and the token with which our pages change something."""
    if not access.knows(request.headers):
        return JSONResponse({"open": False})
    return JSONResponse({"open": True, "change": access.change})


async def _login(access: Access, request: Request) -> Response:
    text = (await request.body())[:1000].decode("utf-8", "replace").strip()
    if not access.is_token(text):
        return refusal(
            UsageError("wrong-token", "this is not the token", hint="look where viewkeeper ui runs")
        )
    response = JSONResponse({"open": True, "change": access.change})
    response.set_cookie(COOKIE, access.session, httponly=True, samesite="strict")
    return response
