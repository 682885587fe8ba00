"""Archiving: an instance gets to another place whole, verified, before the original may go."""

from __future__ import annotations

import errno
import os
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from falcon_assets.durable import make_folders, sync, sync_tree
from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.file_copy import Attributes, FileCopy
from falcon_assets.storage.copying.throttle import Throttle
from falcon_assets.storage.eviction.unfinished_archive import UnfinishedArchive
from falcon_assets.storage.instances.instance_files import all_files_of, list_instance

_Files: TypeAlias = Mapping[str, Mapping[str, Any]]
"""fsspec's entry of each file, by its name relative to the instance; "" for an instance that is a single file."""


def archive(source: ClusterStore, path: str, target: ClusterStore, archive_path: str, flag: str | None) -> None:
    """Sees to it that the instance at ``path`` is whole at ``archive_path``, as far as it is still there.

    Within one file system it is moved, in one step, and the original is gone. Else it is copied file by file, each file
    read back and compared, its size first, then its content, and the original stays for the caller to remove. A
    copy that was killed goes on where it was; where nobody goes on with it, :class:`UnfinishedArchive` removes it, as
    here where the original is gone. Hadoop's side files are not copied; links become what they lead to.

    Args:
        source: Where the instance lies.
        path: Its path there, below the root.
        target: Where it goes.
        archive_path: Its path there, below the root.
        flag: Name of the feed's availability flag, which comes last.

    Raises:
        StorageError: something else is at ``archive_path``, the instance changes meanwhile or links out of the root,
            or a file differs after it was copied. The original is then as it was.
        OSError: as the stores say.
    """
    original, place = source.path(path), target.path(archive_path)
    copy = UnfinishedArchive(target, archive_path, flag)
    if not source.fs.exists(original):
        copy.remove()
        return
    there = target.fs.exists(place)
    is_one_store = source.is_local and target.is_local and source.cluster.name == target.cluster.name
    if is_one_store and not there and not _has_links(original) and _moved(original, place):
        copy.remove()  # of an earlier pass, which could not move it
        return
    before = list_instance(source, path, flag)
    files = _files(source, original, flag)
    if there and target.is_local:
        _require_all(source, path, files, target, archive_path)
        return
    may_replace = copy.begin({*files, flag} if flag else files)
    _copy(source, files, copy, may_replace)
    if list_instance(source, path, flag) != before:
        raise _error(source, path, "it changed while it was copied")
    if flag and source.fs.isfile(f"{original}/{flag}"):
        _copy(source, {flag: source.fs.info(f"{original}/{flag}")}, copy, may_replace)
    if target.is_local:
        _put(Path(copy.base), Path(place), {*files, flag})
    copy.end()


def _moved(original: str, place: str) -> bool:
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    try:
        Path(original).rename(place)
    except OSError as error:
        if error.errno == errno.EXDEV:
            return False  # another disk is mounted between them
        raise
    return True


def _has_links(original: str) -> bool:
    """Whether a move might make links lead elsewhere."""
    return any(
        Path(parent, name).is_symlink() for parent, folders, files in os.walk(original) for name in [*folders, *files]
    )


def _files(store: ClusterStore, base: str, flag: str | None) -> _Files:
    return dict(all_files_of(store, base, flag))


def _require_all(source: ClusterStore, path: str, files: _Files, target: ClusterStore, archive_path: str) -> None:
    """Raises unless all of the original is in the archive already: by a pass that was killed before it removed it."""
    place = target.path(archive_path)
    for relative, entry in files.items():
        if not _is_same(source, entry, target, _join(place, relative)):
            what = f"{archive_path} on cluster {target.cluster.name!r} holds something else"
            raise _error(source, path, f"{what}, {relative or 'the file'} differs: move it away")


def _copy(source: ClusterStore, files: _Files, copy: UnfinishedArchive, may_replace: Container[str]) -> None:
    target = copy.store
    if "" not in files:
        target.fs.makedirs(copy.base, exist_ok=True)
    both = source.is_local and target.is_local
    copying = FileCopy(source.fs, target.fs, Throttle(None), Attributes(permission=both, times=both), by_size=False)
    for relative, entry in files.items():
        original, name = str(entry["name"]), _join(copy.base, relative)
        if _is_same(source, entry, target, name):
            continue
        if relative not in may_replace:
            raise _error(source, original, f"{_join(copy.path, relative)} is there already, and differs")
        try:
            copying.copy(original, name, source.fs.size(original))
        except StorageError as error:
            raise _error(source, original, str(error)) from error


def _is_same(source: ClusterStore, entry: Mapping[str, Any], target: ClusterStore, name: str) -> bool:
    """Whether the size, and then the content, are those of the original."""
    original = str(entry["name"])
    try:
        size = source.fs.size(original)
        if not target.fs.isfile(name) or target.fs.size(name) != size:
            return False
        return source.files.content(original, size) == target.files.content(name, size)
    except FileNotFoundError:
        return False


def _put(copied: Path, place: Path, wanted: set[str | None]) -> None:
    """Moves the copy to its place, durably, without what an earlier pass copied of files that went meanwhile."""
    for parent, _, names in os.walk(copied):
        for name in names:
            if os.path.relpath(Path(parent, name), copied) not in wanted:
                Path(parent, name).unlink()
    sync_tree(copied)
    make_folders(place.parent)
    copied.rename(place)
    sync(place.parent)


def _join(base: str, relative: str) -> str:
    return f"{base}/{relative}" if relative else base


def _error(store: ClusterStore, path: str, why: str) -> StorageError:
    return StorageError(f"cluster {store.cluster.name!r}: cannot archive {path}: {why}")
