"""Opening a source by its URL: the one place that knows which kinds there are.

Each kind's driver is imported only when a source of that kind is opened.
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.errors import UsageError, invariant
from viewkeeper.sources.interface import Source
from viewkeeper.sources.urls import SourceUrl, parse_source_url


def open_source(
    name: str,
    url: str,
    *,
    allow_setup: bool = False,
    feed_url: str | None = None,
    statement_seconds: float | None = None,
) -> Source:
    """The source behind ``url``. It connects when it is first asked something; close it after use.

    ``feed_url`` may name another role for the change feed, so that the role that queries needs no
    replication privilege; it must lead to the same database. ``allow_setup`` permits `Source.setup`
    and `Source.teardown`, and nothing else ever creates anything at a source. ``statement_seconds``
    bounds every statement on a server; SQLite has none.
    """
    parsed = replace(parse_source_url(url, name), statement_seconds=statement_seconds)
    feed_parsed = parse_source_url(feed_url, name) if feed_url is not None else parsed
    if (feed_parsed.kind, feed_parsed.database) != (parsed.kind, parsed.database):
        raise UsageError(
            "bad-source-url",
            f"url and feed_url of source {name} lead to different databases",
            detail=f"{parsed} and {feed_parsed}",
            hint="feed_url differs from url in its user and password only",
        )
    return _open(name, parsed, feed_parsed, allow_setup)


def _open(name: str, url: SourceUrl, feed_url: SourceUrl, allow_setup: bool) -> Source:
    if url.kind == "postgres":
        from viewkeeper.sources.postgres.source import PostgresSource

        return PostgresSource(name, url, feed_url=feed_url, allow_setup=allow_setup)
    if url.kind == "mariadb":
        from viewkeeper.sources.mariadb.source import MariaDBSource

        return MariaDBSource(name, url, feed_url=feed_url, allow_setup=allow_setup)
    invariant(url.kind == "sqlite", f"there is no source of kind {url.kind}")
    from viewkeeper.sources.sqlite.source import SQLiteSource

    return SQLiteSource(name, url, allow_setup=allow_setup)
