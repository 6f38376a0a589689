"""A project folder's ``viewkeeper.toml``, read and checked: sources, warehouse, Spark.

``${NAME}`` stands for an environment variable, so that no password need be written down. Variables
are looked up when a value is used: a command that opens no source needs no source's password.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from viewkeeper.errors import UsageError, did_you_mean
from viewkeeper.merging.commit_order import ORDERS, DependentOnly

PROJECT_FILE = "viewkeeper.toml"
VIEWS_FOLDER = "views"
TIE_TIMEOUT_SECONDS = 30.0
OVERDUE = ("show-parts", "keep-waiting")
DRIVER_MEMORY = "spark.driver.memory"

# What each table of the file may hold, and the type of it.
_KEYS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "warehouse": {
        "path": str,
        "options": dict,
        "keep_transactions": (int, float),
        "keep_days": (int, float),
        "group_readable": bool,
        "commits": str,
    },
    "spark": {"master": str, "driver_memory": str, "config": dict, "stage": str},
    "sources.*": {
        "url": str,
        "feed_url": str,
        "queries_per_second": (int, float),
        "rows_per_second": (int, float),
        "statement_seconds": (int, float),
        "outbox": str,
    },
    "transactions": {"timeout_seconds": (int, float), "overdue": str},
    "audit": {"every_seconds": (int, float), "keys": (int, float)},
}


@dataclass(frozen=True)
class SourceConfig:
    """One source as the file has it; the texts may hold a password and are never shown."""

    name: str
    _url: str = field(repr=False)
    _feed_url: str | None = field(default=None, repr=False)
    folder: Path = Path(".")
    # How much may be asked of it; without a figure, as much as is needed.
    queries_per_second: float | None = None
    rows_per_second: float | None = None
    statement_seconds: float | None = None
    # The relation in which its transactions say what they are part of.
    outbox: str | None = None

    @property
    def url(self) -> str:
        """With variables filled in; raises UsageError ``missing-variable``."""
        return _located(filled(self._url), self.folder)

    @property
    def variables(self) -> frozenset[str]:
        """The environment variables that its texts ask for."""
        return frozenset(re.findall(r"\$\{(\w+)\}", f"{self._url} {self._feed_url or ''}"))

    def as_far_as_known(self) -> SourceConfig:
        """With nothing where a variable is not set: its set-up script comes before its password."""
        known = {name: os.environ.get(name, "") for name in self.variables}

        def filled_in(text: str) -> str:
            return re.sub(r"\$\{(\w+)\}", lambda match: known[match[1]], text)

        feed = None if self._feed_url is None else filled_in(self._feed_url)
        return replace(self, _url=filled_in(self._url), _feed_url=feed)

    @property
    def holds_password(self) -> bool:
        """Whether its texts have a password in them, instead of a variable's name."""
        found = re.findall(r"://[^/?#@:]*:([^@/]+)@", f"{self._url} {self._feed_url or ''}")
        return any("${" not in word for word in found)

    @property
    def feed_url(self) -> str | None:
        return None if self._feed_url is None else _located(filled(self._feed_url), self.folder)


