"""The security state of a project: its links, its rights at the sources, tokens, who may read its files.

`security_of` builds it for every command that shows it. Each item is well or a warning, and a warning says
what mends it. Nothing here refuses anything: what must not be is refused where it would happen.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.project.config import PROJECT_FILE, ProjectConfig
from viewkeeper.project.open_project import OpenProject
from viewkeeper.project.settings import storage_of, umask_of
from viewkeeper.sources.interface import Finding, LinkState, Source

TOKEN = "VIEWKEEPER_TOKEN"
TOKEN_CHARACTERS_MIN = 16
STATE_FOLDER = ".viewkeeper"
_VERIFY = {"postgres": "sslmode=verify-full", "mariadb": "ssl=verify"}


def security_of(project: OpenProject) -> list[dict[str, Any]]:
    """Every item, in the order in which people read them. Asks the sources; starts no Spark."""
    config = project.config
    items: list[dict[str, Any]] = []
    for name in config.sources:
        try:
            items += _of_source(project.source(name))
        except (SourceError, UsageError) as error:
            told = Finding(
                error.code, "warning", f"it could not be asked: {error.message}", error.hint
            )
            items.append(_item("link", f"source {name}", told))
    items += [_item("token", "dashboard", _token(os.environ.get(TOKEN)))]
    items += [_item("permissions", what, found) for what, found in _permissions(config)]
    items += [_item("spark", "spark", _spark(config))]
    return items


def warnings_in(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for item in items if item["severity"] != "ok"]


def _of_source(source: Source) -> Iterator[dict[str, Any]]:
    subject = f"source {source.name}"
    for link in source.link_states():
        yield _item("link", subject, link_finding(source.kind, link)) | {"link": vars(link)}
    for finding in source.needless_rights():
        yield _item("rights", subject, finding)


def _item(area: str, subject: str, finding: Finding) -> dict[str, Any]:
    return {"area": area, "subject": subject, **vars(finding)}


def link_finding(kind: str, link: LinkState) -> Finding:
    """What a link is, in a sentence. Pure."""
    if link.place == "file":
        return Finding("link", "ok", "a file of this machine")
    known = f", authenticated by {link.authentication}" if link.authentication else ""
    where = {"loopback": "on this machine", "socket": "by a socket of this machine"}
    safe = f"{link.tls}, certificate verified" if link.verified else link.tls or "not encrypted"
    told = f"{link.user}: {where.get(link.place, 'over the network')}, {safe}"
    if link.place == "network" and not link.verified:
        fix = f"write {_VERIFY[kind]} into the source's url, and leave insecure=yes out"
        return Finding("insecure-link", "warning", f"{told}: not verified{known}", fix)
    if link.authentication == "none":
        fix = "let the server ask for a password: scram-sha-256 in its pg_hba.conf"
        return Finding("no-authentication", "warning", f"{told}; it asks for no password", fix)
    return Finding("link", "ok", told + known)


def _token(token: str | None) -> Finding:
    """Pure."""
    if token is None:
        return Finding(
            "token",
            "ok",
            f"{TOKEN} is not set: on loopback a dashboard is open to users of this machine, elsewhere"
            " a token is made up for it",
        )
    if len(token.strip()) < TOKEN_CHARACTERS_MIN:
        return Finding(
            "weak-token",
            "warning",
            f"{TOKEN} has {len(token.strip())} characters: it can be guessed"
            if token.strip()
            else f"{TOKEN} is empty: a dashboard is refused with it",
            f"export {TOKEN}=$(openssl rand -base64 24)",
        )
    return Finding("token", "ok", f"dashboards ask for the token in {TOKEN}")


def _permissions(config: ProjectConfig) -> Iterator[tuple[str, Finding]]:
    storage = storage_of(config)
    if storage.is_local:
        yield "warehouse", open_to(Path(storage.root), umask_of(config))
    elif storage.is_in_the_clear:
        told = "the warehouse's store is spoken to without TLS: others on the way can read and change it"
        fix = "write https:// into AWS_ENDPOINT_URL and leave AWS_ALLOW_HTTP out"
        yield "warehouse", Finding("insecure-link", "warning", told, fix)
    else:
        yield (
            "warehouse",
            Finding("permissions", "ok", "its store decides who may read the warehouse"),
        )
    yield "state", open_to(config.folder / STATE_FOLDER, 0o077)
    if any(source.holds_password for source in config.sources.values()):
        yield PROJECT_FILE, open_to(config.folder / PROJECT_FILE, 0o077)


def open_to(path: Path, forbidden: int) -> Finding:
    """Whether others may get at a file or a folder; what lies below a closed folder is closed, too."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return Finding("permissions", "ok", f"{path.name} is not there yet: it will be made closed")
    if not mode & forbidden:
        return Finding("permissions", "ok", f"{path.name} has mode {mode:03o}")
    words = "go-rwx" if forbidden & 0o070 == 0o070 else "g-w,o-rwx"
    return Finding(
        "open-permissions",
        "warning",
        f"others on this machine can get at {path} (mode {mode:03o})",
        f"chmod -R {words} {path}",
    )


def _spark(config: ProjectConfig) -> Finding:
    asks = config.spark_config.get("spark.authenticate", "true" if is_local(config) else "false")
    if asks == "true":
        return Finding(
            "spark", "ok", f"Spark on {config.spark_master} authenticates its connections"
        )
    return Finding(
        "spark-open",
        "warning",
        f"Spark on {config.spark_master} does not authenticate its connections: all who reach its"
        " ports can run code in it",
        'write "spark.authenticate" = "true" and "spark.authenticate.secret" into [spark.config]',
    )


def is_local(config: ProjectConfig) -> bool:
    return config.spark_master.startswith("local")
