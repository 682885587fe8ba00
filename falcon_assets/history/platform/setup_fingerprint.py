"""A fingerprint of a process's settings and environment, to be compared by other processes."""

from __future__ import annotations

import hashlib
import platform
import sys
from pathlib import Path

from falcon_assets.settings import Settings

SETUP = "falcon/setup"
_OF_A_PROCESS = ("DAGSTER_", "_", "OLDPWD", "PWD", "SHLVL", "SPARK_ENV_LOADED", "PYSPARK_", "LINES", "COLUMNS")


def setup_fingerprint(settings: Settings) -> str:
    """Returns a digest of machine, interpreter, settings and environment; it reveals no value."""
    environ = {key: value for key, value in settings.environ.items() if not key.startswith(_OF_A_PROCESS)}
    interpreter = str(Path(sys.executable).resolve())  # `bin/python` and `bin/python3` are the same
    folders = (interpreter, sys.prefix, str(settings.home), str(settings.entity_defs))
    what = (platform.node(), *folders, sorted(environ.items()))  # two machines may have all folders alike
    return hashlib.blake2b(repr(what).encode(), digest_size=16).hexdigest()
