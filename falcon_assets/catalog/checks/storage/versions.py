"""Versions that are kept: where nothing can keep them, and where nothing replaces an instance."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.storage.templates import lies_mounted
from falcon_assets.catalog.declared import Definitions
from falcon_assets.errors import Problem


def check_versions(definitions: Definitions) -> Iterator[Problem]:
    """Feeds that keep versions on other stores than ``file://``, or that nothing here publishes."""
    written = {output.feed for process in definitions.processes.values() for output in process.entity.outputs}
    may_be_written = any(kind in ("", "process") for kind, _ in definitions.unparsed)
    for feed in definitions.feeds.values():
        entity = feed.entity
        if entity.versions is None:
            continue
        for _, _, cluster in definitions.feed_clusters(feed):
            is_table = entity.table_on(cluster.name) is not None
            if is_table or not lies_mounted(entity, cluster):
                what = "is a table" if is_table else "lies on no file:// store"
                rule = "versions are kept on file:// stores only"
                yield feed.problem(
                    ("versions",), f"the feed {what} on cluster {cluster.name!r}, and {rule}", at_key=True
                )
        is_target = any(entry.type == "target" for entry in entity.clusters)
        if not (is_target or may_be_written or entity.name in written):
            what = "no process writes the feed and it is not replicated, and what others replace is not kept"
            yield feed.warning(("versions",), what)
