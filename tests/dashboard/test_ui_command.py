"""``viewkeeper ui`` as people start and end it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request

import pytest

from viewkeeper.cli import execute


def started(folder, *words):
    command = [sys.executable, "-m", "viewkeeper", "ui", "--port", "0", "--json", *words]
    process = subprocess.Popen(
        [*command, "--project", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, json.loads(process.stdout.readline())["url"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.thorough
def test_it_serves_until_it_is_told_to_end(project, number):
    process, url = started(project.folder)
    with urllib.request.urlopen(f"{url}api/overview") as answer:
        assert json.load(answer)["frontier"] == 0
    # A live page is open, as it will be.
    stream = urllib.request.urlopen(f"{url}api/events")
    assert stream.readline() == b"retry: 1000\n"
    process.send_signal(number)
    out, told = process.communicate(timeout=600)
    assert (process.returncode, out, told) == (0, "", "")


@pytest.mark.thorough
def test_off_loopback_the_address_carries_a_token(project):
    process, url = started(project.folder, "--host", "0.0.0.0")
    process.terminate()
    process.communicate(timeout=600)
    address, _, token = url.partition("#token=")
    assert address.startswith("http://localhost:")
    assert len(token) >= 32


@pytest.mark.parametrize("words", [["--token", ""], ["--token", " "], []])
def test_an_empty_token_opens_no_dashboard(project, capsys, monkeypatch, words):
    if not words:
        monkeypatch.setenv("VIEWKEEPER_TOKEN", "")
    command = ["ui", "--port", "0", "--json", "--project", str(project.folder)]
    assert execute([*command, *words]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "empty-token"


@pytest.mark.outside
def test_the_dashboard_of_a_run_takes_a_token_too(project):
    words = ["run", "--ui-port", "0", "--ui-token", "a word of mine", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "viewkeeper", *words, "--project", str(project.folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        url, _, token = json.loads(process.stdout.readline())["url"].partition("#token=")
        assert token == "a word of mine"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{url}api/overview")
        bearing = urllib.request.Request(
            f"{url}api/overview", headers={"Authorization": f"Bearer {token}"}
        )
        assert urllib.request.urlopen(bearing).status == 200
    finally:
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("java_there")
@pytest.mark.parametrize("words", [["--ui-token", ""], []])
@pytest.mark.thorough
def test_an_empty_token_starts_no_run(project, capsys, monkeypatch, words):
    if not words:
        monkeypatch.setenv("VIEWKEEPER_TOKEN", "")
    command = ["run", "--ui-port", "0", "--json", "--project", str(project.folder)]
    assert execute([*command, *words]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "empty-token"


@pytest.mark.thorough
def test_a_port_that_is_taken_is_told(project, capsys):
    process, url = started(project.folder)
    port = url.rstrip("/").rpartition(":")[2]
    code = execute(["ui", "--port", port, "--json", "--project", str(project.folder)])
    process.terminate()
    process.communicate(timeout=600)
    assert code == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "port-taken"


def test_without_a_project_it_says_so(tmp_path, capsys):
    assert execute(["ui", "--json", "--project", str(tmp_path)]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "no-project"
