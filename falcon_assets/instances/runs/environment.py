"""The user and the software versions of this process, for records of its work."""

from __future__ import annotations

import platform
import sys
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from falcon_assets.history.events.record import storable


@cache
def run_environment() -> dict[str, str]:
    """Versions, and a hash of those of all packages, from the names of folders: reading their files takes a second."""
    folders = (one for one in map(Path, sys.path) if one.is_dir())
    installed = sorted({one.name.lower() for folder in folders for one in folder.glob("*.*-info")})
    return {
        "python": platform.python_version(),
        "pyspark": version("pyspark"),
        "falcon-assets": version("falcon-assets"),
        "packages": sha256(storable("\n".join(installed)).encode()).hexdigest()[:16],
    }
