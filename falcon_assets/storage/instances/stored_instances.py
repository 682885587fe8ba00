"""The instances of a feed on a cluster that retention may remove, found by descending its path templates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.model.path_template import PathTemplate
from falcon_assets.planning.eviction import StoredInstance, StoredLocation
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained
from falcon_assets.storage.instances.template_walk import Names, TemplateWalk


def stored_instances(store: ClusterStore, feed: Feed) -> list[StoredInstance]:
    """Returns every instance of ``feed`` with something in its locations data, stats or meta, oldest first.

    A path counts if it matches the template of its location exactly and belongs to an existing instance, with or
    without flag. Symbolic links below the fixed prefix are not followed and are no instances. Lists each folder once.

    Raises StorageError also if the feed is a table there or a snapshot, a fixed prefix leaves the root, or a template
    is coarser than the frequency; else as the methods of :class:`.StorageKind`.
    """
    cluster = store.cluster
    if feed.table_on(cluster.name):
        raise StorageError(f"feed {feed.name!r} on cluster {cluster.name!r} is a table: it has no paths to list")
    if feed.snapshot:
        raise StorageError(f"feed {feed.name!r} is a snapshot: all its instances share one path, and it is never taken")
    paths = InstancePaths(feed, cluster)
    found: dict[datetime, dict[str, StoredLocation]] = {}
    for kind, declared in paths.templates():
        if declared.missing_for(feed.frequency):
            # Several instances would go where one is decided on.
            raise StorageError(f"{declared.text!r} is coarser than the frequency {feed.frequency}")
        root, template = paths.place(declared)
        prefix = template.fixed_prefix({})
        own = store.at(root)
        for path in _existing(own, template):
            instance = paths.instance(path, template)
            if instance is not None:
                location = StoredLocation(kind, path, prefix, own.root)
                found.setdefault(instance, {}).setdefault(location.place, location)
    return [StoredInstance(instance, tuple(found[instance].values())) for instance in sorted(found)]


def _existing(store: ClusterStore, template: PathTemplate) -> Iterator[str]:
    prefix = template.fixed_prefix({})
    base = store.path(prefix)
    store.files.refresh()

    def names(path: str, depth: int) -> Names:
        folder, step = base + path[len(prefix) :], walk.steps[depth]
        is_last = depth == len(walk.steps) - 1
        with explained(store.cluster.name, f"list {folder}"):
            try:
                found = store.files.unlinked(folder, None if "${" in step else step)
                return {name: None for name, is_folder in found if is_last or is_folder}
            except (FileNotFoundError, NotADirectoryError):
                return {}

    walk = TemplateWalk(template, names, _may_match)
    return walk.paths()


def _may_match(level: PathTemplate, path: str) -> bool:
    # Without a year there is no date that could be wrong.
    return "YEAR" not in level.variables or level.match(path, {}) is not None
