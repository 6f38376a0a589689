"""A stranger who listens where a source should be gets no password, and nothing from which it could be had."""

from __future__ import annotations

import hashlib
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from security.certificates import make_certificates
from security.rogue_servers import RogueMariaDB, RoguePostgres, RogueServer
from viewkeeper.errors import SourceError, ViewkeeperError
from viewkeeper.sources.mariadb.connection import connect
from viewkeeper.sources.postgres.connection import ArrowLink, Control
from viewkeeper.sources.postgres.stream import ReplicationStream
from viewkeeper.sources.urls import SourceUrl, parse_source_url

WORD = "marked-word-of-the-source"
# What the server would have of it by md5: as good as the password itself for getting in.
MD5 = hashlib.md5(f"{WORD}keeper".encode()).hexdigest()


def url_of(server: RogueServer, scheme: str, options: str = "") -> SourceUrl:
    return parse_source_url(f"{scheme}://keeper:{WORD}@127.0.0.1:{server.port}/d{options}", "src")


LINKS = {
    "questions": lambda url: Control("src", url),
    "rows": lambda url: ArrowLink("src", url),
    "feed": lambda url: ReplicationStream("src", url, "slot", 0),
}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("asks", ["cleartext", "md5"])
def test_postgres_gets_no_password(link, asks):
    with RoguePostgres(asks) as rogue:
        with pytest.raises(SourceError) as caught:
            LINKS[link](url_of(rogue, "postgresql"))
        assert rogue.visits
        told = md5_answer() if asks == "md5" else WORD
        assert told.encode() not in rogue.heard
    assert caught.value.code == "password-not-told", caught.value
    assert not caught.value.retryable
    assert WORD not in f"{caught.value} {caught.value.as_dict()}"


def md5_answer() -> str:
    return "md5" + hashlib.md5(MD5.encode() + b"salt").hexdigest()


def test_postgres_that_asks_for_nothing_is_refused_where_it_must_prove_itself():
    """Off loopback it must know the password; here that is asked for in the URL."""
    with RoguePostgres("nothing") as rogue, pytest.raises(SourceError) as caught:
        Control("src", url_of(rogue, "postgresql", "?require_auth=scram-sha-256"))
    assert caught.value.code == "password-not-told"


def test_postgres_gets_it_where_the_url_says_so():
    """The search can fail: by another word of the URL's author the same server hears the password."""
    with RoguePostgres("cleartext") as rogue:
        with pytest.raises(SourceError):
            Control("src", url_of(rogue, "postgresql", "?require_auth=password"))
        assert WORD.encode() in rogue.heard


@pytest.fixture(scope="module")
def context() -> Iterator[ssl.SSLContext]:
    with tempfile.TemporaryDirectory(prefix="viewkeeper-certificates-") as folder:
        made = make_certificates(Path(folder))
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.load_cert_chain(made.certificate, made.key)
        yield found


@pytest.mark.parametrize("safe", [False, True], ids=["in the clear", "by a stranger's TLS"])
@pytest.mark.parametrize(
    "played",
    [
        {"switches": "mysql_clear_password"},
        {"switches": "mysql_old_password"},
        {"switches": "dialog", "prompt": b"\x05Password: "},
        {"switches": "sha256_password"},
        {"switches": "caching_sha2_password"},
        {"greets": "sha256_password", "switches": "mysql_clear_password"},
        {"greets": "mysql_clear_password", "switches": "mysql_clear_password"},
    ],
    ids=lambda played: " then ".join(played.values() if "prompt" not in played else ["dialog"]),
)
def test_mariadb_gets_no_password(played, safe, context):
    with RogueMariaDB(**played, context=context if safe else None) as rogue:
        with pytest.raises(SourceError) as caught:
            connect(url_of(rogue, "mariadb"), "src")
        assert WORD.encode() not in rogue.heard
        answered = rogue.heard
    assert caught.value.code == "password-not-told", caught.value
    assert not caught.value.retryable
    assert WORD not in f"{caught.value} {caught.value.as_dict()}"
    assert b"keeper" in answered  # it came as far as its name


def test_mariadb_that_greets_by_a_foreign_method_is_answered_by_ours(context):
    """A greeting by sha256_password had the password itself within the TLS of any stranger."""
    with RogueMariaDB(greets="sha256_password", context=context, file="/etc/hostname") as rogue:
        with pytest.raises(SourceError):
            connect(url_of(rogue, "mariadb"), "src")
        assert b"mysql_native_password" in rogue.heard
        assert WORD.encode() not in rogue.heard


def test_mariadb_gets_no_file(tmp_path):
    kept = tmp_path / "secret"
    kept.write_text("marked-content")
    with RogueMariaDB(file=str(kept)) as rogue:
        with pytest.raises(SourceError) as caught:
            connect(url_of(rogue, "mariadb"), "src")
        assert b"marked-content" not in rogue.heard
    assert caught.value.code == "source-failed"


class _Babbling(RogueServer):
    def __init__(self, words: bytes) -> None:
        super().__init__()
        self._words = words

    def serve(self, link) -> None:
        link.sendall(self._words)


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"\x00",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x01\0\0\0\x0a",
        bytes(range(64)),
        b"\xff" * 40,
    ],
)
@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
def test_what_is_no_server_of_its_kind_is_a_named_error(scheme, words):
    opened = {"postgresql": Control, "mariadb": lambda name, url: connect(url, name)}[scheme]
    with _Babbling(words) as rogue, pytest.raises(ViewkeeperError):
        opened("src", url_of(rogue, scheme))
