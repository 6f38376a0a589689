"""The API as data: one table from which both the routes and their OpenAPI description are made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from viewkeeper import __version__
from viewkeeper.errors import InvariantViolated, SourceError, UsageError, ViewkeeperError

Values = Mapping[str, Any]
Handler = Callable[[Values], Any]

BODY_BYTES_MAX = 10_000
_TYPES: dict[type, str] = {str: "string", int: "integer"}


@dataclass(frozen=True)
class Parameter:
    """One value that a request carries: in its ``path``, its ``query`` or its JSON ``body``."""

    name: str
    where: str
    kind: type
    meaning: str
    required: bool = False

    def taken(self, text: Any) -> Any:
        """The value; raises UsageError when it is missing or of another type."""
        if text is None:
            if self.required or self.where == "path":
                raise UsageError("bad-request", f"{self.name} is missing", detail=self.meaning)
            return None
        try:
            return self.kind(text)
        except (TypeError, ValueError):
            wanted = _TYPES[self.kind]
            raise UsageError("bad-request", f"{self.name} must be a {wanted}") from None

    def schema(self) -> dict[str, str]:
        return {"type": _TYPES[self.kind]}


@dataclass(frozen=True)
class Endpoint:
    """One request that the API answers. ``gives`` says what, field by field, for people."""

    method: str
    path: str
    summary: str
    handler: Handler
    parameters: tuple[Parameter, ...] = ()
    gives: str = ""

    def route(self) -> Route:
        async def respond(request: Request) -> Response:
            try:
                values = await self._values(request)
                return JSONResponse(await run_in_threadpool(self.handler, values))
            except ViewkeeperError as error:
                return refusal(error)
            except Exception as error:
                detail = f"{type(error).__name__}: {error}"
                return refusal(InvariantViolated("the dashboard could not answer", detail=detail))

        return Route(self.path, respond, methods=[self.method])

    async def _values(self, request: Request) -> dict[str, Any]:
        found: dict[str, Mapping[str, Any]] = {
            "path": request.path_params,
            "query": request.query_params,
            "body": await _body(request) if self.method == "POST" else {},
        }
        return {p.name: p.taken(found[p.where].get(p.name)) for p in self.parameters}

    def described(self) -> dict[str, Any]:
        """The endpoint in OpenAPI's words."""
        outside = [p for p in self.parameters if p.where != "body"]
        inside = [p for p in self.parameters if p.where == "body"]
        document: dict[str, Any] = {
            "summary": self.summary,
            "responses": {
                "200": {
                    "description": self.gives or self.summary,
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
                "default": {"$ref": "#/components/responses/Error"},
            },
        }
        if outside:
            document["parameters"] = [
                {
                    "name": p.name,
                    "in": p.where,
                    "required": p.required or p.where == "path",
                    "description": p.meaning,
                    "schema": p.schema(),
                }
                for p in outside
            ]
        if inside:
            schema = {
                "type": "object",
                "required": [p.name for p in inside if p.required],
                "properties": {p.name: p.schema() | {"description": p.meaning} for p in inside},
            }
            document["requestBody"] = {"content": {"application/json": {"schema": schema}}}
        if self.method == "POST":
            document["security"] = [{"change": []}, {"bearer": []}]
        return document


async def _body(request: Request) -> dict[str, Any]:
    text = b""
    async for chunk in request.stream():
        text += chunk
        if len(text) > BODY_BYTES_MAX:
            raise UsageError("bad-request", "the request is too long")
    try:
        body = json.loads(text or b"{}")
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise UsageError("bad-request", "the request's body is not a JSON object")
    return body


def refusal(error: ViewkeeperError) -> JSONResponse:
    """An error with the fields that all commands show, under the status that fits it."""
    match error:
        case UsageError() if error.code.startswith(("unknown-", "no-", "view-not-there")):
            status = 404
        case UsageError():
            status = 400
        case SourceError():
            status = 502
        case _:
            status = 500
    return JSONResponse({"error": error.as_dict()}, status)


def openapi(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The whole API, for programs that read OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = endpoint.described()
    error = {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["family", "code", "message", "detail", "hint"],
                "properties": {
                    name: {"type": "string"}
                    for name in ("family", "code", "message", "detail", "hint")
                },
            }
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Viewkeeper dashboard",
            "version": __version__,
            "description": "What the dashboard shows. Figures are those of `viewkeeper status --json`.",
        },
        "paths": paths,
        "components": {
            "responses": {
                "Error": {
                    "description": "What could not be done, and what helps.",
                    "content": {"application/json": {"schema": error}},
                }
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "change": {"type": "apiKey", "in": "header", "name": "X-Viewkeeper-Change"},
            },
        },
    }
