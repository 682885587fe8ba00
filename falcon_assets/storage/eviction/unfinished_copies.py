"""Copies that began and did not come to an end: which there are, and how what they staged goes.

A mark says so, from before a copy writes anything to the end of its publication::

    STAGING/copies/unfinished/KEY.SOURCE      the path of the instance, below the root

So what is unfinished is found without listing all that was ever replicated, and its instance is known although KEY is
a hash.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_folders import CopyFolders
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.files.path_lock import path_lock
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.publishing import OutputTarget
from falcon_assets.storage.staging import unfinished_folder, unfinished_mark


class UnfinishedCopy(NamedTuple):
    """What sources began to bring for one instance of a target."""

    path: str
    """The target's instance, below the root."""
    sources: tuple[str, ...]
    """Names of the source clusters, in order."""


def unfinished_copies(store: ClusterStore) -> list[UnfinishedCopy]:
    """All of a target, in order: those that are under way too, and late changes of instances that are published.

    Raises:
        StorageError: the store cannot be read.
    """
    found: dict[str, list[str]] = {}
    with driver_explained(store.cluster.name, "list what is staged"):
        for mark, path in _marks(store):
            source = mark.rpartition(".")[2]
            if unfinished_mark(store, path, source) == mark:  # nothing but what a copy wrote
                found.setdefault(path, []).append(source)
    return [UnfinishedCopy(path, tuple(sorted(found[path]))) for path in sorted(found)]


def remove_unfinished(store: ClusterStore, copy: UnfinishedCopy, flag: str | None) -> bool:
    """Removes what was staged for an instance that never came; False, and nothing removed, where something is there.

    On file systems it is moved aside: call :meth:`falcon_assets.storage.kinds.storage_kind.StorageKind.purge` at the
    end. The mark goes last, so that the same call again completes this one.

    Args:
        store: The target's.
        copy: Found there.
        flag: Name of the feed's availability flag.

    Raises:
        StorageError: a run is copying or publishing it, or the store refuses.
    """
    with driver_explained(store.cluster.name, f"remove what was staged of {copy.path}"):
        return _removed_aside(store, copy, flag) if store.is_local else _removed(store, copy)


def _marks(store: ClusterStore) -> Iterator[tuple[str, str]]:
    """The absolute path of each mark, and what it says."""
    if not store.is_local:
        store.fs.invalidate_cache()
    with suppress(FileNotFoundError):
        for mark in sorted(map(str, store.fs.ls(unfinished_folder(store), detail=False))):
            with suppress(FileNotFoundError):  # the copy has just ended
                yield mark, os.fsdecode(store.fs.cat_file(mark))


def _removed_aside(store: ClusterStore, copy: UnfinishedCopy, flag: str | None) -> bool:
    where = f"cluster {store.cluster.name!r}: cannot remove what was staged of {copy.path}"
    parts = [Path(CopyFolders(store, copy.path, source).folder) for source in copy.sources]
    copies, key = os.path.realpath(parts[0].parent.parent), parts[0].parent.name
    if os.path.realpath(parts[0].parent) != f"{copies}/{key}":
        raise StorageError(f"{where}: {parts[0].parent} is a symbolic link, and those are not followed: move it away")
    kind = kind_of(store)
    removal = kind.removal(flag)
    with ExitStack() as held:
        for part in parts:
            part.mkdir(parents=True, exist_ok=True)  # the lock of a part that went already lies beside it
            if not held.enter_context(path_lock(f"{part}.lock", 0)):
                raise StorageError(f"{where}: it is being copied by a run; it goes when that has ended")
        kind.recover(where, OutputTarget(copy.path, flag))
        if os.path.lexists(store.path(copy.path)):
            return False
        for source, part in zip(copy.sources, parts, strict=True):
            removal.set_aside(str(part))
            Path(unfinished_mark(store, copy.path, source)).unlink(missing_ok=True)
    with suppress(OSError):  # another source has begun
        parts[0].parent.rmdir()
    return True


def _removed(store: ClusterStore, copy: UnfinishedCopy) -> bool:
    """On other stores files are copied to their place: where there are some, they go as an instance does."""
    store.fs.invalidate_cache()
    if store.fs.exists(store.path(copy.path)):
        return False
    for source in copy.sources:
        with suppress(FileNotFoundError):
            store.files.remove_tree(CopyFolders(store, copy.path, source).folder)
        with suppress(FileNotFoundError):
            store.fs.rm_file(unfinished_mark(store, copy.path, source))
    return True
