"""One output on its way from staging to its final path, and its repair after a crash.

Each final path has a folder of its own in the staging location, and each attempt to publish there a folder in that::

    STAGING/KEY/ATTEMPT/written    what the workflow writes
    STAGING/KEY/ATTEMPT/ready      the same, sealed: only the publisher knows this path
    STAGING/KEY/ATTEMPT/old        the old instance, moved out of its place
    STAGING/KEY/ATTEMPT/kept-as    the name of the version that the old instance is kept as, if it is

``ready`` leaves by the rename into the final path. So ``ready`` beside ``old`` means: the crash happened between the
two renames, and the old instance is moved back. ``old`` alone has its successor: it becomes a kept version, or its
attempt is set aside, as a whole because that needs no space on a full disk. Attempts have unique names because Spark
tasks of a killed run may go on writing for a while.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path

from falcon_assets.base.durable import make_folders, sync, sync_tree
from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.permissions import apply_permission
from falcon_assets.storage.instances.data_files import remove_side_files
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from falcon_assets.storage.kinds.renaming.kept_versions import KeptVersions
from falcon_assets.storage.kinds.renaming.set_aside import replaced
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import place_key

_REMOVE_ATTEMPTS = 3


class OutputSwap:
    """All methods are to be called with the lock of :attr:`key` held."""

    def __init__(self, store: ClusterStore, target: OutputTarget) -> None:
        self.target = target
        self.final = Path(store.path(target.path))
        # However a path is spelt: through a link to its parent it is the same instance.
        self.place = self.final.parent.resolve() / self.final.name
        self.key = place_key(os.path.relpath(self.place, store.path("")))
        self._store = store
        self._replaced = replaced(store)
        self._versions = KeptVersions(store)
        self._folder = Path(store.staging) / self.key
        self._attempt = self._folder / uuid.uuid4().hex
        self._ready = self._attempt / "ready"
        self.written = self._attempt / "written"

    def prepare(self) -> None:
        """Makes the folder of the attempt, and raises now what would make :meth:`publish` fail hours later."""
        self._check_place(is_folder=True if self.target.flag else None)
        make_folders(self._attempt)
        above = next(parent for parent in self.final.parents if parent.exists())
        if above.stat().st_dev != self._attempt.stat().st_dev:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(self._attempt))
        if not above.is_dir():
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(above))

    def publish(self, version: DataVersion | None = None) -> DataVersion:
        """Seals and completes what was written, then swaps it in; on any error the old instance stays.

        ``version`` is from a writer that has verified it and made sure that it is on disk.
        """
        if not os.path.lexists(self.written):
            raise self._error(f"nothing was written to {self.written}")
        self.written.rename(self._ready)
        version = self._complete(version)
        self._note_version(version)
        make_folders(self.final.parent)
        try:
            if os.path.lexists(self.final):
                self.final.rename(self._attempt / "old")
            self._ready.rename(self.final)
        except BaseException:
            self._restore(self._attempt)
            raise
        sync(self.final.parent)
        self._drop(self._attempt)
        if self.target.keeps:
            again = self._versions.place(self._versions.name(self.target.keeps, version.version))
            if os.path.lexists(again):
                self._replaced.take(again)  # it is the present one now
        return version

    def recover(self) -> None:
        """Puts an old instance back that a crash left without its successor, and removes all attempts."""
        attempts = list(self._folder.iterdir()) if self._folder.exists() else []
        for attempt in attempts:
            self._restore(attempt)
            self._drop(attempt)
        with suppress(OSError):  # the tasks of a killed run may still write there; the next run cleans up again
            self._folder.rmdir()

    def _restore(self, attempt: Path) -> None:
        old = attempt / "old"
        if os.path.lexists(old) and os.path.lexists(attempt / "ready") and not os.path.lexists(self.final):
            make_folders(self.final.parent)
            old.rename(self.final)
            sync(self.final.parent)

    def _note_version(self, new: DataVersion) -> None:
        """Notes what the old instance is kept as, before anything moves: recovery after a crash does the rest."""
        keeps, flag = self.target.keeps, self.target.flag
        if keeps is None or not (self.final / flag if flag else self.final).exists():
            return  # what is no whole instance is no version
        old = fingerprint(self._store, os.path.relpath(self.final, self._store.path("")), flag)
        if old.version != new.version:
            name = self._versions.name(keeps, old.version)
            make_folders(self._versions.place(name).parent)
            note = self._attempt / "kept-as"
            note.write_text(name)
            sync(note)

    def _drop(self, attempt: Path) -> None:
        if os.path.lexists(attempt / "old"):
            self._keep(attempt)
        if os.path.lexists(attempt / "old"):
            self._replaced.make()
            self._replaced.take(attempt)
        else:
            _remove(attempt)

    def _keep(self, attempt: Path) -> None:
        note = attempt / "kept-as"
        if not note.exists():
            return
        place = self._versions.place(note.read_text())
        if not os.path.lexists(place):
            make_folders(place.parent)
            (attempt / "old").rename(place)
            sync(place.parent)

    def _complete(self, version: DataVersion | None) -> DataVersion:
        ready, flag = self._ready, self.target.flag
        if ready.is_symlink():
            raise self._error(f"the output is a symbolic link: write a file or a folder to {self.written}")
        self._check_place(is_folder=ready.is_dir())
        if ready.is_dir():
            remove_side_files(ready, keep=flag)
            if flag is not None:
                (ready / flag).touch()
        elif flag is not None:
            raise self._error(f"the output is a single file, which cannot hold the availability flag {flag}")
        apply_permission(ready, self.target.permission)
        if version is not None:
            sync(ready)
            return version
        version = fingerprint(self._store, os.path.relpath(ready, self._store.path("")), flag)
        sync_tree(ready)
        return version

    def _check_place(self, is_folder: bool | None) -> None:
        if self.final.is_symlink():
            raise self._error(f"{self.final} is a symbolic link: move it away")
        if self.final.exists() and is_folder is not None and self.final.is_dir() != is_folder:
            here, new = ("a file", "a folder") if is_folder else ("a folder", "a single file")
            raise self._error(f"{self.final} is {here}, but the output is {new}: move it away")

    def _error(self, why: str) -> StorageError:
        return StorageError(f"cluster {self._store.cluster.name!r}: cannot publish {self.target.path}: {why}")


def _remove(path: Path) -> None:
    for _ in range(_REMOVE_ATTEMPTS):
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            return
        except OSError as error:
            # The tasks of a killed run still write there: harmless, and gone with the next run at the latest.
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise
