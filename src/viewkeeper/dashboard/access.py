"""Who may look, and who may change something.

On loopback everybody on this machine may look. Elsewhere, or when a token was asked for, only who has
the token: a browser hands it in once and keeps a cookie, programs send it as ``Authorization: Bearer``.

A request that changes something must carry a secret that a page of another origin can't read: the
change token of this process (from ``/api/session``), or the bearer token. Pages get a policy under
which a browser runs no script but ours and takes no text for markup.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from viewkeeper.addresses import is_loopback, names_this_machine
from viewkeeper.errors import UsageError

CHANGE_HEADER = "x-viewkeeper-change"
COOKIE = "viewkeeper-session"
# Asked before anybody is known; says no more than whether a token is needed.
OPEN_PATHS = frozenset({"/api/login", "/api/session"})

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    # For browsers that do not know frame-ancestors.
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """The rules of one server. Without a ``token`` it must listen on loopback."""

    token: str | None = field(default=None, repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    change: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @classmethod
    def listening_on(cls, host: str, token: str | None = None) -> Access:
        """A token is made up where one is needed and none was given; an empty one would let all in."""
        if token is not None and not token.strip():
            raise UsageError(
                "empty-token",
                "the dashboard can't be opened with an empty token",
                hint="give one with --token or VIEWKEEPER_TOKEN; or leave both out, and off loopback"
                " one is made up",
            )
        if token is None and not is_loopback(host):
            token = secrets.token_urlsafe(24)
        return cls(token)

    def knows(self, headers: Headers) -> bool:
        """Whether the sender may look."""
        return self.token is None or self._bears_token(headers) or self._has_session(headers)

    def may_change(self, headers: Headers) -> bool:
        """Whether the sender, who may look, also proves to be no other site's page."""
        sent = headers.get(CHANGE_HEADER, "")
        return self._bears_token(headers) or secrets.compare_digest(sent, self.change)

    def is_token(self, text: str) -> bool:
        return self.token is not None and secrets.compare_digest(text.encode(), self.token.encode())

    def _bears_token(self, headers: Headers) -> bool:
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.is_token(sent)

    def _has_session(self, headers: Headers) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return found is not None and secrets.compare_digest(found.value, self.session)


class Guard:
    """ASGI middleware that holds everybody to the rules."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        app = self._app if refusal is None else _refused(refusal)
        await app(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> UsageError | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._access.token is None and not names_this_machine(host):
            return UsageError(
                "foreign-host", "the dashboard answers to this machine's own names only"
            )
        path = scope["path"]
        if path.startswith("/api/") and path not in OPEN_PATHS and not self._access.knows(headers):
            return UsageError(
                "token-needed",
                "this dashboard is opened with a token",
                hint="use the address that viewkeeper ui printed, or send Authorization: Bearer",
            )
        if scope["method"] in ("GET", "HEAD"):
            return None
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return UsageError("foreign-origin", "another site's page may not change anything here")
        if path not in OPEN_PATHS and not self._access.may_change(headers):
            return UsageError(
                "change-token-needed",
                "a request that changes something must prove where it comes from",
                hint=f"send {CHANGE_HEADER} with the change token of /api/session",
            )
        return None


def _refused(error: UsageError) -> ASGIApp:
    status = 401 if error.code == "token-needed" else 403
    return JSONResponse({"error": error.as_dict()}, status)
