"""The servers that we start ourselves: independent, restartable, and gone when we are gone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from viewkeeper.testing.mariadb import mariadbd_missing
from viewkeeper.testing.postgres import EmbeddedPostgres

pytestmark = pytest.mark.xdist_group("postgres")

PROGRAM = """
import sys
from viewkeeper.testing.{module} import {server}
server = {server}()
print(server.port, server._process.pid, server._folder, flush=True)
sys.stdin.read()
"""


def test_two_servers_are_strangers_and_leave_nothing_behind():
    with EmbeddedPostgres() as one, EmbeddedPostgres() as other:
        folders = [one._folder, other._folder]
        with psycopg.connect(one.url(), autocommit=True) as connection:
            connection.execute("CREATE TABLE mine (id BIGINT)")
        with psycopg.connect(other.url()) as connection:
            found = connection.execute("SELECT to_regclass('mine')").fetchone()
            assert found == (None,)
        one.kill()
        one.start()
        with psycopg.connect(one.url()) as connection:
            assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize(
    ("module", "server"), [("postgres", "EmbeddedPostgres"), ("mariadb", "PrivateMariaDB")]
)
def test_a_server_does_not_outlive_a_killed_program(module, server):
    if module == "mariadb" and mariadbd_missing():
        pytest.skip(mariadbd_missing())
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(module=module, server=server)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    _, pid, folder = program.stdout.readline().split()
    program.send_signal(signal.SIGKILL)
    program.communicate()
    deadline = time.monotonic() + 300
    while Path(folder).exists():
        assert time.monotonic() < deadline, "the server's folder is still there"
        time.sleep(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
