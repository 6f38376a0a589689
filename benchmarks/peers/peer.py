"""A process of one system: ``python -m peers.peer TASK.json ANSWER.json``, in that system's environment."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from pathlib import Path

from peers.task import Task

MODULES = {
    "viewkeeper": "viewkeeper_peer",
    "flink": "flink_peer",
    "flink-batched": "flink_peer",
    "pathway": "pathway_peer",
    "pathway-stored": "pathway_peer",
    "duckdb": "duckdb_peer",
    "postgres-refresh": "postgres_peer",
    "spark-refresh": "spark_peer",
    "spark-pipelines": "declarative_peer",
}


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    module = importlib.import_module(f"peers.{MODULES[task.peer]}")
    measurement = module.run(task)
    Path(sys.argv[2]).write_text(json.dumps(dataclasses.asdict(measurement)))


if __name__ == "__main__":
    main()
