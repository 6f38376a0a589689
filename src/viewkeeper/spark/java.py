"""Whether this machine has a Java that Spark can run on, found out before a JVM is started for it.

Spark's own way of saying so is a stack trace after several seconds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from viewkeeper.errors import UsageError

JAVA_VERSION_MIN = 17
# Spark's launcher asks for this module by name; a Java image cut down to size may lack it.
REQUIRED_MODULE = "jdk.incubator.vector"
ANSWER_SECONDS_MAX = 30

_INSTALL_HINT = (
    f"install Java {JAVA_VERSION_MIN} or newer (on Debian: apt install openjdk-17-jre-headless) "
    "and set JAVA_HOME, or put java on the PATH"
)


def require_java(environment: Mapping[str, str] = os.environ) -> int:
    """The version of the Java that Spark will use; raises UsageError when Spark can't run on it."""
    java = _find_java(environment)
    wanted = _answer(java, f"--add-modules={REQUIRED_MODULE}", "-version")
    if wanted.returncode == 0:
        version = _version_in(wanted.stderr)
        if version is not None and version >= JAVA_VERSION_MIN:
            return version
    plain = _answer(java, "-version")
    version = _version_in(plain.stderr)
    if plain.returncode != 0 or version is None:
        raise _missing(f"{java} -version said: {_first_line(plain.stderr)}")
    if version < JAVA_VERSION_MIN:
        raise UsageError(
            "java-too-old",
            f"Spark can't run on Java {version}",
            detail=f"{java} is Java {version}; Spark needs {JAVA_VERSION_MIN} or newer",
            hint=_INSTALL_HINT,
        )
    raise UsageError(
        "java-incomplete",
        f"Spark can't run on the Java at {java}",
        detail=f"it lacks the module {REQUIRED_MODULE}: {_first_line(wanted.stderr)}",
        hint="use a full JDK or JRE of your distribution; " + _INSTALL_HINT,
    )


def _find_java(environment: Mapping[str, str]) -> str:
    """JAVA_HOME first, then the PATH: the order in which Spark's launcher looks."""
    home = environment.get("JAVA_HOME")
    if home:
        java = os.path.join(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise _missing(f"JAVA_HOME is {home}, and there is no program {java}")
        return java
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found is None:
        raise _missing("JAVA_HOME is not set, and there is no java on the PATH")
    return found


def _answer(java: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [java, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise _missing(f"{java} can't be run: {failure}") from None


def _version_in(text: str) -> int | None:
    """The feature release in what `java -version` prints: 17 for 17.0.15, 8 for 1.8.0_392."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0] if lines else "nothing"


def _missing(detail: str) -> UsageError:
    return UsageError(
        "java-missing", "there is no Java for Spark to run on", detail=detail, hint=_INSTALL_HINT
    )
