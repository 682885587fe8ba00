"""What retention may touch: the instances of a feed that lie on a cluster, found by descending its path templates."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import datetime

from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.path_template import PathTemplate
from falcon_assets.planning.instances.instance_paths import InstancePaths, Place
from falcon_assets.planning.retention.eviction import LocationKind, StoredInstance, StoredLocation
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained


def stored_instances(store: ClusterStore, feed: Feed, cluster: Cluster) -> list[StoredInstance]:
    """Every instance of ``feed`` that has something in its locations data, stats or meta, oldest first.

    A folder or file counts when its path matches the template of its location exactly and is that of an existing
    instance. Symbolic links below the fixed prefix are not followed and are no instances, wherever they lead; an
    instance without its flag is one. Lists each folder once.

    Args:
        store: Where the feed's data lies.
        feed: The feed.
        cluster: The cluster of ``store``.

    Raises:
        StorageError: the feed is a table there, a fixed prefix leaves the root, a template is coarser than the
            frequency, or a folder cannot be read.
        ExpressionError: a template names an unknown variable or reaches above its prefix by ``..``.
        UnknownEntityError: the feed is not on ``cluster``.
    """
    if feed.table_on(cluster.name):
        raise StorageError(f"feed {feed.name!r} on cluster {cluster.name!r} is a table: it has no paths to list")
    paths = InstancePaths(feed, cluster)
    found: dict[datetime, dict[str, StoredLocation]] = {}
    for kind, (root, template) in _places(paths):
        prefix = template.fixed_prefix({})
        for path in _existing(store.at(root), template):
            instance = paths.instance(path, template)
            if instance is not None:
                location = StoredLocation(kind, path, prefix, root)
                found.setdefault(instance, {}).setdefault(location.place, location)
    return [StoredInstance(instance, tuple(found[instance].values())) for instance in sorted(found)]


def _places(paths: InstancePaths) -> Iterator[tuple[LocationKind, Place]]:
    locations = paths.feed.locations_on(paths.cluster.name)
    declared: tuple[tuple[LocationKind, PathTemplate | None], ...] = (
        ("data", locations.data),
        ("stats", locations.stats),
        ("meta", locations.meta),
    )
    for kind, template in declared:
        if template is None or (kind != "data" and not template.is_timed):
            continue  # what has no time in it belongs to the feed, and stays
        if template.missing_for(paths.feed.frequency):
            # Several instances would go where one is decided on.
            raise StorageError(f"{template.text!r} is coarser than the frequency {paths.feed.frequency}")
        yield kind, paths.place(template)


def _existing(store: ClusterStore, template: PathTemplate) -> Iterator[str]:
    """The paths that may match ``template``, in order: those whose folders match level by level."""
    steps = template.text.strip("/").split("/")
    levels = [PathTemplate("/" + "/".join(steps[: depth + 1])) for depth in range(len(steps))]
    prefix = template.fixed_prefix({})
    base = store.path(prefix)
    if not store.is_local:
        store.fs.invalidate_cache()  # the driver would answer with the listings of the last look

    def below(path: str, depth: int) -> Iterator[str]:
        is_last = depth == len(steps) - 1
        for name, is_folder in _entries(store, base + path[len(prefix) :], steps[depth]):
            child = f"{path}/{name}"
            if is_last:
                yield child
            elif is_folder and _may_match(levels[depth], child):
                yield from below(child, depth + 1)

    return below(prefix, prefix.count("/"))


def _may_match(level: PathTemplate, path: str) -> bool:
    # Without a year there is no date that could be wrong.
    return "YEAR" not in level.variables or level.match(path, {}) is not None


def _entries(store: ClusterStore, folder: str, step: str) -> list[tuple[str, bool]]:
    """Name of each folder (True) and file (False) in ``folder`` that ``step`` may stand for; no links, no devices."""
    with explained(store.cluster.name, f"list {folder}"):
        try:
            if not store.is_local:
                return sorted(_listed(store, folder))
            if "${" not in step:  # nothing else in there can match
                mode = os.lstat(f"{folder}/{step}").st_mode
                return [(step, stat.S_ISDIR(mode))] if stat.S_ISDIR(mode) or stat.S_ISREG(mode) else []
            with os.scandir(folder) as entries:
                return sorted(filter(None, map(_named, entries)))
        except (FileNotFoundError, NotADirectoryError):
            return []


def _named(entry: os.DirEntry[str]) -> tuple[str, bool] | None:
    if entry.is_dir(follow_symlinks=False):
        return entry.name, True
    return (entry.name, False) if entry.is_file(follow_symlinks=False) else None


def _listed(store: ClusterStore, folder: str) -> Iterator[tuple[str, bool]]:
    for entry in store.fs.ls(folder, detail=True):
        name = str(entry["name"]).rstrip("/")
        if name != folder and entry["type"] in ("directory", "file") and not entry.get("islink"):
            yield name.rpartition("/")[2], entry["type"] == "directory"
