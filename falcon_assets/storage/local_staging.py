"""Folders that Spark reads and writes in place of a store that it cannot reach itself."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.path_lock import path_lock

_LOCK_SECONDS = 60.0


class LocalStaging:
    """Makes folders in ``area``, which driver and workers of Spark share with this process.

    A folder's lock ends with its process: the folder of a killed one is deleted when the next one is made.
    """

    def __init__(self, area: Path) -> None:
        self._area = area

    @classmethod
    def of(cls, store: ClusterStore) -> LocalStaging:
        return cls(Path(store.at(None).working) / "staged")

    def __str__(self) -> str:
        return str(self._area)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        self._area.mkdir(parents=True, exist_ok=True)
        self._remove_left()
        folder = self._area / uuid.uuid4().hex
        with path_lock(_lock(folder), _LOCK_SECONDS) as is_ours:
            if not is_ours:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(_lock(folder)))
            folder.mkdir()
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def _remove_left(self) -> None:
        for name in {entry.name.removesuffix(".lock") for entry in self._area.iterdir()}:
            with path_lock(_lock(self._area / name), 0) as is_left:
                if is_left:
                    shutil.rmtree(self._area / name, ignore_errors=True)


def _lock(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")
