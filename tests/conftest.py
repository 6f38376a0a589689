"""What all tests share: Hypothesis profiles, and one Spark for the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from viewkeeper.spark.session import Spark

# The same examples on every run, and no deadline: this machine may be busy with something else.
# `--hypothesis-profile=explore` looks for new ones.
_CALM = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=_CALM)
settings.register_profile(
    "explore", deadline=None, max_examples=1000, suppress_health_check=_CALM, print_blob=True
)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def running_spark() -> Iterator[Spark]:
    """The one Spark of this run, with its sessions ``tiny`` and ``bulk``.

    Tests that use it are marked ``spark`` and ``xdist_group("spark")``: one worker, one JVM.
    """
    # Imported late: most tests need no Spark and must not pay for loading it.
    from viewkeeper.spark.session import SparkSettings, start_spark

    with start_spark(SparkSettings(master="local[2]")) as running:
        yield running


@pytest.fixture(scope="session")
def spark(running_spark: Spark) -> SparkSession:
    """A Spark session for small data; the marks of `running_spark` apply."""
    return running_spark.tiny
