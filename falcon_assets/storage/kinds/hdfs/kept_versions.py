"""Versions that publications replaced: ``STAGING/versions/CLUSTER/FEED/INSTANCE/VERSION``, as it was."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from falcon_assets.planning.eviction import StoredVersion
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.output_target import KeptAs


class HdfsVersions:
    def __init__(self, store: ClusterStore) -> None:
        self._fs, self._folder = store.fs, f"{store.staging}/versions/{store.cluster.name}"
        self._root = store.path("").rstrip("/")

    def name(self, of: KeptAs, version: str) -> str:
        return f"{of.name}/{version}"

    def place(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def of_feed(self, feed: str, instance: datetime | None = None) -> Iterator[StoredVersion]:
        own = f"{self._folder}/{feed}"
        for folder in [self.place(KeptAs(feed, instance).name)] if instance else self._entries(own):
            if of := KeptAs.named(f"{feed}/{folder.rpartition('/')[2]}"):
                for version in self._entries(folder):
                    name = version.rpartition("/")[2]
                    yield StoredVersion(of.instance, name, version[len(self._root) :], own[len(self._root) :])

    def _entries(self, folder: str) -> list[str]:
        try:
            return sorted(self._fs.ls(folder, detail=False))
        except FileNotFoundError:
            return []
