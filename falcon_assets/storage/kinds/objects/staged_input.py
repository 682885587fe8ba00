"""Instances of object stores, copied for a Spark that cannot reach the store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from fsspec.implementations.local import LocalFileSystem

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_task import join
from falcon_assets.storage.copying.file_copy import Attributes, CopiedFile, Throttle
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.files.remote_files import entry_version
from falcon_assets.storage.instances.data_files import shown
from falcon_assets.storage.instances.data_version import DataVersion, version_of
from falcon_assets.storage.instances.instance_files import InstanceFiles, files_of
from falcon_assets.storage.kinds.reading import ReadableFolder, ReadableInstance
from falcon_assets.storage.kinds.renaming.file_copy import MountedFileCopy
from falcon_assets.storage.local_staging import LocalStaging

_ATTEMPTS = 3
Listed: TypeAlias = Mapping[str, Mapping[str, Any]]


class _StagedFiles(InstanceFiles):
    def listed_now(self) -> dict[str, int]:
        return dict(self.sizes)


@contextmanager
def staged_input(store: ClusterStore, path: str, flag: str | None, staging: LocalStaging) -> Iterator[ReadableInstance]:
    """Copies the instance at ``path`` to a folder of this machine, which is removed at the end.

    It is whole and of one version: the flag is there after the listing, and the listing is the same after copying.
    Entering raises StorageError if it is not complete (any more), keeps changing, or cannot be copied.
    """
    with ExitStack() as held:
        with driver_explained(store.cluster.name, f"read {path}"):
            folder = held.enter_context(staging.folder())
            found = _staged(store, path, flag, folder)
        yield found


def _staged(store: ClusterStore, path: str, flag: str | None, folder: Path) -> ReadableInstance:
    for attempt in range(_ATTEMPTS):
        listed = _listed(store, path, flag)
        if flag and not store.fs.exists(f"{store.path(path)}/{flag}"):
            raise StorageError(f"cluster {store.cluster.name!r}: {path} is not complete any more: {flag} was removed")
        place = str(folder / str(attempt) / path.rstrip("/").rpartition("/")[2])  # its ending may say how it is packed
        failed, copied = None, list[CopiedFile]()
        try:
            copied = _copied(store, listed, place)
        except (OSError, StorageError) as error:  # of an object that became smaller it asks for what is not there
            failed = error
        if _versions(_listed(store, path, flag)) == _versions(listed):
            if failed:
                raise failed
            sizes = {name: int(entry["size"]) for name, entry in listed.items()}
            files = _StagedFiles(store, path, flag, sizes)
            return ReadableInstance(_version(listed, copied), (ReadableFolder(f"file://{place}", files),))
    raise StorageError(f"cluster {store.cluster.name!r}: {path} keeps changing while it is read")


def _listed(store: ClusterStore, path: str, flag: str | None) -> Listed:
    try:
        listed = dict(files_of(store, store.path(path), flag))
    except FileNotFoundError:
        raise StorageError(f"cluster {store.cluster.name!r}: there is nothing at {path}") from None
    if wrong := [name for name in listed if name and not all(name.split("/"))]:
        where = f"cluster {store.cluster.name!r}: cannot read {path}"
        raise StorageError(f"{where}: no folder can hold {shown(wrong[0])}, which has two slashes: rename the object")
    return listed


def _versions(listed: Listed) -> dict[str, tuple[int, str]]:
    return {name: (entry["size"], entry_version(entry)) for name, entry in listed.items()}


def _copied(store: ClusterStore, listed: Listed, place: str) -> list[CopiedFile]:
    cancellation = current_cancellation()
    copy = MountedFileCopy(store.fs, LocalFileSystem(), Throttle(None), Attributes(), False)
    Path(place).parent.mkdir(parents=True)

    def one(name: str) -> CopiedFile:
        cancellation.check()
        return copy.copy(str(listed[name]["name"]), join(place, name), int(listed[name]["size"]))

    if "" not in listed:
        Path(place).mkdir()
    with ThreadPoolExecutor(store.files.requests) as pool:
        return list(pool.map(one, listed))


def _version(listed: Listed, copied: Iterable[CopiedFile]) -> DataVersion:
    return version_of(
        (
            os.fsencode(name),
            int(entry["size"]),
            str(entry["ETag"]).encode() if entry.get("ETag") else bytes.fromhex(one.checksum),
        )
        for (name, entry), one in zip(listed.items(), copied, strict=True)
    )
