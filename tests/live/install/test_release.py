"""What `make release` builds and refuses; installing it from a package index is left to the command itself."""

from __future__ import annotations

import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

import release
import viewkeeper

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.xdist_group("install")


def tree(folder: Path, version: str = "0.2.0", changelog: str = "## 0.2.0 (2026-01-01)\n\n- x\n"):
    """A committed tree that is as much of ours as the release looks at."""
    (folder / "src" / "viewkeeper").mkdir(parents=True)
    (folder / "src" / "viewkeeper" / "__init__.py").write_text(f'__version__ = "{version}"\n')
    (folder / "CHANGELOG.md").write_text(changelog)
    for words in ("init -q", "add -A", "-c user.name=a -c user.email=a@b commit -q -m x"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return folder


def test_the_version_stands_in_one_place_and_the_changelog_describes_it() -> None:
    assert release.version_of(ROOT) == viewkeeper.__version__
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text("utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert release.section_of(changelog, viewkeeper.__version__)
    headings = re.findall(r"^## (.*)$", changelog, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1].startswith(f"{viewkeeper.__version__} (")


def test_a_tree_that_is_committed_and_described_can_be_released(tmp_path: Path) -> None:
    assert release.obstacles(tree(tmp_path)) == []


@pytest.mark.parametrize(
    "changelog", ["## Unreleased\n\n- x\n", "## 0.2.0 (2026-01-01)\n\n## 0.1.0 (2025-01-01)\n- x\n"]
)
def test_a_version_without_a_description_is_refused(tmp_path: Path, changelog: str) -> None:
    (said,) = release.obstacles(tree(tmp_path, changelog=changelog))
    assert "CHANGELOG.md has no section '## 0.2.0 (date)'" in said


def test_changes_that_are_not_committed_are_refused(tmp_path: Path) -> None:
    folder = tree(tmp_path)
    (folder / "new.py").write_text("")
    (said,) = release.obstacles(folder)
    assert "new.py" in said


def test_wheel_and_archive_are_built_with_what_they_need(tmp_path: Path) -> None:
    wheel, archive = release.build(ROOT, tmp_path / "dist")
    assert release.faults_of(wheel, archive) == []
    assert viewkeeper.__version__ in wheel.name


def test_what_is_missing_or_too_much_in_them_is_named(tmp_path: Path) -> None:
    wheel, archive = tmp_path / "a.whl", tmp_path / "a.tar.gz"
    with zipfile.ZipFile(wheel, "w") as opened:
        for name in ("viewkeeper/__init__.py", "viewkeeper/dashboard/static/a.js"):
            opened.writestr(name, "")
    (tmp_path / "crash-0af1").write_text("")
    with tarfile.open(archive, "w:gz") as opened:
        opened.add(tmp_path / "crash-0af1", "viewkeeper-1/crash-0af1")
    found = release.faults_of(wheel, archive)
    assert "a.whl lacks viewkeeper/py.typed" in found
    assert "a.tar.gz lacks LICENSE" in found
    assert "a.tar.gz has crash-0af1" in found
