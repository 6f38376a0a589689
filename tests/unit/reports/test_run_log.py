"""The log of a run: one schema, no secrets."""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path
from typing import Any

import pytest

from event_samples import run_event
from viewkeeper.cli import execute
from viewkeeper.errors import SourceError, UsageError
from viewkeeper.project.config import read_project
from viewkeeper.project.secrets import secrets_of
from viewkeeper.reports import run_log
from viewkeeper.reports.run_log import RunLog
from viewkeeper.run_events import RunFailed, SourceWentAway

PASSWORD = "p@ss/w0rd öff"
IN_URL = "p%40ss%2Fw0rd%20%C3%B6ff"
FAILURE = SourceError(
    "link-lost",
    f"can't connect with {PASSWORD}",
    source="shop",
    retryable=True,
    detail=f"postgresql://keeper:{IN_URL}@db/shop",
)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_line_has_the_same_schema(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    with RunLog(str(path)) as log:
        log.on_event(run_event("ready", txn=7))
        log.on_event(SourceWentAway(FAILURE.as_dict()))
        logging.getLogger("viewkeeper.warehouse").warning("it took %s s", 3)
    written = lines(path)
    assert [list(line) for line in written] == [["time", "level", "event", "fields"]] * 3
    assert [(line["level"], line["event"]) for line in written] == [
        ("info", "ready"),
        ("warning", "source_waiting"),
        ("warning", "note"),
    ]
    assert written[0]["fields"] == {"txn": 7, "views": ["sales"]}
    assert written[2]["fields"]["message"] == "it took 3 s"


def test_the_end_by_an_error_is_told_and_the_logger_left_as_it_was(tmp_path: Path) -> None:
    path, logger = tmp_path / "run.log", logging.getLogger("viewkeeper")
    before = logger.level, list(logger.handlers)
    for error in (FAILURE, ValueError("odd"), KeyboardInterrupt()):
        with pytest.raises(type(error)), RunLog(str(path)):
            raise error
    known, unknown, interrupted = lines(path)
    assert known["fields"]["error"]["code"] == "link-lost"
    assert known["level"] == unknown["level"] == "error"
    assert "ValueError: odd" in unknown["fields"]["traceback"]
    assert interrupted["event"] == "interrupted"
    assert (logger.level, logger.handlers) == before


def test_secrets_are_masked_in_whatever_form_and_place(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    nested = run_event("batch", changed={"deep": [(PASSWORD, Path(f"/{IN_URL}"))], PASSWORD: 1})
    with RunLog(str(path), [PASSWORD, "", "p@ss"]) as log:
        log.on_event(nested)
        logging.getLogger("viewkeeper").error("with %s", PASSWORD)
        log.on_event(RunFailed(FAILURE.as_dict()))
    text = path.read_text(encoding="utf-8")
    assert "w0rd" not in text
    assert text.count("***") == 6
    assert len(lines(path)) == 3


def test_the_secrets_of_a_project_are_its_passwords_and_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", IN_URL)
    (tmp_path / "viewkeeper.toml").write_text(
        """
        [warehouse]
        path = "s3://bucket/warehouse"
        options = { AWS_SECRET_ACCESS_KEY = "abc123", AWS_REGION = "eu" }
        [sources.shop]
        url = "postgresql://keeper:${SHOP_PASSWORD}@db/shop"
        feed_url = "postgresql://feeder:other@db/shop"
        [sources.unset]
        url = "mariadb://keeper:${NOWHERE_TO_BE_FOUND}@db/crm"
        [sources.geo]
        url = "sqlite:///geo.db"
        """
    )
    assert set(secrets_of(read_project(tmp_path))) == {PASSWORD, "other", "abc123"}


def test_a_file_that_is_full_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "FILE_BYTES_MAX", 2_000)
    monkeypatch.setattr(run_log, "OLD_FILES_MAX", 2)
    with RunLog(str(tmp_path / "run.log")) as log:
        for number in range(200):
            log.on_event(run_event("ready", txn=number))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.log", "run.log.1", "run.log.2"]
    assert all(path.stat().st_size <= 2_000 for path in tmp_path.iterdir())
    assert lines(tmp_path / "run.log")[-1]["fields"]["txn"] == 199


def test_a_hyphen_means_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with RunLog("-") as log:
        log.on_event(run_event("loading", views=[]))
    assert json.loads(capsys.readouterr().err)["event"] == "loading"


def test_a_file_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        RunLog(str(tmp_path / "no" / "run.log"))
    assert caught.value.code == "can-not-write"


@pytest.mark.usefixtures("java_there")
@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
def test_a_run_that_can_not_connect_says_so_without_the_password(
    scheme: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # nobody listens there any more when we use it
    (tmp_path / "viewkeeper.toml").write_text(
        f'[sources.shop]\nurl = "{scheme}://keeper:{IN_URL}@127.0.0.1:{port}/shop"\n'
    )
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "v.sql").write_text("SELECT id FROM shop.orders")
    path = tmp_path / "run.log"
    words = ["--project", str(tmp_path), "--log", str(path), "--verbose"]
    code = execute(["run", "--for", "0.5", *words])
    assert code == 1
    *waiting, failed = lines(path)
    assert {line["event"] for line in waiting} <= {"source_waiting"}
    assert (failed["event"], failed["fields"]["error"]["source"]) == ("run_failed", "shop")
    shown = capfd.readouterr()
    for text in (shown.out, shown.err, path.read_text(encoding="utf-8")):
        assert PASSWORD not in text
        assert IN_URL not in text
