"""``viewkeeper completion``: the script asks the program, and the program answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from viewkeeper.cli import execute


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_for_this_program(shell, capsys):
    assert execute(["completion", shell, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["shell"] == shell
    assert "_VIEWKEEPER_COMPLETE" in told["script"]


def test_a_shell_that_is_not_known_is_refused(capsys):
    assert execute(["completion", "tcsh", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "command-line"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_and_options_with_it():
    """The real shell runs the script, and calls its function as it does when somebody hits tab."""
    program = Path(sys.executable).with_name("viewkeeper")
    asking = f"""
    eval "$({program} completion bash)"
    complete_with() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _viewkeeper_completion {program}; echo "${{COMPREPLY[*]}}"; }}
    complete_with viewkeeper his
    complete_with viewkeeper run --unt
    """
    environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "-c", asking], capture_output=True, text=True, env=environment, check=True
    )
    assert ran.stdout.split() == ["history", "--until-caught-up"]
