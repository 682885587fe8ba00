"""Versions that publications replaced: they lie in the staging location, where nobody looks for instances.

Each is the instance as it was, a folder or a file named after its data version::

    STAGING/versions/CLUSTER/FEED/INSTANCE/VERSION

It comes there by one rename, after its successor is in place, and leaves by one.
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
    """Those in one store.

    Args:
        store: A local store.
    """

    def __init__(self, store: ClusterStore) -> None:
        self._folder = Path(store.staging) / "versions" / store.cluster.name
        self._below = f"/{os.path.relpath(self._folder, store.path(''))}"

    def name(self, of: KeptAs, version: str) -> str:
        """The name of a version in here."""
        return f"{of.name}/{version}"

    def place(self, name: str) -> Path:
        """Where the version of that name lies, or would."""
        return self._folder / name

    def of_feed(self, feed: str, instance: datetime | None = None) -> Iterator[StoredVersion]:
        """Those of a feed, or of one of its instances, in the order of their names.

        Raises:
            OSError: as the operating system says.
        """
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
