"""What a publication says of the versions that are kept beside it."""

from __future__ import annotations

from datetime import datetime

from falcon_assets.history.events.feed_instances import KeptVersion
from falcon_assets.model.feed import Feed
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of


def kept_versions(store: ClusterStore, feed: Feed, instance: datetime) -> tuple[KeptVersion, ...] | None:
    """The versions of an instance that are kept in its store; None: its feed keeps none.

    All of them, not what was replaced just now: what a run did that was killed is known with the next publication.

    Raises:
        StorageError: the store cannot be read.
    """
    if feed.versions is None:
        return None
    found = kind_of(store).kept_versions(feed.name, instance)
    return tuple(KeptVersion(one.version, store.shown(one.path)) for one in found)
