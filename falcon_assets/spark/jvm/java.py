"""The machine's Java, which Spark needs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from falcon_assets.errors import SettingsError

OLDEST = 17
"""The oldest Java that Spark 4 runs on (source: Spark's documentation, "Downloading")."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_ANSWER_SECONDS = 20


def require_java(environ: Mapping[str, str]) -> tuple[str, int]:
    """Makes sure that Spark will find a Java that it can run on: ``JAVA_HOME``'s, else the first on ``PATH``.

    Returns:
        Its path, and its version.

    Raises:
        SettingsError: none is there, it does not answer, or it is too old.
    """
    home = environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java", path=environ.get("PATH", ""))
    where = f"JAVA_HOME is {home}" if home else "JAVA_HOME is not set"
    if found is None or not Path(found).is_file():
        raise SettingsError(
            f"Spark needs Java {OLDEST} or newer and none was found ({where}): "
            f"install one, for example openjdk-{OLDEST}-jre-headless, or set JAVA_HOME"
        )
    version = _version_of(found)
    if version is None:
        raise SettingsError(f"Spark needs Java {OLDEST} or newer, but {found} does not tell its version ({where})")
    if version < OLDEST:
        raise SettingsError(f"Spark needs Java {OLDEST} or newer, but {found} is Java {version} ({where})")
    return found, version


@lru_cache(maxsize=8)
def _version_of(java: str) -> int | None:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    return int(match[1]) if match else None
