"""Checks of FALCON_HOME, the folder of an installation's data on this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from falcon_assets.errors import SettingsError

NEEDED_BYTES = 512 * 1024 * 1024
"""Free space below which nothing starts: an empty database takes 40 MB, its write-ahead log up to 64 MB more."""


def require_space(home: Path, needed: int = NEEDED_BYTES) -> None:
    """Raises :class:`SettingsError` if FALCON_HOME cannot be written or has less than ``needed`` bytes free."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(home).free
    except OSError as error:
        raise SettingsError(f"FALCON_HOME {home} cannot be used: {error.strerror or error}") from error
    if free < needed:
        raise SettingsError(
            f"no disk space for FALCON_HOME {home}: {free >> 20} MiB are free, {needed >> 20} MiB are needed; "
            "free some or point FALCON_HOME to another disk"
        )
