"""An environment of its own for every system that does not live in ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Versions are part of a figure: raise them on purpose.
PACKAGES = {
    "flink": ("apache-flink==2.3.0",),
    "pathway": ("pathway==0.33.0",),
    "duckdb": ("duckdb==2.0.0",),
    "spark": ("pyspark[connect]==4.3.0", "pyyaml"),
}
ENVIRONMENTS = {
    "viewkeeper": None,
    "flink": "flink",
    "flink-batched": "flink",
    "pathway": "pathway",
    "pathway-stored": "pathway",
    "duckdb": "duckdb",
    "postgres-refresh": None,
    "spark-refresh": "spark",
    "spark-pipelines": "spark",
}


class NotInstalled(Exception):
    """A system that this machine can't have; the text says why."""


def python_of(peer: str, folder: Path) -> Path:
    """The interpreter to run a system with; makes its environment below ``folder`` if need be."""
    name = ENVIRONMENTS[peer]
    if name is None:
        return Path(sys.executable)
    home = folder / name
    python, stamp = home / "bin" / "python", home / "installed.txt"
    wanted = "\n".join(PACKAGES[name]) + "\n"
    if not stamp.exists() or stamp.read_text() != wanted:
        steps = (
            [sys.executable, "-m", "venv", str(home)],
            [str(python), "-m", "pip", "install", "--quiet", *PACKAGES[name]],
        )
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode:
                said = [line for line in done.stderr.splitlines() if not line.startswith("WARN")]
                raise NotInstalled("\n".join(said[-3:]))
        stamp.write_text(wanted)
    return python
