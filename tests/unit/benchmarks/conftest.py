"""The benchmarks are programs beside the package; their parts that judge and report are tested."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
