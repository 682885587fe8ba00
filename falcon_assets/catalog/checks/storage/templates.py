"""Every path template of a feed, with the key that declares it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed, FeedCluster, Locations, Table
from falcon_assets.model.path_template import PathTemplate
from falcon_assets.model.store_url import canonical_url, is_hdfs, is_mounted, is_object_store
from falcon_assets.planning.instances.instance_paths import InstancePaths

LOCATIONS = ("data", "stats", "meta")


def declared_templates(feed: Feed) -> Iterator[tuple[KeyPath, PathTemplate]]:
    """All of them, those that a cluster overrides included."""
    yield from _of_locations(("locations",), feed.locations)
    for index, entry in enumerate(feed.clusters):
        yield from _of_locations(("clusters", index, "locations"), entry.locations)
        yield from _archive(index, entry)
        yield from _of_table(("clusters", index, "table"), entry.table)
    yield from _of_table(("table",), feed.table)


def templates_on(feed: Feed, index: int) -> Iterator[tuple[KeyPath, PathTemplate]]:
    """Those that are in force on the cluster at ``index``."""
    entry = feed.clusters[index]
    for kind in LOCATIONS:
        own = getattr(entry.locations, kind, None)
        common = getattr(feed.locations, kind, None)
        if own is not None:
            yield ("clusters", index, "locations", kind), own
        elif common is not None:
            yield ("locations", kind), common
    yield from _archive(index, entry)
    yield from _of_table(("clusters", index, "table") if entry.table else ("table",), entry.table or feed.table)


def is_of_feed(path: KeyPath, template: PathTemplate) -> bool:
    """Whether it is a place of the feed as a whole, which no instance has for its own: nothing there is ever taken."""
    return path[-1] in ("stats", "meta") and not template.is_timed


def cluster_of(feed: Feed, path: KeyPath, cluster: str) -> str:
    """The cluster that the template at ``path``, in force on ``cluster``, is a place on."""
    if path[2:] != ("retention", "archive_to"):
        return cluster
    retention = feed.clusters[int(path[1])].retention
    return (retention.archive_cluster if retention else None) or cluster


class Located(NamedTuple):
    """Where a template leads."""

    shown: str
    """Below the root of the cluster, or a whole URL."""
    absolute: str
    """Where that is in the world, as far as the definitions say it: to compare what lies where."""
    is_url: bool
    """Whether a whole URL says it."""


def located(feed: Feed, path: KeyPath, template: PathTemplate, on: Cluster, where: Cluster | None) -> Located:
    """Where ``template`` of ``feed`` leads, with the variables of the cluster ``on`` and the time left open.

    Args:
        feed: The feed.
        path: The key of the template.
        template: One of its templates.
        on: The cluster that it is in force on.
        where: The cluster that it is a place on, see :func:`cluster_of`; None: not known.

    Raises:
        ExpressionError: an unknown variable, or a place that is none.
    """
    if path[-1] == "uri":
        table = InstancePaths(feed, on).template.text
        return Located(table, f"{on.name} {table}", is_url=False)
    place = InstancePaths(feed, on).place(template)
    below = place.template.text.strip("/")
    if place.root is not None:
        url = canonical_url(place.root)
        return Located(f"{url}/{below}", f"{url}/{below}", is_url=True)
    return Located(below, f"{root_of(where) if where else ''}/{below}", is_url=False)


def root_of(cluster: Cluster) -> str:
    """What all that lies on the cluster is below, comparable to :attr:`Located.absolute`."""
    endpoint = cluster.interfaces.write.endpoint
    return canonical_url(endpoint) if "://" in endpoint else f"{cluster.name} {endpoint}"


def lies_mounted(feed: Feed, cluster: Cluster, *, readonly: bool = False) -> bool:
    """Whether the data of ``feed`` lies on a file system on ``cluster``, not on an object store.

    Args:
        feed: The feed.
        cluster: The cluster.
        readonly: Whether it is only to be read.
    """
    return is_mounted(_place_of(feed, cluster, readonly=readonly))


def lies_in_folders(feed: Feed, cluster: Cluster) -> bool:
    """Whether the data of ``feed`` lies on ``cluster`` where whole folders are renamed: on mounted disks or HDFS."""
    return lies_mounted(feed, cluster) or is_hdfs(_place_of(feed, cluster, readonly=False))


def kind_of_files(feed: Feed, cluster: Cluster, *, readonly: bool) -> str | None:
    """``file://`` or ``HDFS``, where the files of ``feed`` on ``cluster`` have owners and permissions; None: elsewhere.

    Args:
        feed: The feed.
        cluster: The cluster.
        readonly: Whether they are only to be read.
    """
    place = _place_of(feed, cluster, readonly=readonly)
    return "file://" if is_mounted(place) else "HDFS" if is_hdfs(place) else None


def lies_on_object_store(feed: Feed, cluster: Cluster) -> bool:
    """Whether the data of ``feed`` lies on an object store on ``cluster``."""
    return is_object_store(_place_of(feed, cluster, readonly=False))


def _place_of(feed: Feed, cluster: Cluster, *, readonly: bool) -> str:
    """The endpoint or URL that it lies at."""
    template = feed.locations_on(cluster.name).data
    endpoint = cluster.interfaces.storage(readonly=readonly).endpoint
    return template.text if template is not None and template.is_url else endpoint


def _of_table(path: KeyPath, table: Table | None) -> Iterator[tuple[KeyPath, PathTemplate]]:
    if table is not None:
        yield (*path, "uri"), PathTemplate(table.uri)


def _of_locations(path: KeyPath, locations: Locations | None) -> Iterator[tuple[KeyPath, PathTemplate]]:
    for kind in LOCATIONS:
        template = getattr(locations, kind, None)
        if template is not None:
            yield (*path, kind), template


def _archive(index: int, entry: FeedCluster) -> Iterator[tuple[KeyPath, PathTemplate]]:
    if entry.retention is not None and entry.retention.archive_to is not None:
        yield ("clusters", index, "retention", "archive_to"), entry.retention.archive_to
