"""The user and the software versions of this process, for records of its work."""

from __future__ import annotations

import platform
from functools import cache
from hashlib import sha256
from importlib.metadata import distributions, version

from falcon_assets.history.events.record import storable


@cache
def run_environment() -> dict[str, str]:
    """Versions, and a hash of those of all installed packages."""
    installed = sorted({f"{one.name.lower()} {one.version}" for one in distributions() if one.name})
    return {
        "python": platform.python_version(),
        "pyspark": version("pyspark"),
        "falcon-assets": version("falcon-assets"),
        "packages": sha256(storable("\n".join(installed)).encode()).hexdigest()[:16],
    }
