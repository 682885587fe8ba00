"""Archived instances, as the decisions that archived them say: they go by age, and where a disk gets too full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from falcon_assets.errors import FalconError
from falcon_assets.features.retention.store import Eviction
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.path_template import PathTemplate
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, before
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.reasons_to_keep import Need
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.eviction.evicting import evict


class ArchiveVerdict(NamedTuple):
    archived: Eviction
    goes: bool
    reason: str
    kept_by: Reason | None = None


def plan_archives(
    found: Iterable[Eviction], limit: Frequency | None, now: datetime, zone: str, need: Need
) -> list[ArchiveVerdict]:
    """Returns the verdict on each, oldest first; without ``limit`` all stay. ``need``: why one is protected."""
    oldest = before(now, limit, zone) if limit else None
    verdicts = []
    for one in sorted(found, key=lambda one: one.instance):
        goes = oldest is not None and one.instance < oldest
        kept_by = need(one.instance)
        reason = f"older than {limit} (archive_limit)" if goes else f"not older than {limit} (archive_limit)"
        if limit is None:
            reason = "no archive_limit is declared"
        verdicts.append(ArchiveVerdict(one, goes and not kept_by, str(kept_by) if kept_by else reason, kept_by))
    return verdicts


def in_archive(one: Eviction, paths: InstancePaths) -> StoredInstance:
    """Returns the instance at its archive's place, with the folders below which it may leave none empty."""
    verdict, locations = one.verdict, list[StoredLocation]()
    declared = _prefix(paths, verdict.archive_root)
    for location in verdict.instance.locations:
        path = verdict.archive_path(location)
        if path is not None:
            is_below = declared is not None and path.startswith(f"{declared}/")
            prefix = declared if is_below and declared is not None else path.rpartition("/")[0]
            locations.append(StoredLocation(location.kind, path, prefix, verdict.archive_root))
    return StoredInstance(one.instance, tuple(locations))


def expire(
    planned: Iterable[ArchiveVerdict], paths: InstancePaths, store_of: Callable[[str, str | None], ClusterStore]
) -> Iterator[tuple[ArchiveVerdict, FalconError | None]]:
    """Removes those that go from their archives; ``store_of`` opens the store of a cluster, or at a URL."""
    for verdict in planned:
        if not verdict.goes:
            continue
        one = verdict.archived
        gone = one.verdict._replace(instance=in_archive(one, paths), action="delete", archive_to=None)
        try:
            store = store_of(one.archive_cluster or one.cluster, one.verdict.archive_root).without_tables
            for evicted in evict(store, [gone], one.flag):
                yield verdict, evicted.error
        except FalconError as error:
            yield verdict, error


def _prefix(paths: InstancePaths, root: str | None) -> str | None:
    """The fixed folder of the declared archive, if that has this root."""
    entry = paths.feed.on(paths.cluster.name)
    template: PathTemplate | None = entry.retention.archive_to if entry and entry.retention else None
    if template is None:
        return None
    place = paths.place(template)
    return place.template.fixed_prefix({}) if place.root == root else None
