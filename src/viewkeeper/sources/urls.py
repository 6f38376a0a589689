"""Source URLs, taken apart once, and the passwords in them kept out of everything people read.

``postgresql://user:password@host:port/database?option=value``, ``mariadb://…`` alike, and
``sqlite:///relative/path.db`` or ``sqlite:////absolute/path.db``. Knows no driver.

A link that leaves this machine is encrypted and the server's certificate is verified, unless the URL says
``insecure=yes``. Which option that is at which driver, its ``connection`` module knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from viewkeeper.addresses import is_loopback
from viewkeeper.errors import UsageError

KINDS = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "mariadb": "mariadb",
    "mysql": "mariadb",
    "sqlite": "sqlite",
}
DEFAULT_PORTS = {"postgres": 5432, "mariadb": 3306}
INSECURE = "insecure"


class Secret:
    """A text that prints as ``***``; only `reveal` gives it, at the moment a driver needs it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))


@dataclass(frozen=True)
class SourceUrl:
    """Where a source is and how to get in. ``database`` is the file's path for sqlite."""

    kind: str
    database: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: Secret | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    # How long one of our statements may take there; None: ten minutes.
    statement_seconds: float | None = None

    @property
    def is_near(self) -> bool:
        """Whether the link stays on this machine: a file, a Unix socket or a loopback address."""
        return self.kind == "sqlite" or self.host.startswith("/") or is_loopback(self.host)

    @property
    def place(self) -> str:
        """Where its links lead: file, socket, loopback or network."""
        if self.kind == "sqlite":
            return "file"
        if self.host.startswith("/"):
            return "socket"
        return "loopback" if self.is_near else "network"

    @property
    def may_be_insecure(self) -> bool:
        """Whether a link need not be verified, because it stays here or because the URL says so."""
        return self.is_near or self.options.get(INSECURE) == "yes"

    def __str__(self) -> str:
        """The URL as people may see it: without the password and without the options' values."""
        if self.kind == "sqlite":
            return f"sqlite:///{self.database}"
        user = f"{quote(self.user)}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.kind}://{user}{host}:{self.port}/{quote(self.database)}"

    def revealed(self) -> str:
        """The whole URL of a server, with its secrets: for another process of ours, never for people."""
        user = quote(self.user, safe="")
        if self.password is not None:
            user += f":{quote(self.password.reveal(), safe='')}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        place = f"{user}@{host}" if user else host
        scheme = "postgresql" if self.kind == "postgres" else self.kind
        options = f"?{urlencode(self.options)}" if self.options else ""
        return f"{scheme}://{place}:{self.port}/{quote(self.database, safe='')}{options}"


def parse_source_url(url: str, source: str) -> SourceUrl:
    """Raises UsageError that names the source and the part that is wrong, never the URL itself."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _bad(source, "it is not a URL, or its port is not a number") from None
    kind = KINDS.get(parts.scheme)
    if kind is None:
        known = ", ".join(sorted({"postgresql", "mariadb", "sqlite"}))
        raise _bad(source, f"its scheme must be one of {known}")
    if parts.fragment:
        raise _bad(source, "there is an unescaped # in it (write %23 inside a password)")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if options.get(INSECURE, "yes") != "yes":
        raise _bad(source, "the option insecure can be yes, or is left out")
    if kind == "sqlite":
        return _sqlite_url(parts.netloc, unquote(parts.path), options, source)
    database = unquote(parts.path.removeprefix("/"))
    if not database or not parts.hostname:
        raise _bad(source, "it needs a host and a database: scheme://user:password@host/database")
    return SourceUrl(
        kind=kind,
        database=database,
        host=unquote(parts.hostname),
        port=port or DEFAULT_PORTS[kind],
        user=unquote(parts.username or ""),
        password=Secret(unquote(parts.password)) if parts.password is not None else None,
        options=options,
    )


def _sqlite_url(netloc: str, path: str, options: dict[str, str], source: str) -> SourceUrl:
    if netloc or len(path) < 2:
        raise _bad(source, "write sqlite:///relative/path.db or sqlite:////absolute/path.db")
    return SourceUrl(kind="sqlite", database=path.removeprefix("/"), options=options)


def insecure_link(url: SourceUrl, given: str, wanted: str) -> UsageError:
    """For a link off this machine that could be read or answered by others."""
    return UsageError(
        "insecure-link",
        f"the link to {url} would not be safe: {url.host} is not this machine",
        detail=f"expected {wanted}, found {given}: others on the way could read or answer it",
        hint=f"write {wanted} into the source's url; or insecure=yes, if the network itself is trusted",
    )


def _bad(source: str, reason: str) -> UsageError:
    return UsageError(
        "bad-source-url",
        f"the URL of source {source} can't be used",
        detail=reason,
        hint='for example url = "postgresql://keeper:${SHOP_PASSWORD}@db1/shop"',
    )
