"""What we depend on, as far as that can be judged without asking anybody; `make audit-dependencies` asks."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EVERY = [
    *PROJECT["dependencies"],
    *(line for lines in PROJECT["optional-dependencies"].values() for line in lines),
]


@pytest.mark.parametrize("line", [line for line in EVERY if not line.startswith("viewkeeper[")])
def test_every_dependency_has_a_lower_and_an_upper_bound(line):
    """A new major version, or a taken-over one of it, comes in by a decision of ours."""
    assert re.fullmatch(r"[a-z0-9-]+(\[[a-z,]+\])?>=[\d.]+,<[\d.]+", line), line


def test_what_is_installed_fits_together():
    done = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_nothing_is_taken_from_an_address_or_a_repository():
    """Only the registry's own releases: no URL, no branch of somebody's."""
    assert not [line for line in EVERY if "@" in line or "://" in line]
    from_elsewhere = [
        found.metadata["Name"]
        for found in distributions()
        if (text := found.read_text("direct_url.json")) and "vcs_info" in text
    ]
    assert from_elsewhere == []


REASONS = {
    # Given functions, not texts: no name or value of a source is in what it makes.
    "src/viewkeeper/sources/postgres/pgoutput.py": "a decoder made for the columns of one relation",
}


def test_no_code_of_ours_runs_what_it_was_given_as_text():
    """eval, exec, pickle from files, shells: each use needs a reason (`REASONS`)."""
    forbidden = re.compile(
        r"(?<![.\w])(eval|exec)\(|pickle\.loads?\(|os\.system\(|shell=True|yaml\.load\(|tarfile\.open\("
    )
    found = [
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / "src").rglob("*.py"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if forbidden.search(line)
    ]
    assert found == list(REASONS)
