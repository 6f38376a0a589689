"""How sessions are set up. Starting a second JVM is left to a process of its own."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from viewkeeper.errors import UsageError
from viewkeeper.spark.session import SparkSettings, _context_settings, start_spark


def test_a_local_driver_listens_on_the_loopback_only(tmp_path):
    chosen = _context_settings(SparkSettings(), tmp_path)
    assert chosen["spark.driver.host"] == chosen["spark.driver.bindAddress"] == "127.0.0.1"
    assert chosen["spark.ui.enabled"] == "false"
    assert "TieredStopAtLevel=1" in chosen["spark.driver.extraJavaOptions"]


def test_a_cluster_can_reach_its_driver_and_gets_an_ordinary_jvm(tmp_path):
    chosen = _context_settings(SparkSettings(master="spark://host:7077"), tmp_path)
    assert "spark.driver.host" not in chosen
    assert "TieredStopAtLevel" not in chosen["spark.driver.extraJavaOptions"]


def test_what_the_user_sets_wins(tmp_path):
    chosen = _context_settings(SparkSettings(extra={"spark.scheduler.mode": "FIFO"}), tmp_path)
    assert chosen["spark.scheduler.mode"] == "FIFO"


def test_spark_connect_is_refused_with_what_to_write_instead():
    with pytest.raises(UsageError) as caught:
        start_spark(SparkSettings(master="sc://host"))
    assert caught.value.code == "spark-connect-unsupported"


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_both_sessions_mean_the_same_and_run_differently(running_spark):
    tiny, bulk = running_spark.tiny.conf, running_spark.bulk.conf
    for name in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive"):
        assert tiny.get(name) == bulk.get(name)
    assert tiny.get("spark.sql.session.timeZone") == "UTC"
    assert tiny.get("spark.sql.adaptive.enabled") == "false"
    assert bulk.get("spark.sql.adaptive.enabled") == "true"
    assert running_spark.tiny.sparkContext is running_spark.bulk.sparkContext


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_spark_that_somebody_else_started_is_joined_and_left_running(running_spark):
    with start_spark() as guest:
        assert guest.tiny.sparkContext is running_spark.tiny.sparkContext
        assert guest.log_file is None
    assert running_spark.tiny.sql("SELECT 1").count() == 1


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_workers_run_the_same_python(running_spark):
    found = running_spark.tiny.sparkContext.parallelize([1], 1).map(lambda _: sys.executable)
    assert found.collect() == [sys.executable]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_session_starts_fails_and_stops_without_a_word_on_the_terminal():
    script = """
        from viewkeeper.spark.session import SparkSettings, start_spark
        with start_spark(SparkSettings(master="local[1]", driver_memory="600m")) as spark:
            folder, process = spark.log_file.parent, spark.tiny.sparkContext._gateway.proc
            for text in ("SELECT nothing", "SELECT 1 / 0"):
                try:
                    spark.tiny.sql(text).collect()
                except Exception as error:
                    assert "SQLSTATE" in str(error)
                else:
                    raise AssertionError(text)
        assert not folder.exists()
        assert process.poll() is not None
        spark.stop()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_drivers_memory_of_a_project_is_that_of_its_jvm(tmp_path):
    """A JVM takes it when it starts, and never again: it must be there before the context is."""
    (tmp_path / "viewkeeper.toml").write_text(
        '[spark]\nmaster = "local[1]"\ndriver_memory = "700m"\n'
    )
    script = """
        import sys
        from viewkeeper.project.keeper import Keeper
        with Keeper.open(sys.argv[1]) as keeper:
            jvm = keeper.spark.tiny.sparkContext._jvm
            print(jvm.java.lang.Runtime.getRuntime().maxMemory() // 2**20)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # A survivor space of the collector's is not counted.
    assert 600 <= int(done.stdout) <= 700


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_other_users_of_this_machine_can_not_talk_to_a_local_driver(running_spark):
    """Who can connect could have it run code: all its ports are on loopback, and ask for a secret."""
    context = running_spark.tiny.sparkContext
    jvm = context._jvm
    plain = jvm.org.apache.spark.SparkConf(False)
    plain.set("spark.rpc.lookupTimeout", "60s").set("spark.rpc.numRetries", "1")
    kind = jvm.org.apache.spark.SecurityManager
    usual = (getattr(kind, f"$lessinit$greater$default${at}")() for at in (2, 3))
    stranger = kind(plain, *usual)
    rpc = jvm.org.apache.spark.rpc.RpcEnv.create("stranger", "127.0.0.1", 0, plain, stranger, True)
    port = int(context.getConf().get("spark.driver.port"))
    driver = jvm.org.apache.spark.rpc.RpcAddress("127.0.0.1", port)
    try:
        with pytest.raises(Py4JJavaError):
            rpc.setupEndpointRef(driver, "HeartbeatReceiver")
    finally:
        rpc.shutdown()
    pid = context._gateway.proc.pid
    for address in listening(pid):
        assert address.is_loopback, f"the JVM listens on {address}"


def listening(pid: int) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """The addresses at which a process waits for connections."""
    own = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            own.add(os.readlink(entry))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                packed = bytes.fromhex(fields[1].partition(":")[0])
                words = (packed[at : at + 4][::-1] for at in range(0, len(packed), 4))
                address = ipaddress.ip_address(b"".join(words))
                found.append(getattr(address, "ipv4_mapped", None) or address)
    assert found
    return found
