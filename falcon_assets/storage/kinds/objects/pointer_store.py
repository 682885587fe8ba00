"""The flags that name the present version of an instance, on their store: they change by one write, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from falcon_assets.planning.eviction import StoredVersion
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.version_pointer import VersionPointer
from falcon_assets.storage.kinds.objects.conditional_writes import conditional_writes
from falcon_assets.storage.output_target import KeptAs


class StoredFlag(NamedTuple):
    content: bytes | None
    etag: str | None
    """None: there is no flag, or the store has no etags."""

    @property
    def pointer(self) -> VersionPointer | None:
        return VersionPointer.decode(self.content) if self.content else None


class PointerStore:
    """The flags of the instances on one store; methods raise OSError.

    Versions of a feed are found by a note for each instance that keeps some::

        STAGING/versions/CLUSTER/FEED/INSTANCE    the path of the instance, and the name of its flag
    """

    def __init__(self, store: ClusterStore) -> None:
        self._store, self._fs = store, store.fs
        self._notes = f"{store.staging}/versions/{store.cluster.name}"

    def read(self, path: str, flag: str) -> StoredFlag:
        place, writes = self._place(path, flag), conditional_writes(self._store)
        self._store.files.refresh()
        with suppress(FileNotFoundError):
            etag = writes.etag(place) if writes else None
            # Its content after its etag: where it changes in between, nobody can replace it by that etag.
            return StoredFlag(self._fs.cat_file(place), etag)
        return StoredFlag(None, None)

    def replace(self, path: str, flag: str, before: StoredFlag, pointer: VersionPointer) -> bool:
        """Writes the flag; False, and nothing done, if it is not any more as ``before``."""
        place, content, writes = self._place(path, flag), pointer.encode(), conditional_writes(self._store)
        if writes is None:
            if self.read(path, flag).content != before.content:
                return False
            self._fs.pipe_file(place, content)
            return True
        return writes.write(place, content, before.etag) is not None or self.read(path, flag).content == content

    def note(self, keeps: str, path: str, flag: str) -> None:
        self._fs.pipe_file(f"{self._notes}/{keeps}", json.dumps([path, flag]).encode())

    def forget(self, keeps: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm_file(f"{self._notes}/{keeps}")

    def kept(self, feed: str, instance: datetime | None = None) -> list[StoredVersion]:
        self._store.files.refresh()
        names = (
            [KeptAs(feed, instance).name]
            if instance
            else [str(name)[len(self._notes) + 1 :] for name in sorted(self._fs.find(f"{self._notes}/{feed}"))]
        )
        with ThreadPoolExecutor(self._store.files.requests) as pool:
            return [version for found in pool.map(lambda name: list(self._kept_as(name)), names) for version in found]

    def _kept_as(self, name: str) -> Iterator[StoredVersion]:
        of = KeptAs.named(name)
        try:
            path, flag = json.loads(self._fs.cat_file(f"{self._notes}/{name}"))
            content = self._fs.cat_file(self._place(path, flag))
        except (FileNotFoundError, ValueError):
            return
        pointer = VersionPointer.decode(content)
        if of and pointer:
            for version, folder in sorted(pointer.kept.items()):
                yield StoredVersion(of.instance, version, f"{path}/{folder}", path)

    def _place(self, path: str, flag: str) -> str:
        return f"{self._store.path(path)}/{flag}"
