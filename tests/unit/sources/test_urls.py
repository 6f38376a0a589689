import pickle

import pytest

from viewkeeper.errors import UsageError
from viewkeeper.sources.urls import Secret, parse_source_url


def test_every_part_of_a_server_url_is_found_and_unescaped():
    url = parse_source_url("postgresql://ke%40per:p%23w%2F@db1:5433/sh%20op?slot=s1", "shop")
    assert (url.kind, url.user, url.host, url.port) == ("postgres", "ke@per", "db1", 5433)
    assert (url.database, url.options) == ("sh op", {"slot": "s1"})
    assert url.password == Secret("p#w/")


def test_the_port_defaults_to_the_kinds_own():
    assert parse_source_url("postgres://u@h/d", "s").port == 5432
    assert parse_source_url("mysql://u@h/d", "s").port == 3306


def test_sqlite_paths_are_relative_or_absolute_by_their_slashes():
    assert parse_source_url("sqlite:///geo.db", "geo").database == "geo.db"
    assert parse_source_url("sqlite:////var/geo.db", "geo").database == "/var/geo.db"


def test_a_password_never_shows():
    url = parse_source_url("mariadb://u:hunter2@h/d", "crm")
    shown = f"{url} {url!r} {url.password} {url.password!r} {url.password:>10}"
    assert "hunter2" not in shown
    assert url.password is not None
    assert url.password.reveal() == "hunter2"
    assert pickle.loads(pickle.dumps(url)) == url


@pytest.mark.parametrize(
    "text",
    [
        "oracle://u:hunter2@h/d",
        "postgresql://u:hunter2@h:port/d",
        "postgresql://u:hunter2@/d",
        "postgresql://u:hunter2@h/",
        "postgresql://u:hunter2#@h/d",
        "sqlite://geo.db",
        "sqlite:///",
    ],
)
def test_a_bad_url_is_refused_without_echoing_its_password(text):
    with pytest.raises(UsageError) as caught:
        parse_source_url(text, "shop")
    assert caught.value.code == "bad-source-url"
    assert "shop" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://keeper:p%40ss%2F%23%3A@db1:5433/sh%20op?sslmode=require&application_name=a%20b",
        "mariadb://keeper@db2:3306/crm",
        "postgresql://[::1]:5432/shop",
    ],
)
def test_a_url_for_another_process_means_the_same(text):
    parsed = parse_source_url(text, "shop")
    assert parse_source_url(parsed.revealed(), "shop") == parsed
