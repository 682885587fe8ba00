"""Checks of snapshot feeds, whose instances share one path, and of feeds that keep versions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from falcon_assets.catalog.checks.paths import declared_templates, lies_in_folders, lies_on_object_store
from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Input, Output, Process
from falcon_assets.model.table_catalog_url import ICEBERG
from falcon_assets.model.table_uri import TableUri
from falcon_assets.planning.expressions import expression_bounds


def check_snapshots(definitions: Definitions) -> Iterator[Problem]:
    """Snapshot feeds with times in their path, with settings of single instances, or read as if they had any."""
    for feed in definitions.feeds.values():
        if feed.entity.snapshot:
            yield from _timed(feed)
            yield from _in_tables(definitions, feed)
            for path, why in _refused(feed.entity):
                yield feed.problem(path, why, at_key=True)
    for process in definitions.processes.values():
        yield from _uses(definitions, process)


def _timed(feed: Declared[Feed]) -> Iterator[Problem]:
    for path, template in declared_templates(feed.entity):
        if path[-1] in ("data", "uri") and template.is_timed:
            rule = "the data path of a snapshot feed must not contain a time: remove the time, or remove snapshot: true"
            yield feed.problem(path, f"{template.text!r}: {rule}")


def _in_tables(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    """Tables that are read as a whole: only Iceberg records when a table changed."""
    for path, template in declared_templates(feed.entity):
        if path[-1] == "uri" and not template.is_timed and TableUri.parse(template.text).fixed:
            rule = "a snapshot feed is the whole table: write * for each of its keys"
            yield feed.problem(path, f"{template.text!r}: {rule}")
    for index, entry, cluster in definitions.feed_clusters(feed):
        if feed.entity.table_on(entry.name) is None:
            continue
        where = f"feed {feed.entity.name!r} is a table on cluster {entry.name!r}"
        registry = cluster.interfaces.registry
        if registry is not None and not registry.endpoint.startswith(ICEBERG):
            rule = "a Hive Metastore does not know when its data changed: declare its folder as locations.data instead"
            yield feed.problem(("clusters", index, "name"), f"{where}, and {rule}")
        if entry.type is not None:
            rule = "tables that are replaced in place cannot be copied yet: remove type"
            yield feed.problem(("clusters", index, "type"), f"{where}, and {rule}")


def _refused(feed: Feed) -> Iterator[tuple[KeyPath, str]]:
    if feed.versions is not None:
        yield ("versions",), "earlier versions of a snapshot feed cannot be kept yet: remove versions"
    for index, entry in enumerate(feed.clusters):
        where = ("clusters", index)
        if entry.retention is not None:
            yield (
                (*where, "retention"),
                "a snapshot feed has only its present data, which is never evicted: remove retention",
            )
        if entry.type == "source" and any(one.type == "source" for one in feed.clusters[:index]):
            yield (*where, "type"), "a snapshot feed is copied as a whole: it has one source"


def _uses(definitions: Definitions, process: Declared[Process]) -> Iterator[Problem]:
    for index, one in enumerate(process.entity.inputs):
        feed = definitions.feeds.get(one.feed)
        if feed is not None and feed.entity.snapshot and not _is_of_one_time(one):
            said = f"feed {one.feed!r} is a snapshot, of which only the present data can be read"
            rule = "start and end must be the same time, or both latest(0)"
            yield process.problem(("inputs", index, "start"), f"{said}: {rule}")
        if one.newer_than and (why := _why_not_newer(process.entity, one, feed.entity if feed else None)):
            yield process.problem(("inputs", index, "newer_than"), why)
    for index, output in enumerate(process.entity.outputs):
        feed = definitions.feeds.get(output.feed)
        if feed is not None and feed.entity.snapshot:
            for path, why in _unwritable(definitions, process.entity, output):
                at = path or ("outputs", index, "feed")
                yield process.problem(at, f"feed {output.feed!r} is a snapshot, which each instance replaces: {why}")


def _why_not_newer(process: Process, one: Input, feed: Feed | None) -> str | None:
    if feed is not None and not feed.snapshot:
        return f"feed {one.feed!r} is not a snapshot: each of its instances is read at its own time"
    if one.optional:
        return "an optional input is not waited for: remove optional or newer_than"
    if one.start.call.kind is Kind.TIME:
        return "the newest version is used, whatever its time: start and end must both be latest(0)"
    if process.late_process and any(late.input == one.name for late in process.late_process.inputs):
        return f"each version is used once: remove input {one.name!r} from late_process, or remove newer_than"
    return None


def _unwritable(definitions: Definitions, process: Process, output: Output) -> Iterator[tuple[KeyPath, str]]:
    """Yields the key (empty: the output as a whole) and the reason why a process cannot write a snapshot."""
    feed = definitions.feeds[output.feed].entity
    if any(feed.table_on(entry.name) is not None for entry in process.clusters):
        yield (), "only those in files are written yet, and it is a table"
    if process.order == "LIFO":
        yield ("order",), "the newest has to be the last: order must be FIFO or LAST_ONLY"
    if process.late_process:
        yield ("late_process",), "an earlier one must not be written again: remove late_process"
    if expression_bounds(output.instance.call)[1] > timedelta():
        yield (), "its instance must not lie after that of the process"
    if any(one.feed == output.feed for one in process.inputs):
        yield (), "the process cannot read it as well"
    written = (definitions.feeds.get(one.feed) for one in process.outputs)
    if others := [one.entity.name for one in written if one is not None and not one.entity.snapshot]:
        why = "instances that a later one passed are skipped, which would leave gaps in it"
        yield (), f"the process writes {others[0]!r} as well, and {why}: let another process write that"


def _is_of_one_time(one: Input) -> bool:
    is_time = one.start.call.kind is Kind.TIME
    newest = one.start.call.name == "latest" and one.start.call.args == (0,)
    return one.start.call == one.end.call and (is_time or newest)


def check_versions(definitions: Definitions) -> Iterator[Problem]:
    """Feeds that keep versions where this is impossible, or that no process or replication publishes."""
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
        if not (is_target or may_be_written or entity.compact or entity.name in written):
            what = "no process writes the feed and it is not replicated, and what others replace is not kept"
            yield feed.warning(("versions",), what)


def _cannot_keep(feed: Feed, cluster: Cluster) -> str | None:
    if feed.table_on(cluster.name) is not None or lies_in_folders(feed, cluster):
        return None
    if not lies_on_object_store(feed, cluster):
        return "lies neither on file:// or HDFS nor on an object store"
    entry = feed.on(cluster.name)
    return "is a copy on an object store" if entry and entry.type == "target" else None
