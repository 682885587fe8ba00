"""Kept versions, for the record of a publication."""

from __future__ import annotations

from datetime import datetime

from falcon_assets.history.events.feed_instances import KeptVersion
from falcon_assets.model.feed import Feed
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of


def kept_versions(store: ClusterStore, feed: Feed, instance: datetime) -> tuple[KeptVersion, ...] | None:
    """None: its feed keeps none.

    All, not only the version just replaced: a run may have been killed before it recorded one. Raises StorageError.
    """
    if feed.versions is None:
        return None
    found = kind_of(store).kept_versions(feed.name, instance)
    return tuple(KeptVersion(one.version, store.shown(one.path)) for one in found)
