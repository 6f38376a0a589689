"""Java is checked before anything is started; `java` is played by small shell scripts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from viewkeeper.errors import UsageError
from viewkeeper.spark.java import require_java


def java_home(folder: Path, script: str) -> dict[str, str]:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(folder), "PATH": os.environ["PATH"]}


def says(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("21", 21), ("24-ea", 24)])
def test_a_java_of_17_or_newer_will_do(tmp_path, text, version):
    assert require_java(java_home(tmp_path, says(text))) == version


@pytest.mark.parametrize(("text", "version"), [("11.0.2", 11), ("1.8.0_392", 8)])
def test_an_older_java_is_named_with_its_version(tmp_path, text, version):
    refuses_modules = 'case "$1" in --add-modules*) echo Unrecognized option >&2; exit 1;; esac'
    with pytest.raises(UsageError, match=f"Java {version}") as caught:
        require_java(java_home(tmp_path, f"{refuses_modules}\n{says(text)}"))
    assert caught.value.code == "java-too-old"
    assert "JAVA_HOME" in caught.value.hint


def test_a_java_without_the_module_that_spark_needs_is_refused(tmp_path):
    lacks = 'case "$1" in --add-modules*) echo "Module not found" >&2; exit 1;; esac'
    with pytest.raises(UsageError, match="can't run") as caught:
        require_java(java_home(tmp_path, f"{lacks}\n{says('17.0.1')}"))
    assert caught.value.code == "java-incomplete"
    assert "jdk.incubator.vector" in caught.value.detail


def test_no_java_on_the_path_is_said_at_once(tmp_path):
    with pytest.raises(UsageError) as caught:
        require_java({"PATH": str(tmp_path)})
    assert caught.value.code == "java-missing"


def test_a_java_home_without_java_is_not_passed_over(tmp_path):
    with pytest.raises(UsageError) as caught:
        require_java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    assert caught.value.code == "java-missing"
    assert str(tmp_path) in caught.value.detail


@pytest.mark.parametrize("script", ["exit 1", "echo hello >&2", "kill -9 $$"])
def test_a_java_that_does_not_answer_is_as_good_as_none(tmp_path, script):
    with pytest.raises(UsageError) as caught:
        require_java(java_home(tmp_path, script))
    assert caught.value.code == "java-missing"