@dataclass(frozen=True)
class ProjectConfig:
    """A project: where it is and what its file says, with the defaults filled in."""

    folder: Path
    sources: Mapping[str, SourceConfig]
    warehouse_path: str
    spark_master: str
    warehouse_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark_config: Mapping[str, str] = field(default_factory=dict)
    # A folder that the driver and all executors see, for tables on their way to Spark.
    spark_stage: str | None = None
    # As Spark writes it, e.g. 4g; None: as usual.
    spark_driver_memory: str | None = None
    keep_transactions: float | None = None
    keep_days: float | None = None
    # Whether the group of the warehouse's folder may read it; else its owner alone.
    group_readable: bool = False
    # In which order what is ready to be shown is committed.
    commits: str = DependentOnly.name
    # Transactions over several sources: how long their parts are waited for, and what then.
    tie_timeout_seconds: float = TIE_TIMEOUT_SECONDS
    tie_overdue: str = OVERDUE[0]
    # Whether there may be any: the file has [transactions], or an outbox.
    has_ties: bool = False
    # How often a run checks one of its views, and how many of its keys.
    audit_every_seconds: float | None = None
    audit_keys: float | None = None
    # What the user knows of relations that can stand for each other, as the file has it.
    knowledge: Mapping[str, Any] = field(default_factory=dict)

    @property
    def views_folder(self) -> Path:
        return self.folder / VIEWS_FOLDER

    def source(self, name: str) -> SourceConfig:
        """Raises UsageError when the project has no source of that name."""
        try:
            return self.sources[name]
        except KeyError:
            known = ", ".join(self.sources) or "none"
            raise UsageError(
                "unknown-source",
                f"the project has no source {name}",
                detail=f"its sources are: {known}",
                hint=f"add [sources.{name}] to {PROJECT_FILE}",
            ) from None


def read_project(folder: Path) -> ProjectConfig:
    """Read and check the folder's file; raises UsageError with the place of what is wrong."""
    file = folder / PROJECT_FILE
    document = _document(file)
    _require_known(
        document,
        ("warehouse", "spark", "sources", "transactions", "audit", "knowledge"),
        "the file",
        file,
    )
    warehouse = _table(document, "warehouse", "warehouse", file)
    spark = _table(document, "spark", "spark", file)
    sources = document.get("sources", {})
    if not isinstance(sources, dict):
        raise _bad(file, "[sources] is not a table", hint="write [sources.NAME] for each source")
    ties = _table(document, "transactions", "transactions", file)
    if ties.get("overdue", OVERDUE[0]) not in OVERDUE:
        raise _bad(
            file, "overdue in [transactions] is unknown", detail=f"known are: {', '.join(OVERDUE)}"
        )
    audit = _table(document, "audit", "audit", file)
    for setting in audit:
        if audit[setting] < 0:
            raise _bad(file, f"{setting} in [audit] must not be below zero")
    if warehouse.get("commits", DependentOnly.name) not in ORDERS:
        known = ", ".join(ORDERS)
        raise _bad(file, "commits in [warehouse] is unknown", detail=f"known are: {known}")
    path = warehouse.get("path", "warehouse")
    return ProjectConfig(
        folder=folder,
        sources={name: _source(sources, name, file) for name in sources},
        warehouse_path=path if "://" in path else str(folder / path),
        spark_master=spark.get("master", "local[*]"),
        warehouse_options={k: filled(str(v)) for k, v in warehouse.get("options", {}).items()},
        spark_config={k: str(v) for k, v in spark.get("config", {}).items()},
        spark_stage=str((folder / spark["stage"]).absolute()) if "stage" in spark else None,
        spark_driver_memory=_driver_memory(spark, file),
        keep_transactions=warehouse.get("keep_transactions"),
        keep_days=warehouse.get("keep_days"),
        group_readable=warehouse.get("group_readable", False),
        commits=warehouse.get("commits", DependentOnly.name),
        tie_timeout_seconds=ties.get("timeout_seconds", TIE_TIMEOUT_SECONDS),
        tie_overdue=ties.get("overdue", OVERDUE[0]),
        has_ties="transactions" in document or any("outbox" in sources[n] for n in sources),
        audit_every_seconds=audit.get("every_seconds"),
        audit_keys=audit.get("keys"),
        knowledge=document.get("knowledge", {}),
    )


