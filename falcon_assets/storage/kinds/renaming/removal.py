"""Removing on file systems whose rename is atomic: out of the place at once, flag and all; off the disk later.

Removed data waits until no reader can be listing it any more: see
:mod:`falcon_assets.storage.kinds.renaming.set_aside`.
"""

from __future__ import annotations

import os
import stat
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial

from filelock import lock_descriptor

from falcon_assets.base.file_locks import opened
from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredLocation
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import DISK_FULL
from falcon_assets.storage.files.file_access import is_side_file
from falcon_assets.storage.files.path_lock import acquire, path_lock, release
from falcon_assets.storage.kinds.removing import FileRemoval, parent_and_name
from falcon_assets.storage.kinds.renaming.output_swap import OutputSwap
from falcon_assets.storage.kinds.renaming.set_aside import BATCH_LOCK, evicted
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import copies_folder, place_key

_LINKS_OF_EMPTY = 2
"""Link count without subfolders, if the file system has one: read in a quarter of the time of a refused rmdir."""

# Paths are texts here: a pass removes many thousands of small instances, and must be about as fast as rm -rf.


class RenameRemoval(FileRemoval):
    """Moves data aside in one step; a run that writes there puts its instance into the place afterwards."""

    def __init__(self, store: ClusterStore, flag: str | None) -> None:
        super().__init__(store, flag)
        self._area = evicted(store)
        self._move: Callable[[str, str], None] = store.files.move
        self._batch: str | None = None
        self._moved = 0

    def set_aside(self, place: str) -> None:
        while True:
            try:
                if self._batch is None:
                    self._batch = self._new_batch()
                self._move(place, f"{self._batch}/{self._moved}")
            except FileNotFoundError:
                if not self._fs.lexists(place):
                    self._store.require_root(afresh=True)  # else nobody knows whether it went
                    return
                self._batch = None  # another pass purged the batch of this one while it slept
            else:
                self._moved += 1
                return

    def _new_batch(self) -> str:
        self._store.require_root(afresh=True)
        return self._area.new_batch()

    def _is_pruned(self, folder: str) -> bool:
        try:
            self._fs.rmdir(folder)  # which is refused where something is in it
        except FileNotFoundError:
            raise
        except OSError:
            return False
        return True


class LockingRemoval(RenameRemoval):
    """Keeps runs away by their locks."""

    def __init__(self, store: ClusterStore, flag: str | None) -> None:
        super().__init__(store, flag)
        self._move = os.rename  # nobody else makes names in a batch
        self._root, self._staging = store.path(""), store.staging
        self._area.make()
        self._last_parent: tuple[str, str, str] | None = None

    def place(self, location: StoredLocation) -> str:
        """Returns the absolute path, below the real folder of its prefix without a link in between."""
        parent, name = parent_and_name(self._store, location)
        if self._last_parent is None or self._last_parent[:2] != (location.prefix, parent):
            expected = os.path.realpath(self._store.path(location.prefix)).rstrip("/") + parent[len(location.prefix) :]
            if os.path.realpath(self._store.path(parent)).rstrip("/") != expected:
                raise self._error(location, "there is a symbolic link on the way, and those are not followed")
            self._last_parent = (location.prefix, parent, expected)
        place = f"{self._last_parent[2]}/{name}"
        with suppress(FileNotFoundError):
            if stat.S_ISLNK(os.lstat(place).st_mode):
                raise self._error(location, "it is a symbolic link, and those are not followed: move it away")
        return place

    @contextmanager
    def held(self, location: StoredLocation) -> Iterator[str]:
        """Repairs what a killed publication left, too."""
        place = self.place(location)
        if location.kind != "data":
            yield place
            return
        key = place_key(place[len(self._root) :].lstrip("/"))
        lock = f"{self._staging}/{key}.lock"
        held = self._acquired(lock)
        if held is None:
            raise self._error(location, "it is being written by a run; it goes when that has ended")
        try:
            if os.path.exists(f"{self._staging}/{key}"):  # noqa: PTH110 - see above
                OutputSwap(self._store, OutputTarget(location.path, self._flag), location.place).recover()
            with self._copies_held(location) if self._has_copies else nullcontext():
                yield place
        finally:
            held()

    def measure(self, place: str) -> tuple[int, int]:
        """Counts links without following them."""
        try:
            return _measured(place, self._flag)
        except FileNotFoundError:
            return 0, 0
        except NotADirectoryError:
            return 1, os.lstat(place).st_size

    def _is_pruned(self, folder: str) -> bool:
        return os.stat(folder).st_nlink <= _LINKS_OF_EMPTY and super()._is_pruned(folder)  # noqa: PTH116 - see above

    def _acquired(self, lock: str) -> Callable[[], None] | None:
        """Takes a lock and returns its release; None if others hold it.

        The file of the lock becomes another name of a file that this pass has locked: that takes a third of the time of
        making one. Other processes find it locked, and do not own it once the name is gone.
        """
        try:
            if self._batch is None:
                self._batch = self._new_batch()
            os.link(f"{self._batch}/{BATCH_LOCK}", lock)
        except OSError:  # there is one, of a run or left by a killed one; there are no links here; or the disk is full
            descriptor = acquire(lock, 0)
            return None if descriptor is None else partial(release, descriptor, lock)
        return partial(_remove_name, lock)

    def _new_batch(self) -> str:
        batch = super()._new_batch()
        descriptor = opened(f"{batch}/{BATCH_LOCK}", new=True)
        weakref.finalize(self, os.close, descriptor)  # no sooner: it may have another name while the next batch is made
        lock_descriptor(descriptor, blocking=False)
        return batch

    @contextmanager
    def _copies_held(self, location: StoredLocation) -> Iterator[None]:
        copies: list[str] = []
        with suppress(FileNotFoundError), os.scandir(copies_folder(self._store, location.path)) as entries:
            copies = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
        with ExitStack() as held:
            for copy in copies:
                if not held.enter_context(path_lock(f"{copy}.lock", 0)):
                    raise self._error(location, "it is being copied by a run; it goes when that has ended")
            yield

    def set_aside(self, place: str) -> None:
        try:
            super().set_aside(place)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            # It is a batch of its own: a full disk has no space for a new folder, and this is to free it.
            os.utime(place, follow_symlinks=False)  # how long readers may still list it counts from here
            self._area.take_folder(place)

    def _error(self, location: StoredLocation, why: str) -> StorageError:
        return StorageError(f"cluster {self._store.cluster.name!r}: cannot evict {location.place}: {why}")


def _remove_name(lock: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(lock)  # noqa: PTH108 - see above


def _measured(folder: str, flag: str | None) -> tuple[int, int]:
    files, size = 0, 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_side_file(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                more, their_size = _measured(entry.path, None)
                files, size = files + more, size + their_size
            elif entry.name != flag:
                files, size = files + 1, size + entry.stat(follow_symlinks=False).st_size
    return files, size
