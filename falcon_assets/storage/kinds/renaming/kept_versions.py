"""Versions that publications replaced: in the staging location, where no instances are looked for.

Each is the instance as it was, a folder or a file named after its data version::

    STAGING/versions/CLUSTER/FEED/INSTANCE/VERSION

It arrives by one rename, after its successor is in place, and leaves by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from falcon_assets.planning.eviction import StoredVersion
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.output_target import KeptAs


class KeptVersions:
    def __init__(self, store: ClusterStore) -> None:
        self._files, self._folder = store.files, f"{store.staging}/versions/{store.cluster.name}"
        self._root = store.path("").rstrip("/")

    def name(self, of: KeptAs, version: str) -> str:
        return f"{of.name}/{version}"

    def place(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def of_feed(self, feed: str, instance: datetime | None = None) -> Iterator[StoredVersion]:
        own = f"{self._folder}/{feed}"
        folders = [self.place(KeptAs(feed, instance).name)] if instance else sorted(self._files.entries(own))
        for folder in folders:
            if of := KeptAs.named(f"{feed}/{folder.rpartition('/')[2]}"):
                for version in sorted(self._files.entries(folder)):
                    name = version.rpartition("/")[2]
                    yield StoredVersion(of.instance, name, version[len(self._root) :], own[len(self._root) :])
