"""Old instances on their way out: removed a while after they were moved out of their place.

A reader that opened the folder just before it was moved still lists it, and would see a part of the old instance if
its files were removed at once (measured: a polling reader on a busy machine met this within a few hundred rewrites). So
what is replaced waits in ``STAGING/replaced/MINUTE/ID`` for a minute at least.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from pathlib import Path

from falcon_assets.storage.errors import DISK_FULL

_FOLDER = "replaced"
_MINUTE = 60


def make_ready(staging: Path) -> None:
    """Makes the staging location, and the folder in it without which :func:`set_aside` needs space on the disk.

    Raises:
        OSError: as the operating system says.
    """
    staging.mkdir(parents=True, exist_ok=True)
    (staging / _FOLDER).mkdir(exist_ok=True)


def set_aside(old: Path, staging: Path) -> None:
    """Moves ``old`` at once to where :func:`sweep` removes it later; on a full disk, all of the folder that it is in.

    Raises:
        OSError: ``old`` is not there, or as the operating system says.
    """
    while True:
        minute = staging / _FOLDER / str(_this_minute())
        try:
            minute.mkdir(parents=True, exist_ok=True)
            old.rename(minute / uuid.uuid4().hex)
        except FileNotFoundError:
            # This process slept for so long that the folder of its minute was swept meanwhile.
            if not os.path.lexists(old):
                raise
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            old.parent.rename(minute)  # there is no room for a new folder, but for a new name of one
            return
        else:
            return


def sweep(staging: Path) -> None:
    """Removes what was set aside more than a minute ago; what cannot be removed now is left to the next sweep."""
    folder = staging / _FOLDER
    minutes = [entry for entry in folder.iterdir() if entry.name.isdigit()] if folder.exists() else []
    for minute in minutes:
        if int(minute.name) < _this_minute() - 1:
            shutil.rmtree(minute, ignore_errors=True)


def _this_minute() -> int:
    return int(time.time() // _MINUTE)
