"""The files of a mounted file system: its paths are those of the operating system."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil

from falcon_assets.base.durable import make_folders, sync, sync_tree
from falcon_assets.planning.eviction import Space
from falcon_assets.storage.files.entry import modified_at
from falcon_assets.storage.files.file_access import FileAccess, is_side_file, mode_of
from falcon_assets.storage.files.path_lock import path_lock

LOCAL_BLOCK = 128 << 10
"""A processor's own cache holds three, so that a block is read, hashed and written before it leaves the cache."""
SMALL = 64 << 10
"""Files up to this size are read by one call."""


_OWN = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})


@lru_cache(maxsize=256)
def _is_own(folder: str) -> bool:
    place = Path(os.path.realpath(folder))
    mounts = [one for one in psutil.disk_partitions(all=True) if place.is_relative_to(one.mountpoint)]
    return bool(mounts) and max(mounts, key=lambda one: len(one.mountpoint)).fstype in _OWN


class LocalFiles(FileAccess):
    requests = 1
    cannot = frozenset()
    marks_at_sight = True
    looks_by_request = False
    tells_changes = True

    def refresh(self) -> None:
        pass  # nothing is remembered

    def real(self, path: str) -> str:
        return real_path(path)

    def endpoint(self, url: str) -> str:
        return url

    def is_mounted(self, root: str) -> bool:
        return os.path.isdir(root)  # noqa: PTH112 - a text

    def is_own(self, folder: str) -> bool:
        return _is_own(folder)

    def is_empty(self, root: str) -> bool:
        with os.scandir(root) as entries:
            return next(entries, None) is None

    def space(self, root: str) -> Space:
        found = os.statvfs(root)
        return Space((found.f_blocks - found.f_bfree) * found.f_frsize, found.f_bavail * found.f_frsize)

    def stamp(self, path: str) -> object | None:
        status = os.stat(path)  # noqa: PTH116 - a text
        return status.st_dev, status.st_ino, status.st_mtime_ns

    def put_new(self, path: str, content: bytes) -> bytes:
        new = f"{path}.{uuid.uuid4().hex}"
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            try:
                os.write(descriptor, content)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            try:
                os.link(new, path)
            except FileExistsError:
                pass
            except OSError:  # a file system without links
                if not os.path.lexists(path):
                    os.replace(new, path)  # noqa: PTH105 - a text
        finally:
            with suppress(FileNotFoundError):
                os.unlink(new)  # noqa: PTH108 - a text
        return self.small(path, len(content))

    def changed_at(self, entry: Mapping[str, Any]) -> datetime | None:
        if entry.get("islink") and entry.get("type") != "directory":
            return None  # a listing has the time of the link, not that of the folder behind it
        times = [modified_at(entry)]
        if isinstance(entry.get("created"), float):
            # Here it is the time of the last change of any kind, which nobody can set back.
            times.append(datetime.fromtimestamp(entry["created"], UTC))
        return max(filter(None, times), default=None)

    def unlinked(self, folder: str, only: str | None = None) -> Iterable[tuple[str, bool]]:
        if only is not None:
            mode = os.lstat(f"{folder}/{only}").st_mode
            return [(only, stat.S_ISDIR(mode))] if stat.S_ISDIR(mode) or stat.S_ISREG(mode) else []
        with os.scandir(folder) as entries:
            return list(filter(None, map(_unlinked, entries)))

    def blocks(self, path: str, size: int, at_most: Callable[[int], int] = int) -> Iterator[bytes | memoryview]:
        step = at_most(LOCAL_BLOCK)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # A small file is read by what it needs: making a large buffer for it would take longer than reading it.
            left = os.fstat(descriptor).st_size + 1
            if left <= SMALL:
                while read := os.read(descriptor, min(left, step)):
                    yield memoryview(read)
                return
            buffer = memoryview(bytearray(step))
            while count := os.readv(descriptor, [buffer]):
                yield buffer[:count]
        finally:
            os.close(descriptor)

    def small(self, path: str, size: int) -> bytes:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, size + 1)
        finally:
            os.close(descriptor)

    def version(self, path: str) -> str:
        return stat_version(os.stat(path))  # noqa: PTH116 - a text

    def without_links(self, base: str, left_out: Callable[[str], bool]) -> Mapping[str, tuple[int, str]] | None:
        if not os.path.isdir(base):  # noqa: PTH112 - a text
            return None
        found: dict[str, tuple[int, str]] = {}
        folders = [""]
        while folders:
            prefix = folders.pop()
            with os.scandir(f"{base}/{prefix}") as entries:
                for entry in entries:
                    if left_out(entry.name):
                        continue
                    if entry.is_symlink():
                        return None
                    if entry.is_dir():
                        folders.append(f"{prefix}{entry.name}/")
                    elif entry.is_file():
                        status = entry.stat()
                        found[prefix + entry.name] = status.st_size, stat_version(status)
        return found

    def remove(self, paths: Iterable[str]) -> None:
        if found := list(paths):
            self.fs.rm(found)

    def remove_tree(self, path: str) -> None:
        self.fs.rm(path, recursive=True)

    def discard(self, path: str) -> None:
        """Removes without :func:`shutil.rmtree`'s costly guard against links, as no other process knows the paths."""
        with suppress(OSError):
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                os.unlink(path)  # noqa: PTH108 - called for many thousands
                return
            for entry in _on_disk(path):
                if entry.is_dir(follow_symlinks=False):
                    self.discard(entry.path)
                else:
                    with suppress(OSError):
                        os.unlink(entry)  # noqa: PTH108 - as above
            os.rmdir(path)  # noqa: PTH106 - as above

    def entries(self, folder: str) -> list[str]:
        try:
            return [entry.path for entry in _on_disk(folder)]
        except FileNotFoundError:
            return []

    def is_link(self, path: str) -> bool:
        return os.path.islink(path)  # noqa: PTH114 - a text

    def has_links(self, path: str) -> bool:
        return any(
            self.is_link(f"{parent}/{name}") for parent, folders, files in os.walk(path) for name in [*folders, *files]
        )

    def locked(self, path: str, seconds: float) -> AbstractContextManager[bool]:
        return path_lock(path, seconds)

    def move(self, path: str, place: str) -> None:
        if os.path.lexists(place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), place)
        os.rename(path, place)  # noqa: PTH104 - a text

    def require_moves(self, path: str, place: str) -> None:
        above = next(parent for parent in Path(place).parents if parent.exists())
        if above.stat().st_dev != os.stat(path).st_dev:  # noqa: PTH116 - a text
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
        if not above.is_dir():
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(above))

    def link(self, path: str, place: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(place)  # noqa: PTH108 - a text
        try:
            os.link(path, place)
        except OSError:  # the folder is missing, or this file system has no links
            os.makedirs(place.rpartition("/")[0], exist_ok=True)  # noqa: PTH103 - a text
            try:
                os.link(path, place)
            except OSError:
                shutil.copy2(path, place)

    def write(self, path: str, content: bytes) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)

    def make_folder(self, path: str) -> None:
        make_folders(Path(path))

    def sync(self, path: str) -> None:
        sync(Path(path))

    def sync_tree(self, path: str) -> None:
        sync_tree(Path(path))

    def set_permission(self, path: str, permission: str | None) -> None:
        if permission is None or permission == "*":
            return
        below = ((parent, name) for parent, folders, files in os.walk(path) for name in [*folders, *files])
        for one in [path, *(f"{parent}/{name}" for parent, name in below)]:
            if not self.is_link(one):
                is_folder = os.path.isdir(one)  # noqa: PTH112 - a text
                os.chmod(one, mode_of(permission, is_folder=is_folder))  # noqa: PTH101 - a text

    def remove_side_files(self, folder: str, keep: str | None) -> None:
        for parent, folders, files in os.walk(folder):
            for name in list(filter(is_side_file, folders)):
                folders.remove(name)
                shutil.rmtree(f"{parent}/{name}")
            for name in filter(is_side_file, files):
                if not (name == keep and parent == folder):
                    os.unlink(f"{parent}/{name}")  # noqa: PTH108 - a text


def real_path(path: str) -> str:
    """As :func:`os.path.realpath`, which asks for each folder above; the kernel knows it of what is open."""
    if sys.platform != "linux" or ".." in path or not path.startswith("/"):
        return os.path.realpath(path)
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        above, _, name = path.rstrip("/").rpartition("/")
        if not name or os.path.islink(path):  # noqa: PTH114 - a text
            return os.path.realpath(path)
        return f"{real_path(above or '/').rstrip('/')}/{name}"
    except OSError:
        return os.path.realpath(path)
    try:
        found = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - a text
    except OSError:  # no /proc
        return os.path.realpath(path)
    finally:
        os.close(descriptor)
    # Of what was removed meanwhile it says so behind the name.
    return os.path.realpath(path) if not found.startswith("/") or found.endswith(" (deleted)") else found


def stat_version(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}"


def _unlinked(entry: os.DirEntry[str]) -> tuple[str, bool] | None:
    if entry.is_dir(follow_symlinks=False):
        return entry.name, True
    return (entry.name, False) if entry.is_file(follow_symlinks=False) else None


def _on_disk(folder: str) -> list[os.DirEntry[str]]:
    """Returns the entries in their order on the disk: in another one, removing takes a fifth longer on ext4."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=os.DirEntry.inode)
