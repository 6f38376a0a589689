"""How far the feed is behind the server's log, and how much of the log the server keeps."""

from __future__ import annotations

from viewkeeper.sources.interface import Health
from viewkeeper.sources.mariadb.connection import Link, rows
from viewkeeper.sources.mariadb.position import Place, file_number


def read_health(link: Link, feed_at: Place | None) -> Health:
    """``feed_at`` is where the open feed stands, or the views; None when neither is known.

    How old that is, its log does not tell without being read.
    """
    files = [(str(name), int(size)) for name, size, *_ in rows(link, "SHOW BINARY LOGS")]
    retained = sum(size for _, size in files)
    if feed_at is None:
        return Health("ok", None, None, retained, "no feed is open")
    numbers = [file_number(name) for name, _ in files]
    if file_number(feed_at.file) not in numbers:
        return Health(
            "lost",
            None,
            None,
            retained,
            f"the server no longer has {feed_at.file}, where the feed is",
        )
    behind = sum(
        size - (feed_at.offset if name == feed_at.file else 0)
        for name, size in files
        if file_number(name) >= file_number(feed_at.file)
    )
    oldest = feed_at.file == files[0][0] and len(files) > 1
    detail = f"the feed is at {feed_at.identity}"
    if oldest:
        detail += ", the oldest file that the server keeps"
    return Health("ok", max(behind, 0), None, retained, detail)
