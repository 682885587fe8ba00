"""Problems of feeds that declare ``compact``."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.paths import lies_on_object_store
from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import Problem
from falcon_assets.features.compaction.engine import COLUMN_FORMATS, LINE_FORMATS
from falcon_assets.features.compaction.line_files import why_not_lines
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Compaction, Feed

_NEEDED = "an object store cannot replace files in one step, so it has to keep a version"


def check_compaction(definitions: Definitions) -> Iterator[Problem]:
    """What cannot be compacted, or not sorted like that."""
    for feed in definitions.feeds.values():
        if (compaction := feed.entity.compact) is not None:
            yield from _of_feed(definitions, feed, compaction)


def _of_feed(definitions: Definitions, feed: Declared[Feed], compaction: Compaction) -> Iterator[Problem]:
    if (found := _why_not(feed.entity, compaction)) is not None:
        path, why = found
        yield feed.problem(path, why, at_key=True)
    for _, entry, cluster in definitions.feed_clusters(feed):
        if entry.type != "target" and (where := _why_not_there(feed.entity, compaction, cluster)):
            yield feed.problem(("compact",), f"on cluster {cluster.name!r}, {where}", at_key=True)
    if all(entry.type == "target" for entry in feed.entity.clusters):
        yield feed.warning(("compact",), "copies are what their source is: nothing is compacted on a target")


def _why_not(feed: Feed, compaction: Compaction) -> tuple[KeyPath, str] | None:
    if feed.snapshot:
        return ("compact",), "a snapshot feed is replaced as a whole by whoever writes it: it is not compacted"
    if feed.format not in (*COLUMN_FORMATS, *LINE_FORMATS):
        known = ", ".join((*COLUMN_FORMATS, *LINE_FORMATS))
        return ("compact",), f"files of the format {feed.format} cannot be compacted; those can be: {known}"
    if feed.format in LINE_FORMATS:
        sort = [one for one in compaction.sort if one not in feed.partitions]
        if (why := why_not_lines(feed.format, sort, feed.options, feed.schema_)) is not None:
            return ("compact",), why
    return None


def _why_not_there(feed: Feed, compaction: Compaction, cluster: Cluster) -> str | None:
    if feed.table_on(cluster.name) is not None or not lies_on_object_store(feed, cluster):
        return None
    if feed.versions is None:
        return f"{_NEEDED}: declare `versions`"
    return f"{_NEEDED}: remove replaces" if compaction.replaces else None