def _driver_memory(spark: Mapping[str, Any], file: Path) -> str | None:
    """What the driver's JVM may take; it must be said in one place only."""
    found = spark.get("driver_memory")
    if found is None:
        return None
    if not re.fullmatch(r"[1-9][0-9]*[mgMG]", found):
        raise _bad(
            file,
            f"driver_memory in [spark] is no amount of memory: {found}",
            hint='write, for example, driver_memory = "4g" or "1500m"',
        )
    if DRIVER_MEMORY in spark.get("config", {}):
        raise _bad(
            file,
            f"driver_memory in [spark] and {DRIVER_MEMORY} in [spark.config] say the same thing",
            hint="leave one of the two lines out",
        )
    return str(found)


def filled(text: str) -> str:
    """``${NAME}`` replaced by the environment's value; raises UsageError ``missing-variable``."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in os.environ:
            raise UsageError(
                "missing-variable",
                f"the environment variable {name} is not set",
                hint=f"{PROJECT_FILE} asks for it: export {name}=…",
            )
        return os.environ[name]

    return re.sub(r"\$\{(\w+)\}", value, text)


def _document(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            "no-project",
            f"there is no {PROJECT_FILE} in {file.parent.absolute()}",
            hint="go to the project's folder, name it with --project, or run viewkeeper init",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        # The parser's words name line and column, and never quote the file.
        raise _bad(file, "it is not TOML", detail=str(error)) from None
    except OSError as error:
        raise _bad(file, "it can't be read", detail=error.strerror or "") from None


def _source(sources: Mapping[str, Any], name: str, file: Path) -> SourceConfig:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise _bad(
            file,
            f"a source can't be named {name}",
            hint="letters, digits and underscores: the name stands before the dot in SQL",
        )
    section = _table(sources, name, "sources.*", file, shown=f"sources.{name}")
    if "url" not in section:
        raise _bad(file, f"[sources.{name}] has no url", hint='url = "postgresql://…"')
    for limit in ("queries_per_second", "rows_per_second", "statement_seconds"):
        if section.get(limit, 1) <= 0:
            raise _bad(file, f"{limit} in [sources.{name}] must be above zero")
    return SourceConfig(
        name,
        section["url"],
        section.get("feed_url"),
        file.parent,
        section.get("queries_per_second"),
        section.get("rows_per_second"),
        section.get("statement_seconds"),
        section.get("outbox"),
    )


def _located(url: str, folder: Path) -> str:
    """A relative SQLite file lies in the project's folder, wherever the command was started."""
    scheme = "sqlite:///"
    if not url.startswith(scheme) or url.startswith(f"{scheme}/"):
        return url
    return f"{scheme}{quote(str(folder.absolute()))}/{url.removeprefix(scheme)}"


def _table(
    document: Mapping[str, Any], name: str, keys: str, file: Path, shown: str = ""
) -> Mapping[str, Any]:
    section = document.get(name, {})
    shown = shown or name
    if not isinstance(section, dict):
        raise _bad(file, f"[{shown}] is not a table")
    known = _KEYS[keys]
    _require_known(section, tuple(known), f"[{shown}]", file)
    for key, value in section.items():
        # In Python a truth value is a number; in a settings file it is a mistake.
        is_truth = isinstance(value, bool)
        if not isinstance(value, known[key]) or is_truth is not (known[key] is bool):
            raise _bad(file, f"{key} in [{shown}] has the wrong type", detail=_wanted(known[key]))
    return section


def _wanted(kind: type | tuple[type, ...]) -> str:
    words = {str: "a text in quotes", dict: "a table", (int, float): "a number"}
    words[bool] = "true or false"
    return f"expected {words[kind]}"


def _require_known(
    section: Mapping[str, Any], known: tuple[str, ...], where: str, file: Path
) -> None:
    for key in section:
        if key not in known:
            raise _bad(
                file,
                f"{where} has an unknown entry {key}",
                detail=f"known are: {', '.join(known)}",
                hint=did_you_mean(key, known),
            )


def _bad(file: Path, what: str, *, detail: str = "", hint: str = "") -> UsageError:
    return UsageError("bad-project", f"{file}: {what}", detail=detail, hint=hint)
