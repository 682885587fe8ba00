"""What all kinds of storage have in common whose instances are files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from falcon_assets.model.feed import Feed
from falcon_assets.storage.instances.availability import is_available, listed_instances
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from falcon_assets.storage.kinds.storage_kind import StorageKind


class FileStorage(StorageKind):
    """Instances that are files, or folders of files, on the store's file system."""

    def instances(self, feed: Feed, spans: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, str]]:
        return listed_instances(self.store, feed, self.store.cluster, spans)

    def is_available(self, feed: Feed, path: str) -> bool:
        return is_available(self.store, feed, path)

    def version(self, path: str, flag: str | None) -> DataVersion:
        return fingerprint(self.store, path, flag)
