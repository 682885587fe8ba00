"""Files that Hadoop's committers leave beside the data: they go when an instance is published."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def is_side_file(name: str) -> bool:
    """Whether a file or folder of that base name is Hadoop's: checksums, the job's success marker, its scratch folder.

    Source: ``ChecksumFileSystem`` (``.NAME.crc``) and ``FileOutputCommitter`` (``_SUCCESS``, ``_temporary``).
    """
    return name in ("_SUCCESS", "_temporary") or (name.startswith(".") and name.endswith(".crc"))


def remove_side_files(folder: Path, keep: str | None) -> None:
    """Removes all side files below ``folder``, except the file ``keep`` directly in it.

    Raises:
        OSError: as the operating system says.
    """
    for parent, folders, files in os.walk(folder):
        for name in list(filter(is_side_file, folders)):
            folders.remove(name)
            shutil.rmtree(Path(parent, name))
        for name in filter(is_side_file, files):
            if not (name == keep and Path(parent) == folder):
                Path(parent, name).unlink()
