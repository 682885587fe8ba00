"""Versions that are kept: where nothing can keep them, and where nothing replaces an instance."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.storage.templates import lies_in_folders, lies_on_object_store
from falcon_assets.catalog.declared import Definitions
from falcon_assets.errors import Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed


def check_versions(definitions: Definitions) -> Iterator[Problem]:
    """Feeds that keep versions where nothing can, or that nothing here publishes."""
    written = {output.feed for process in definitions.processes.values() for output in process.entity.outputs}
    may_be_written = any(kind in ("", "process") for kind, _ in definitions.unparsed)
    for feed in definitions.feeds.values():
        entity = feed.entity
        if entity.versions is None:
            continue
        for _, _, cluster in definitions.feed_clusters(feed):
            if what := _cannot_keep(entity, cluster):
                yield feed.problem(
                    ("versions",),
                    f"the feed {what} on cluster {cluster.name!r}, where no versions are kept",
                    at_key=True,
                )
        is_target = any(entry.type == "target" for entry in entity.clusters)
        if not (is_target or may_be_written or entity.name in written):
            what = "no process writes the feed and it is not replicated, and what others replace is not kept"
            yield feed.warning(("versions",), what)


def _cannot_keep(feed: Feed, cluster: Cluster) -> str | None:
    if feed.table_on(cluster.name) is not None or lies_in_folders(feed, cluster):
        return None
    if not lies_on_object_store(feed, cluster):
        return "lies neither on file:// or HDFS nor on an object store"
    entry = feed.on(cluster.name)
    return "is a copy on an object store" if entry and entry.type == "target" else None
