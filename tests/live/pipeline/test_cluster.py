"""The pipeline on a cluster: master, worker and executor are processes that share no memory with the driver.

The driver is a process of its own, too, for a Spark context is one per process and this one has another.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from viewkeeper.testing.postgres import EmbeddedPostgres
from viewkeeper.testing.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ORDERS = 120_000
VIEW = """
SELECT o.id, o.qty, c.name FROM shop.orders o JOIN crm.customers c ON o.cust = c.id
"""
PROJECT = """
[spark]
master = "{master}"
[spark.config]
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
"spark.executor.memory" = "512m"
"spark.sql.shuffle.partitions" = "2"
"spark.driver.extraJavaOptions" = "{quick}"
"spark.executor.extraJavaOptions" = "{quick}"
[sources.shop]
url = "{shop}"
[sources.crm]
url = "sqlite:///{crm}"
"""
# Four short lives of a JVM: compiling little costs less than it saves.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC"
PATIENCE_SECONDS = 600


@pytest.fixture
def project(tmp_path):
    with EmbeddedPostgres() as server, SparkCluster(1, cores=1, memory="1g") as cluster:
        with psycopg.connect(server.url(), autocommit=True) as database:
            database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, cust int, qty int)")
            database.execute(
                "INSERT INTO orders SELECT n, n %% 100, n %% 7 FROM generate_series(1, %s) n",
                (ORDERS,),
            )
            database.execute("VACUUM ANALYZE orders")
        with closing(sqlite3.connect(tmp_path / "crm.db")) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
            rows = [(n, "x" * (n % 13)) for n in range(100)]
            database.executemany("INSERT INTO customers VALUES (?, ?)", rows)
            database.commit()
        (tmp_path / "views").mkdir()
        (tmp_path / "views" / "sales.sql").write_text(VIEW)
        text = PROJECT.format(
            master=cluster.url, shop=server.url(), crm=tmp_path / "crm.db", quick=QUICK_JVM
        )
        (tmp_path / "viewkeeper.toml").write_text(text)
        yield tmp_path, server, cluster


def test_load_and_a_large_transaction_on_a_cluster(project):
    folder, server, cluster = project
    program = Path(__file__).with_name("cluster_program.py")
    done = subprocess.run(
        [sys.executable, str(program), str(folder), server.url()],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["loaded"] == ORDERS
    assert told["read"]["shop.orders"] == ORDERS
    # Large and of a source that shares its cut: read by executors; the file: by the driver.
    assert told["read_here"] == ["crm.customers"]
    moved = [(n, (n % 100 + 1) % 100 if n % 10 == 0 else n % 100) for n in range(1, ORDERS + 1)]
    names = sum(cust % 13 for _, cust in moved)
    assert told["sums"] == [ORDERS, sum(n for n, _ in moved), names]
    assert cluster.executors_used() >= 1
    assert not list((folder / "warehouse" / ".stage").iterdir())
