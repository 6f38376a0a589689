"""What a project's file means to the parts that do the work."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from viewkeeper.errors import UsageError
from viewkeeper.live.auditing.auditor import AuditSettings
from viewkeeper.live.jobs import STAGE
from viewkeeper.live.questions.pacing import SourceLimits
from viewkeeper.project.config import ProjectConfig
from viewkeeper.spark.session import SparkSettings
from viewkeeper.warehouse.retention import DAY_SECONDS, Retention
from viewkeeper.warehouse.storage import Storage

STAGE_FOLDER = ".stage"


# What a project's files leave to others: nothing, or reading to their group.
PRIVATE, GROUP_READS = 0o077, 0o027
# Hadoop's files do not heed the process's umask, but this.
HADOOP_UMASK = "spark.hadoop.fs.permissions.umask-mode"


def umask_of(config: ProjectConfig) -> int:
    return GROUP_READS if config.group_readable else PRIVATE


def heed_group(config: ProjectConfig) -> None:
    """Where the project's group may read, this process must not keep its files from it."""
    if config.group_readable:
        os.umask(os.umask(PRIVATE) & GROUP_READS)


def storage_of(config: ProjectConfig) -> Storage:
    """Where the project's warehouse lies."""
    return Storage.at(config.warehouse_path, config.warehouse_options)


def spark_settings_of(config: ProjectConfig) -> SparkSettings:
    """Spark as the project wants it, able to reach its warehouse.

    Raises UsageError when executors elsewhere would see nothing of what is handed over to them.
    """
    own = {HADOOP_UMASK: f"{umask_of(config):03o}"} | storage_of(config).spark_settings()
    extra = own | dict(config.spark_config)
    hidden = tuple(sorted({v for source in config.sources.values() for v in source.variables}))
    settings = SparkSettings(master=config.spark_master, extra=extra, hidden=hidden)
    if config.spark_driver_memory is not None:
        settings = replace(settings, driver_memory=config.spark_driver_memory)
    if settings.is_local or settings.is_connect:
        return settings
    return replace(settings, extra={STAGE: _stage_of(config), **extra})


def _stage_of(config: ProjectConfig) -> str:
    """Where tables lie on their way to executors: as the project says, or in its warehouse."""
    if config.spark_stage is not None:
        return config.spark_stage
    if storage_of(config).is_local:
        return str(Path(config.warehouse_path).absolute() / STAGE_FOLDER)
    raise UsageError(
        "cluster-without-stage",
        f"executors of {config.spark_master} would not see what is handed over to them",
        detail="large tables go to Spark through files, and the warehouse is not a folder",
        hint='name a folder that the driver and all executors see: stage = "…" in [spark]',
    )


def limits_of(config: ProjectConfig) -> dict[str, SourceLimits]:
    """How much may be asked of each source."""
    return {
        name: SourceLimits(source.queries_per_second, source.rows_per_second)
        for name, source in config.sources.items()
    }


def audit_settings_of(config: ProjectConfig) -> AuditSettings:
    """How a run checks its own views; what the project does not say is as usual."""
    usual = AuditSettings()
    every, keys = config.audit_every_seconds, config.audit_keys
    return AuditSettings(
        usual.every_seconds if every is None else every, usual.keys if keys is None else int(keys)
    )


def retention_of(config: ProjectConfig) -> Retention:
    """How long the project keeps states; what it does not say is as usual."""
    usual = Retention()
    transactions, days = config.keep_transactions, config.keep_days
    return Retention(
        usual.transactions if transactions is None else transactions,
        usual.seconds if days is None else days * DAY_SECONDS,
    )
