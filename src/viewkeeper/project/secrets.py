"""What in a project's settings must not be read in a log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from viewkeeper.errors import UsageError
from viewkeeper.project.config import ProjectConfig
from viewkeeper.sources.urls import parse_source_url

_SECRET_SETTING = re.compile(r"secret|password|token|credential|key", re.IGNORECASE)


def secrets_of(config: ProjectConfig) -> Iterator[str]:
    """Whatever in the project's settings must not be read in a log."""
    for source in config.sources.values():
        # A variable that is not set, or no URL: then there is no secret either.
        with suppress(UsageError):
            for url in filter(None, (source.url, source.feed_url)):
                parsed = parse_source_url(url, source.name)
                if parsed.password is not None:
                    yield parsed.password.reveal()
                yield from _secret_settings(parsed.options)
    yield from _secret_settings(config.warehouse_options)
    yield from _secret_settings(config.spark_config)


def _secret_settings(settings: Mapping[str, str]) -> Iterator[str]:
    return (value for name, value in settings.items() if _SECRET_SETTING.search(name))
