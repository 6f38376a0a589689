"""TLS to the sources: what the URL asks for is what is held to, by every connection of ours."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from security.certificates import Certificates, make_certificates
from security.tls_front import TlsFront
from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.interface import KeyedRead
from viewkeeper.sources.opening import open_source
from viewkeeper.testing.mariadb import PrivateMariaDB, mariadbd_missing
from viewkeeper.testing.postgres import EmbeddedPostgres

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture(scope="module")
def certificates() -> Iterator[Certificates]:
    assert shutil.which("openssl"), "the tests make their certificates with openssl"
    # Not in pytest's own folders: the servers run as other users, and each pytest that starts on
    # this machine takes their right to look there.
    with tempfile.TemporaryDirectory(prefix="viewkeeper-certificates-") as folder:
        Path(folder).chmod(0o755)
        yield make_certificates(Path(folder))


def read_everything(url: str) -> list[int]:
    """A feed, a cut, its rows: all links that a source has."""
    with open_source("shop", url, allow_setup=True) as source:
        source.setup(["t"])
        start = source.start_position()
        with source.feed(["t"], start) as feed:
            feed.poll(0.1)
        with source.cut(["t"]) as cut:
            batches = list(cut.read(KeyedRead("t", ("id",))))
        return [row["id"] for batch in batches for row in batch.to_pylist()]


def test_postgres_verify_full_is_held_to(certificates):
    with EmbeddedPostgres() as server:
        with psycopg.connect(server.url(), autocommit=True) as db:
            db.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
            db.execute("INSERT INTO t VALUES (1)")

        def url(front: TlsFront, host: str = "127.0.0.1", **options: object) -> str:
            given = "&".join(f"{name}={value}" for name, value in options.items())
            return f"postgresql://postgres@{host}:{front.port}/postgres?{given}"

        with TlsFront(server.port, certificates.certificate, certificates.key) as front:
            good = {"sslmode": "verify-full", "sslrootcert": certificates.authority}
            assert read_everything(url(front, **good)) == [1]
            assert front.encrypted >= 3  # questions, feed, rows
            stranger = good | {"sslrootcert": certificates.other_authority}
            with pytest.raises(SourceError, match="certificate verify failed"):
                read_everything(url(front, **stranger))
        other_key = certificates.other_certificate.with_suffix(".key")
        with (
            TlsFront(server.port, certificates.other_certificate, other_key) as front,
            pytest.raises(SourceError, match="does not match host name"),
        ):
            read_everything(url(front, **good))
        # A server without TLS is refused, not spoken to in the clear.
        plain = (
            server.url("postgres") + f"?sslmode=verify-full&sslrootcert={certificates.authority}"
        )
        with pytest.raises(SourceError, match="does not support SSL"):
            read_everything(plain)


def test_an_option_that_libpq_would_take_and_we_do_not_know_is_refused():
    with (
        open_source("shop", "postgresql://k:hidden-word@h/d?sslmod=verify-full") as source,
        pytest.raises(UsageError, match="sslmod") as caught,
    ):
        source.schemas()
    assert "hidden-word" not in str(caught.value)


@pytest.mark.skipif(bool(mariadbd_missing()), reason="there is no MariaDB server")
def test_mariadb_verify_is_held_to(certificates):
    def settings(certificate, key) -> dict[str, str]:
        return {
            "ssl-ca": str(certificates.authority),
            "ssl-cert": str(certificate),
            "ssl-key": str(key),
            "require-secure-transport": "ON",
        }

    with PrivateMariaDB(settings=settings(certificates.certificate, certificates.key)) as server:
        with server.connect(ssl={"ca": str(certificates.authority)}) as db, db.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("CREATE TABLE d.t (id bigint PRIMARY KEY)")
            cursor.execute("INSERT INTO d.t VALUES (1)")
            db.commit()
        good = f"{server.url('d')}?ssl=verify&ssl_ca={certificates.authority}"
        assert read_everything(good) == [1]
        with pytest.raises(SourceError, match="certificate verify failed"):
            read_everything(f"{server.url('d')}?ssl=verify&ssl_ca={certificates.other_authority}")
        with pytest.raises(SourceError, match="access-denied"):
            read_everything(f"{server.url('d')}?ssl=disabled")
