"""Who may look and who may change something, over real connections."""

from __future__ import annotations

import pytest

from dashboard.serving import ask, dashboard
from viewkeeper.addresses import is_loopback
from viewkeeper.dashboard.access import Access
from viewkeeper.errors import UsageError

TOKEN = "a token for tests"


@pytest.fixture
def locked(project):
    with dashboard(project.folder, TOKEN) as running:
        yield running


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.8.9.1"])
def test_loopback_needs_no_token(host):
    assert is_loopback(host)
    assert Access.listening_on(host).token is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "keeper.example"])
def test_elsewhere_a_token_is_made_up(host):
    first, second = Access.listening_on(host), Access.listening_on(host)
    assert first.token is not None
    assert len(first.token) >= 32
    assert first.token != second.token


@pytest.mark.parametrize("token", ["", " ", "\t\n"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_an_empty_token_is_refused(host, token):
    """Everybody has it: the empty text was equal to what was sent without a token."""
    with pytest.raises(UsageError) as caught:
        Access.listening_on(host, token)
    assert caught.value.code == "empty-token"


def test_without_the_token_nothing_is_told(locked):
    for path in (
        "/api/overview",
        "/api/events",
        "/api/lab",
        "/api/openapi.json",
        "/api/views/people",
    ):
        answer = ask(locked, path)
        assert (answer.status, answer.code) == (401, "token-needed")
        assert b"people" not in answer.body
    assert ask(locked, "/api/overview", Authorization="Bearer wrong").status == 401
    assert ask(locked, "/api/overview", Authorization=f"Bearer {TOKEN}").status == 200
    # Pages and assets hold no data; they ask for the token.
    assert ask(locked, "/").status == 200
    assert ask(locked, "/api/session").document == {"open": False}


def test_a_browser_hands_the_token_in_once(locked):
    assert ask(locked, "/api/login", "POST", "wrong").code == "wrong-token"
    answer = ask(locked, "/api/login", "POST", TOKEN)
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    kept = cookie.partition(";")[0]
    assert ask(locked, "/api/overview", Cookie=kept).status == 200
    # A cookie alone changes nothing: another site's page could make a browser send it.
    refused = ask(locked, "/api/evolution/7", "POST", "{}", Cookie=kept)
    assert (refused.status, refused.code) == (403, "change-token-needed")


def test_nothing_is_changed_without_the_change_token(server, project):
    body = '{"decision": "approve"}'
    for headers in ({}, {"X_Viewkeeper_Change": "wrong"}, {"Authorization": "Bearer "}):
        answer = ask(server, "/api/evolution/7", "POST", body, **headers)
        assert (answer.status, answer.code) == (403, "change-token-needed")
    change = ask(server, "/api/session").document["change"]
    # Now it is let in, and there is no such change.
    assert (
        ask(server, "/api/evolution/7", "POST", body, X_Viewkeeper_Change=change).code
        == "unknown-change"
    )


def test_another_origin_is_refused_even_with_the_token(server):
    change = ask(server, "/api/session").document["change"]
    answer = ask(
        server, "/api/evolution/7", "POST", "{}",
        X_Viewkeeper_Change=change, Origin="https://elsewhere.example",
    )  # fmt: skip
    assert (answer.status, answer.code) == (403, "foreign-origin")


def test_a_foreign_name_for_this_machine_opens_nothing(server):
    for path in ("/", "/api/overview", "/api/session"):
        answer = ask(server, path, Host="elsewhere.example:80")
        assert (answer.status, answer.code) == (403, "foreign-host")


@pytest.mark.parametrize("path", ["/", "/lab", "/static/app.js", "/api/overview", "/nowhere"])
def test_every_answer_carries_the_policy(server, path):
    headers = ask(server, path).headers
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


def test_assets_are_all_that_static_serves(server):
    for path in ("/static/../access.py", "/static/..%2faccess.py", "/static/%2e%2e/access.py"):
        assert ask(server, path).status == 404
