"""What a project's file means to the parts that do the work."""

from __future__ import annotations

from viewkeeper.project import ProjectConfig
from viewkeeper.runtime.pacing import SourceLimits
from viewkeeper.spark.session import SparkSettings
from viewkeeper.warehouse.retention import DAY_SECONDS, Retention
from viewkeeper.warehouse.storage import Storage


def storage_of(config: ProjectConfig) -> Storage:
    """Where the project's warehouse lies."""
    return Storage.at(config.warehouse_path, config.warehouse_options)


def spark_settings_of(config: ProjectConfig) -> SparkSettings:
    """Spark as the project wants it, able to reach its warehouse."""
    extra = storage_of(config).spark_settings() | dict(config.spark_config)
    return SparkSettings(master=config.spark_master, extra=extra)


def limits_of(config: ProjectConfig) -> dict[str, SourceLimits]:
    """How much may be asked of each source."""
    return {
        name: SourceLimits(source.queries_per_second, source.rows_per_second)
        for name, source in config.sources.items()
    }


def retention_of(config: ProjectConfig) -> Retention:
    """How long the project keeps states; what it does not say is as usual."""
    usual = Retention()
    transactions, days = config.keep_transactions, config.keep_days
    return Retention(
        usual.transactions if transactions is None else transactions,
        usual.seconds if days is None else days * DAY_SECONDS,
    )
