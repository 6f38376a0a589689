"""A link that may leave this machine is verified, unless the URL's author says in a word that it need not be.

``127.1`` is such an address here: it leads to this machine, but only a lookup shows that.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from security.certificates import Certificates, make_certificates
from security.test_tls import read_everything
from security.tls_front import TlsFront
from viewkeeper.addresses import is_loopback
from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.mariadb import connection as mariadb
from viewkeeper.sources.postgres.connection import SETTINGS, connection_string
from viewkeeper.sources.urls import parse_source_url
from viewkeeper.testing.mariadb import PrivateMariaDB, mariadbd_missing
from viewkeeper.testing.postgres import EmbeddedPostgres

pytestmark = pytest.mark.xdist_group("postgres")

FAR = "127.1"


@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"]
)
def test_these_are_this_machine(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "127.1",
        "0.0.0.0",
        "::",
        "10.0.0.1",
        "localhost.example",
        "127.0.0.1.example",
        "db1",
        "127.0.0.1,db1",
        "xn--localhost",
        "localhost,db1",
        "2130706433",
        "fe80::1%lo",
        "::ffff:10.0.0.1",
    ],
)
def test_these_may_be_another(host):
    assert not is_loopback(host)


def libpq_options(url: str) -> dict[str, str]:
    text = connection_string(parse_source_url(url, "src"), SETTINGS)
    return psycopg.conninfo.conninfo_to_dict(text)


def test_postgres_is_verified_off_loopback_by_default():
    chosen = libpq_options("postgresql://keeper:word@db1/d")
    assert chosen["sslmode"] == "verify-full"
    assert chosen["sslrootcert"]
    assert chosen["require_auth"] == "scram-sha-256"
    by_certificate = libpq_options("postgresql://keeper@db1/d?sslcert=a&sslkey=b")
    assert by_certificate["require_auth"] == "!password,!md5"
    near = libpq_options("postgresql://keeper:word@localhost/d")
    assert "sslmode" not in near
    assert near["require_auth"] == "!password,!md5"
    socket = libpq_options("postgresql://keeper:word@%2Frun%2Fpostgresql/d")
    assert "sslmode" not in socket


def test_the_environment_leads_no_link_elsewhere(monkeypatch):
    for name, value in {
        "PGHOSTADDR": "10.9.9.9",
        "PGSSLMODE": "disable",
        "PGREQUIREAUTH": "none",
    }.items():
        monkeypatch.setenv(name, value)
    chosen = libpq_options("postgresql://keeper:word@db1/d")
    assert chosen["hostaddr"] == ""
    assert chosen["sslmode"] == "verify-full"
    assert chosen["require_auth"] == "scram-sha-256"


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", "require", "verify-ca"])
def test_postgres_weaker_is_refused_by_name(mode):
    url = f"postgresql://keeper:hidden-word@db1/d?sslmode={mode}"
    with pytest.raises(UsageError) as caught:
        libpq_options(url)
    assert caught.value.code == "insecure-link"
    assert "insecure=yes" in caught.value.hint
    assert "hidden-word" not in str(caught.value)
    assert libpq_options(f"{url}&insecure=yes")["sslmode"] == mode
    assert libpq_options(url.replace("db1", "127.0.0.1"))["sslmode"] == mode


@pytest.mark.parametrize("value", ["no", "true", "YES", "", "1"])
@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
def test_insecure_is_said_in_one_way(scheme, value):
    with pytest.raises(UsageError, match="insecure"):
        parse_source_url(f"{scheme}://keeper@db1/d?insecure={value}", "src")


@pytest.mark.parametrize("mode", ["disabled", "preferred"])
def test_mariadb_weaker_is_refused_by_name(mode):
    def options(text: str) -> dict[str, object]:
        return mariadb._ssl_options(parse_source_url(text, "src"), "src")

    url = f"mariadb://keeper:hidden-word@db1/d?ssl={mode}"
    with pytest.raises(UsageError) as caught:
        options(url)
    assert caught.value.code == "insecure-link"
    assert "insecure=yes" in caught.value.hint
    assert "hidden-word" not in str(caught.value)
    for allowed in (f"{url}&insecure=yes", url.replace("db1", "127.0.0.1")):
        assert "ssl" not in options(allowed)
    context = options("mariadb://keeper@db1/d")["ssl"]
    assert context.check_hostname


# -- over real links ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates() -> Iterator[Certificates]:
    with tempfile.TemporaryDirectory(prefix="viewkeeper-certificates-") as folder:
        Path(folder).chmod(0o755)
        yield make_certificates(Path(folder))


def test_postgres_off_loopback(certificates, monkeypatch):
    with EmbeddedPostgres() as server:
        with psycopg.connect(server.url(), autocommit=True) as db:
            db.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
            db.execute("INSERT INTO t VALUES (1)")

        def url(port: int, **options: object) -> str:
            given = "&".join(f"{name}={value}" for name, value in options.items())
            return f"postgresql://postgres@{FAR}:{port}/postgres?{given}"

        with pytest.raises(SourceError) as caught:
            read_everything(url(server.port))
        assert caught.value.code == "certificate-refused"
        assert "insecure=yes" in caught.value.hint
        assert read_everything(url(server.port, insecure="yes")) == [1]
        with TlsFront(server.port, certificates.certificate, certificates.key) as front:
            with pytest.raises(SourceError) as caught:
                read_everything(url(front.port))
            assert caught.value.code == "certificate-refused"
            # With an authority that the machine trusts, nothing need be said.
            monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
            assert read_everything(url(front.port)) == [1]
            assert front.encrypted >= 3


@pytest.mark.skipif(bool(mariadbd_missing()), reason="there is no MariaDB server")
def test_mariadb_off_loopback(certificates, monkeypatch):
    def settings(certificate: Path) -> dict[str, str]:
        return {"ssl-cert": str(certificate), "ssl-key": str(certificate.with_suffix(".key"))}

    def url(server: PrivateMariaDB, options: str = "") -> str:
        return f"mariadb://root@{FAR}:{server.port}/d{options}"

    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    mariadb._verifying_context.cache_clear()
    with PrivateMariaDB(settings=settings(certificates.certificate)) as server:
        with server.connect(autocommit=True) as db, db.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("CREATE TABLE d.t (id bigint PRIMARY KEY)")
            cursor.execute("INSERT INTO d.t VALUES (1)")
        assert read_everything(url(server)) == [1]
        with pytest.raises(SourceError, match="certificate verify failed"):
            read_everything(url(server, f"?ssl_ca={certificates.other_authority}"))
    # A certificate of another name, by an authority that the machine trusts: the driver took it.
    with PrivateMariaDB(settings=settings(certificates.other_certificate)) as server:
        server.connect().cursor().execute("CREATE DATABASE d")
        with pytest.raises(SourceError, match="certificate verify failed"):
            read_everything(url(server))
    # Without TLS it is not spoken to.
    with (
        PrivateMariaDB(settings={"skip-ssl": ""}) as server,
        pytest.raises(SourceError, match="SSL is required"),
    ):
        read_everything(url(server))
    mariadb._verifying_context.cache_clear()
