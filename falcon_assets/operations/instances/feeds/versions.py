"""The versions of an instance of a feed: which there are, and where the instance lies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from falcon_assets.catalog.store import EntityStore
from falcon_assets.ledger.folding.kept_versions import versions_of
from falcon_assets.ledger.folding.version_rows import VersionRow
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.auditing import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.instances.subject import find_subject
from falcon_assets.orchestration.platform.data_roots import roots_of
from falcon_assets.planning.instances.instance_paths import InstancePaths
from falcon_assets.settings import Settings
from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import StorageKind


class FeedInstance(NamedTuple):
    """An instance of a feed, and where it lies."""

    feed: Feed
    cluster: str
    instance: datetime
    storage: StorageKind
    path: str
    """Below the root of the store."""

    def __str__(self) -> str:
        """It in words."""
        return f"{self.feed.name} {format_instant(self.instance)} on {self.cluster}"


class InstanceVersion(NamedTuple):
    """A version of an instance.

    Attributes:
        version: The data version.
        is_kept: Whether it was replaced and can be restored.
        path: Where it lies, or lay; None: nobody knows.
        row: What else is known of it; None: a run made it that was killed.
    """

    version: str
    is_kept: bool
    path: str | None
    row: VersionRow | None

    @property
    def state(self) -> str:
        """KEPT, or what became of it otherwise."""
        return "KEPT" if self.is_kept or self.row is None else self.row.status.value

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        row = self.row
        times = {"since": row and row.seen_at, "until": row and row.ended_at}
        return {
            "version": self.version,
            "state": self.state,
            **{name: format_instant(time) if time else None for name, time in times.items()},
            **{name: row and getattr(row, name) for name in ("bytes", "records", "files", "process", "run_id")},
            "path": self.path,
        }


@dataclass(frozen=True)
class InstanceVersions:
    """The versions that an instance of a feed has had, that which came last first."""

    feed: str
    cluster: str
    instance: datetime
    versions: tuple[InstanceVersion, ...]

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        items = [one.as_data() for one in self.versions]
        own = {"feed": self.feed, "cluster": self.cluster, "instance": format_instant(self.instance)}
        return {**own, "items": items, "total": len(items), "next": None}


def find_feed_instance(
    entities: EntityStore, settings: Settings, name: str, instance: datetime, cluster: str | None
) -> FeedInstance:
    """An instance of a feed; arguments and errors as :func:`instance_versions`."""
    where = find_subject(entities, name, instance, cluster, "feed").cluster
    feed, there = entities.feed(name), entities.cluster(where)
    storage = kind_of(store_of(feed, there, settings.home, settings.environ, roots=roots_of(settings)))
    return FeedInstance(feed, where, instance, storage, InstancePaths(feed, there).data(instance))


def instance_versions(
    installation: Installation, feed: str, instance: datetime, cluster: str | None = None
) -> InstanceVersions:
    """Every version that an instance is known to have had, and which of them can be restored.

    Args:
        installation: Where.
        feed: The feed.
        instance: The nominal time.
        cluster: Where it is; None: on the only cluster of the feed.

    Raises:
        UnknownEntityError: there is no such feed, or it is not there, or on several and none is named.
        UnknownInstanceError: the feed has no such instance there.
        DeniedError: who asks may not read the feed.
        StorageError: the store cannot be read.
    """
    found = find_feed_instance(installation.entities, installation.settings, feed, instance, cluster)
    require_readable(installation, "instance versions", [found.feed])
    key = (found.cluster, feed, instance)
    with installation.tables_caught_up().connect() as connection:
        rows = versions_of(connection, key)
    # What is kept is what lies there: a run may have been killed before it could say what it replaced.
    store = found.storage.store
    kept = {one.version: store.shown(one.path) for one in found.storage.kept_versions(feed, instance)}
    versions = [
        InstanceVersion(version, version in kept, kept.get(version, row.path if row else None), row)
        for version in sorted(rows.keys() | kept.keys())
        for row in [rows.get(version)]
    ]
    last_first = sorted(versions, key=lambda one: one.row.seen_at or instance if one.row else instance, reverse=True)
    return InstanceVersions(feed, found.cluster, instance, tuple(last_first))
