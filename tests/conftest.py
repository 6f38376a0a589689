"""What all tests share: Hypothesis profiles, and one Spark for the whole run."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from outside import GUARD, is_sliced, needs_outside, reaches_outside
from slices import CHECKING

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
settings.register_profile("check", settings.get_profile("ci"), max_examples=15)
settings.load_profile("check" if CHECKING else "ci")


# What is long by nature: seeds by the hundred, kills, storms, browsers, whole programs from their start to their
# end. `make test` leaves it out, `make test-long` runs nothing else, and CI runs both.
LONG = (
    "chaos/",
    "simulation/",
    "live/demo/",
    "dashboard/test_limits.py",
    "dashboard/test_live.py",
    "dashboard/test_pages.py",
    "docs/test_examples.py",
    "docs/test_pages.py",
    "laws/test_laws.py",
    "live/pipeline/test_cluster.py",
    "live/pipeline/test_ending.py",
    "live/pipeline/test_ending_soon.py",
    "live/pipeline/test_one_cut.py",
    "live/pipeline/test_postgres_under_writers.py",
    "live/pipeline/test_published.py",
    "live/pipeline/test_schema_changes_under_writers.py",
    "live/pipeline/test_sqlite_rebuilds.py",
    "live/pipeline/test_types_live.py",
    "live/pipeline/test_wrong_variants.py",
    "live/sources/test_faults.py",
    "live/warehouse/test_query_gate.py",
    "live/warehouse/test_warehouse_kills.py",
    "unit/sql/test_meaning.py",
    "unit/warehouse/test_checksums.py",
)
_TESTS = Path(__file__).parent


def is_long(path: Path) -> bool:
    place = path.relative_to(_TESTS).as_posix()
    return any(place == name or (name.endswith("/") and place.startswith(name)) for name in LONG)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """`make check` does not even load what it would leave out."""
    if not CHECKING or not collection_path.match("test_*.py"):
        return None
    left_out = is_long(collection_path) and not is_sliced(collection_path)
    return True if left_out or reaches_outside(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_TESTS):
            _mark(item)
    if CHECKING:
        left_out = [
            item
            for item in items
            if item.get_closest_marker("outside") or item.get_closest_marker("thorough")
        ]
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _mark(item: pytest.Item) -> None:
    if is_long(item.path):
        item.add_marker(pytest.mark.long)
    marks = [mark.name for mark in item.iter_markers()]
    if needs_outside(item.path, getattr(item, "fixturenames", ()), marks):
        item.add_marker(pytest.mark.outside)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test without the mark ``outside`` starts neither Java nor a server nor a browser."""
    GUARD.forbids = item.get_closest_marker("outside") is None
    try:
        return (yield)
    finally:
        GUARD.forbids = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Told here too: the code under test may have swallowed the guard's refusal."""
    done = yield
    GUARD.require_nothing_started()
    return done


@pytest.fixture
def java_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a fit Java were found: for commands that ask for it first and are refused for something else."""
    monkeypatch.setattr("viewkeeper.spark.java.require_java", lambda: 17)


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
