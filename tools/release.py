"""Builds the wheel and the source archive into ``dist/``, and tries the wheel as a user would.

The version stands in ``src/viewkeeper/__init__.py`` alone; the build backend reads it there. Nothing is built for a
version that the changelog does not describe, nor from a tree with changes that are not committed: what is released could
not be built again from it. Nothing is uploaded.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What must be in each of the two; the rest of the tree may be in the source archive.
IN_WHEEL = ("viewkeeper/__init__.py", "viewkeeper/py.typed", "viewkeeper/dashboard/static/")
IN_ARCHIVE = (
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "src/viewkeeper/__init__.py",
)
NOT_INSIDE = re.compile(r"(^|/)(\.venv|__pycache__|\.git|dist|build|crash-[0-9a-f]+)(/|$)")


def version_of(root: Path) -> str:
    """The version as the package says it."""
    text = (root / "src" / "viewkeeper" / "__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    return found[1] if found else ""


def section_of(changelog: str, version: str) -> str | None:
    """What the changelog says of a version, or None; a version has a date in its heading."""
    found = re.search(
        rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)\n(.*?)(?=^## |\Z)", changelog, re.M | re.S
    )
    return found[1].strip() if found else None


def obstacles(root: Path) -> list[str]:
    """Why nothing can be released from this tree, a line each."""
    version = version_of(root)
    found = []
    if not section_of((root / "CHANGELOG.md").read_text("utf-8"), version):
        found.append(f"CHANGELOG.md has no section '## {version} (date)' with something in it")
    changed = _run("git", "status", "--porcelain", cwd=root).splitlines()
    if changed:
        found.append(
            f"{len(changed)} files are changed and not committed, {changed[0][3:]} among them"
        )
    return found


def build(root: Path, target: Path) -> tuple[Path, Path]:
    """The wheel and the source archive, in an empty ``target``."""
    shutil.rmtree(target, ignore_errors=True)
    words = ("-m", "hatchling", "build", "-d", str(target), "-t", "sdist", "-t", "wheel")
    _run(sys.executable, *words, cwd=root)
    (wheel,), (archive,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return wheel, archive


def faults_of(wheel: Path, archive: Path) -> list[str]:
    """What is missing in the two files, or must not be in them."""
    inside = zipfile.ZipFile(wheel).namelist()
    with tarfile.open(archive) as opened:
        archived = [name.partition("/")[2] for name in opened.getnames()]
    found = []
    for file, names, wanted in ((wheel, inside, IN_WHEEL), (archive, archived, IN_ARCHIVE)):
        found += [
            f"{file.name} lacks {want}"
            for want in wanted
            if not any(
                name == want or (want.endswith("/") and name.startswith(want)) for name in names
            )
        ]
        found += [f"{file.name} has {name}" for name in names if NOT_INSIDE.search(name)]
    return found


def try_out(wheel: Path, version: str) -> None:
    """Install the wheel with all that it needs into a new environment, and ask it for its version."""
    with tempfile.TemporaryDirectory(prefix="viewkeeper-release-") as folder:
        _run(sys.executable, "-m", "venv", folder)
        binaries = Path(folder) / "bin"
        _run(str(binaries / "python"), "-m", "pip", "install", "--quiet", str(wheel))
        program = str(binaries / "viewkeeper")
        said = _run(program, "--version", cwd=Path(folder)).strip()
        if said != f"viewkeeper {version}":
            raise SystemExit(
                f"the installed program says {said!r}, expected 'viewkeeper {version}'"
            )
        _run(program, "init", "example", cwd=Path(folder))
        _run(program, "check", "--project", "example", cwd=Path(folder))


def main() -> int:
    found = obstacles(ROOT)
    if not found:
        wheel, archive = build(ROOT, ROOT / "dist")
        found = faults_of(wheel, archive)
    for line in found:
        sys.stderr.write(f"{line}\n")
    if found:
        return 1
    try_out(wheel, version_of(ROOT))
    for file in (wheel, archive):
        sys.stdout.write(f"{file.relative_to(ROOT)}  {file.stat().st_size // 1024} KiB\n")
    return 0


def _run(*words: str, cwd: Path | None = None) -> str:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
