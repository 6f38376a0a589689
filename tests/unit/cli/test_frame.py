"""What holds for every command: exit codes, errors, output for people and for programs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from viewkeeper import __version__
from viewkeeper.cli import execute
from viewkeeper.errors import SourceError
from viewkeeper.lab import running

HEAVY = ("pyspark", "pyarrow", "pandas", "deltalake", "sqlglot", "viewkeeper.simulator")


def test_alone_it_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute([]) == 0
    assert "lab" in capsys.readouterr().out


def test_a_group_of_commands_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["lab"]) == 0
    assert "swarm" in capsys.readouterr().out


def test_it_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["--version"]) == 0
    assert capsys.readouterr().out == f"viewkeeper {__version__}\n"


def test_nothing_heavy_is_loaded_before_a_command_runs() -> None:
    code = f"import sys, viewkeeper.cli; print([m for m in {HEAVY!r} if m in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout == "[]\n"


@pytest.mark.parametrize(
    "words",
    [["nothing-like-it"], ["lab", "run"], ["lab", "run", "-p", "sweep", "--seed", "x"]],
)
def test_a_wrong_command_line_is_told_with_exit_code_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("Error: ")
    assert "Hint: see `viewkeeper" in told.err


def test_with_json_an_error_is_a_document_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["lab", "run", "--protocol", "swep", "--json"]) == 2
    told = capsys.readouterr()
    error = json.loads(told.out)["error"]
    assert error["code"] == "unknown-protocol"
    assert error["hint"] == "did you mean sweep?"
    assert set(error) == {"family", "code", "message", "detail", "hint"}
    assert told.err == ""


def _raising(error: BaseException) -> object:
    def raise_it(*_: object, **__: object) -> None:
        raise error

    return raise_it


def test_a_source_that_fails_is_told_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = SourceError("gone", "shop is gone", source="shop", retryable=True, hint="start it")
    monkeypatch.setattr(running, "run", _raising(broken))
    assert execute(["lab", "run", "-p", "sweep"]) == 1
    assert capsys.readouterr().err == "Error: shop is gone [gone]\nHint: start it\n"


def test_a_traceback_is_shown_with_verbose_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "run", _raising(ZeroDivisionError("by nought")))
    for words in (["--verbose", "lab", "run", "-p", "sweep"], ["lab", "run", "-p", "sweep"]):
        assert execute(words) == 1
        err = capsys.readouterr().err
        assert "ZeroDivisionError: by nought" in err
        assert ("Traceback" in err) == ("--verbose" in words)
    assert execute(["lab", "run", "-p", "sweep", "--verbose"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_one_line_and_exit_code_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "run", _raising(KeyboardInterrupt()))
    assert execute(["lab", "run", "-p", "sweep"]) == 130
    assert capsys.readouterr().err == "Interrupted.\n"


def test_a_reader_that_goes_away_is_no_error_to_talk_about() -> None:
    command = [sys.executable, "-c", "from viewkeeper.cli import main; main()", "lab", "show"]
    process = subprocess.Popen(
        [*command, "sweep-figure-5", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert told == b""


def test_there_are_no_colours_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert execute(["lab", "show", "naive-anomaly"]) == 0
    assert "\x1b" not in capsys.readouterr().out
