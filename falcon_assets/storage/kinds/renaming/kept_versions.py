"""Versions that publications replaced: in the staging location, where no instances are looked for.

Each is the instance as it was, a folder or a file named after its data version::

    STAGING/versions/CLUSTER/FEED/INSTANCE/VERSION

It arrives by one rename, after its successor is in place, and leaves by one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from falcon_assets.planning.eviction import StoredVersion
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.output_target import KeptAs


class KeptVersions:
    def __init__(self, store: ClusterStore) -> None:
        self._folder = Path(store.staging) / "versions" / store.cluster.name
        self._below = f"/{os.path.relpath(self._folder, store.path(''))}"

    def name(self, of: KeptAs, version: str) -> str:
        return f"{of.name}/{version}"

    def place(self, name: str) -> Path:
        return self._folder / name

    def of_feed(self, feed: str, instance: datetime | None = None) -> Iterator[StoredVersion]:
        own = self._folder / feed
        for folder in [self._folder / KeptAs(feed, instance).name] if instance else _entries(own):
            if of := KeptAs.named(f"{feed}/{folder.name}"):
                below = f"{self._below}/{feed}"
                for version in _entries(folder):
                    yield StoredVersion(of.instance, version.name, f"{below}/{folder.name}/{version.name}", below)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
