"""The behaviour suite's fixtures: every test that asks for ``rig`` runs once per kind of source.

Set VIEWKEEPER_KINDS=postgres,sqlite to run some kinds only, VIEWKEEPER_CUTS=300 for long runs.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest

from live.sources.rig import Rig

KINDS = ("postgres", "mariadb", "sqlite")
CHOSEN = tuple(filter(None, os.environ.get("VIEWKEEPER_KINDS", ",".join(KINDS)).split(",")))


def rig_class(kind: str) -> type[Rig] | None:
    """The kind's rig; None while nobody has written one."""
    if not (Path(__file__).parent / f"rig_{kind}.py").exists():
        return None
    return importlib.import_module(f"live.sources.rig_{kind}").Rig


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # A module about one kind alone says so: KIND = "postgres".
    only = getattr(metafunc.module, "KIND", None)
    kinds = [
        kind
        for kind in KINDS
        if kind in CHOSEN and only in (None, kind) and rig_class(kind) is not None
    ]
    if "wrong_variant" in metafunc.fixturenames:
        pairs = [(kind, name) for kind in kinds for name in rig_class(kind).wrong_variants]
        metafunc.parametrize(
            ("rig", "wrong_variant"),
            [pytest.param(k, v, marks=pytest.mark.xdist_group(k), id=f"{k}-{v}") for k, v in pairs],
            indirect=["rig"],
            scope="session",
        )
    elif "rig" in metafunc.fixturenames:
        metafunc.parametrize(
            "rig",
            [pytest.param(kind, marks=pytest.mark.xdist_group(kind)) for kind in kinds],
            indirect=True,
            scope="session",
        )


@pytest.fixture(scope="session")
def rig(request):
    """The kind's server, started once per test process."""
    cls = rig_class(request.param)
    reason = cls.unavailable()
    if reason is not None:
        pytest.skip(f"{request.param}: {reason}")
    with cls() as rig:
        yield rig


@pytest.fixture
def database(rig):
    with rig.database() as database:
        yield database


@pytest.fixture
def needs(rig, request):
    """``needs("server")`` skips the test on kinds that have no such thing."""

    def check(*features: str) -> None:
        missing = set(features) - rig.features
        if missing:
            pytest.skip(f"{rig.kind} has no {', '.join(sorted(missing))}")

    return check


@pytest.fixture(scope="session")
def cuts_wanted() -> int:
    return int(os.environ.get("VIEWKEEPER_CUTS", "60"))
