"""Checks of deadlines, replication and retention."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.paths import (
    cluster_of,
    is_of_feed,
    kind_of_files,
    lies_in_folders,
    lies_mounted,
    located,
    templates_on,
)
from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.validation import unknown_word
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.expression import Call
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.model.store_url import is_mounted
from falcon_assets.model.template import parse_template, value_of
from falcon_assets.planning.replication import PRESERVED_BETWEEN, common_timeline, option_problems, replication_options
from falcon_assets.planning.retries import timeout_of, timeout_text
from falcon_assets.planning.timeline import feed_timeline


def check_deadlines(definitions: Definitions) -> Iterator[Problem]:
    """Warnings: instances that are evicted before their feed's SLA, or time out before they should have started."""
    for feed in definitions.feeds.values():
        yield from _evicted_first(feed)
    for process in definitions.processes.values():
        sla = process.entity.sla
        if sla is not None and sla.should_start_in.length > timeout_of(process.entity):
            rule = f"is longer than the timeout, {timeout_text(process.entity)}: an instance times out before"
            yield process.warning(("sla", "should_start_in"), f"{sla.should_start_in} {rule}")


def _evicted_first(feed: Declared[Feed]) -> Iterator[Problem]:
    for index, entry in enumerate(feed.entity.clusters):
        limit, sla = entry.retention.limit if entry.retention else None, entry.sla or feed.entity.sla
        if sla is not None and limit is not None and sla.high.length > limit.length:
            rule = f"is longer than retention.limit on cluster {entry.name!r}, {limit}: an instance is evicted before"
            yield feed.warning((*(("clusters", index) if entry.sla else ()), "sla", "high"), f"{sla.high} {rule}")


def check_replication(definitions: Definitions) -> Iterator[Problem]:
    """Targets without a source, and several sources without distinct partition expressions."""
    for feed in definitions.feeds.values():
        entries = list(enumerate(feed.entity.clusters))
        sources = [(index, entry) for index, entry in entries if entry.type == "source"]
        targets = [(index, entry) for index, entry in entries if entry.type == "target"]
        if targets and not sources:
            for index, _ in targets:
                yield feed.problem(("clusters", index, "type"), "a target needs a source: no cluster has type: source")
        if len(sources) > 1:
            for index, entry in sources:
                if entry.partition is None:
                    rule = f"needs a partition expression, as there are {len(sources)} source clusters"
                    yield feed.problem(("clusters", index, "partition"), f"source cluster {entry.name!r} {rule}")
            yield from _same_partition(definitions, feed)
        for index, entry in entries:
            if entry.throttle is not None and entry.type != "target":
                rule = "is for clusters that are replicated to: type: target"
                yield feed.problem(("clusters", index, "throttle"), rule, at_key=True)
        for index, _ in targets:
            yield from _never_met(feed, index, [entry.name for _, entry in sources])


def check_replication_options(definitions: Definitions) -> Iterator[Problem]:
    """Properties that are no options or have no legal value, and options that object stores do not support."""
    for feed in definitions.feeds.values():
        if any(entry.type == "target" for entry in feed.entity.clusters):
            for name, message in option_problems(feed.entity.properties):
                yield feed.problem(("properties", name), message)
            yield from _preserved(definitions, feed)
            yield from _object_stores(definitions, feed)


def _preserved(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    """Attributes of files that a store does not have, or that have another meaning on the other store."""
    try:
        preserved = replication_options(feed.entity.properties).preserved
    except ExpressionError:
        return
    kinds = {
        entry.name: kind_of_files(feed.entity, cluster, readonly=entry.type == "source")
        for _, entry, cluster in definitions.feed_clusters(feed)
        if entry.type is not None and feed.entity.table_on(entry.name) is None
    }
    if len({*kinds.values()}) == 1 and None not in kinds.values():
        return
    shown = ", ".join(f"{name!r} is {kind or 'another store'}" for name, kind in kinds.items())
    for name in preserved if kinds else ():
        yield feed.problem(("properties", name), f"{PRESERVED_BETWEEN}, and {shown}: remove {name}")


def _object_stores(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    for index, entry, cluster in definitions.feed_clusters(feed):
        is_table = feed.entity.table_on(entry.name) is not None
        if entry.type is None or is_table or lies_mounted(feed.entity, cluster, readonly=entry.type == "source"):
            continue
        where = f"{entry.type} {entry.name!r} is not a file:// store"
        is_switched = entry.type == "target" and not lies_in_folders(feed.entity, cluster)
        if is_switched and feed.entity.availability_flag is None:
            rule = "and is published to by setting the flag: declare availability_flag"
            yield feed.problem(("clusters", index, "name"), f"{where}, {rule}")


def _never_met(feed: Declared[Feed], index: int, sources: list[str]) -> Iterator[Problem]:
    """Targets without common instances; with several sources, one may end before the target starts."""
    target = feed.entity.clusters[index].name
    apart = [one for one in sources if common_timeline(feed.entity, one, target) is None]
    for source in apart:
        theirs, ours = feed_timeline(feed.entity, source), feed_timeline(feed.entity, target)
        start, end = format_instant(theirs.start), format_instant(theirs.end)
        is_apart = max(theirs.start, ours.start) >= min(theirs.end, ours.end)
        why = f"it is valid from {start} to {end}" if is_apart else f"its steps count from {start}"
        message = f"no instance of this target is one of source {source!r}: {why}, so nothing is copied"
        report = feed.problem if len(apart) == len(sources) else feed.warning
        yield report(("clusters", index, "validity"), message)


def _same_partition(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for index, entry, cluster in definitions.feed_clusters(feed):
        if entry.type == "source" and entry.partition is not None:
            value = _value(entry.partition, cluster)
            other = first.setdefault(value, entry.name) if value is not None else entry.name
            if other != entry.name:
                rule = f"is {value!r} here and on source cluster {other!r}: each source needs its own"
                yield feed.problem(("clusters", index, "partition"), f"{entry.partition!r} {rule}")


def _value(partition: str, cluster: Cluster) -> str | None:
    """The expression's value on the cluster; None: it has none, which another check reports."""
    try:
        parts = parse_template(partition)
        return "".join(
            part if isinstance(part, str) else value_of(partition, part, cluster.variables)
            for part in parts
            if not isinstance(part, Call)
        )
    except ExpressionError:
        return None


def check_retention(definitions: Definitions) -> Iterator[Problem]:
    """Limits below the late-arrival cut-off, bad archives, idle lifecycles and late inputs, disks that say nothing."""
    for feed in definitions.feeds.values():
        late = feed.entity.late_arrival
        for index, entry in enumerate(feed.entity.clusters):
            limit = entry.retention.limit if entry.retention else None
            if limit is not None and late is not None and limit.length < late.cut_off.length:
                message = f"{limit} must not be shorter than late_arrival.cut_off, which is {late.cut_off}"
                yield feed.problem(("clusters", index, "retention", "limit"), message)
        yield from _unknown_archives(definitions, feed)
        yield from _archives_within(definitions, feed)
        yield from _nothing_to_retain(feed)
    for cluster in definitions.clusters.values():
        written = cluster.entity.interfaces.write
        if written.max_usage and not is_mounted(written.endpoint):
            message = "only file:// and paths below FALCON_HOME say how full their disk is: remove max_usage"
            yield cluster.problem(("interfaces", "write", "max_usage"), message)
    for process in definitions.processes.values():
        yield from _inputs_that_are_never_late(definitions, process)


def _unknown_archives(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    for index, entry in enumerate(feed.entity.clusters):
        name = entry.retention.archive_cluster if entry.retention else None
        if name is not None and name not in definitions.clusters and not definitions.is_unparsed("cluster", name):
            message = unknown_word("cluster", name, tuple(definitions.clusters))
            yield feed.problem(("clusters", index, "retention", "archive_cluster"), message)


def _archives_within(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    """Archives within the data of the feed, or the reverse."""
    for index, _, cluster in definitions.feed_clusters(feed):
        templates = [one for one in templates_on(feed.entity, index) if not is_of_feed(*one)]
        try:
            places = {path: located(feed.entity, path, template, cluster, cluster) for path, template in templates}
        except ExpressionError:
            continue  # said elsewhere
        archive = ("clusters", index, "retention", "archive_to")
        if archive not in places or cluster_of(feed.entity, archive, cluster.name) != cluster.name:
            continue
        inner = f"{places[archive].absolute}/"
        for path, place in places.items():
            outer = f"{place.absolute}/"
            if inner != outer and (inner.startswith(outer) or outer.startswith(inner)):
                apart = f"the {path[-1]} at {place.shown!r} must not be inside of each other"
                message = f"{places[archive].shown!r} and {apart}"
                yield feed.problem(archive, message)


def _nothing_to_retain(feed: Declared[Feed]) -> Iterator[Problem]:
    entity = feed.entity
    if entity.versions:
        return
    if entity.lifecycle and not any(entry.retention for entry in entity.clusters):
        message = "no cluster of the feed declares retention, so there is nothing to look for"
        yield feed.problem(("lifecycle", "retention"), message, at_key=True)
    for index, entry in enumerate(entity.clusters):
        if entry.lifecycle and not entry.retention:
            message = f"cluster {entry.name!r} declares no retention, so there is nothing to look for"
            yield feed.problem(("clusters", index, "lifecycle", "retention"), message, at_key=True)


def _inputs_that_are_never_late(definitions: Definitions, process: Declared[Process]) -> Iterator[Problem]:
    feeds = {declared.name: declared.feed for declared in process.entity.inputs}
    late = process.entity.late_process
    for index, entry in enumerate(late.inputs if late else ()):
        feed = definitions.feeds.get(feeds.get(entry.input, ""))
        if feed is not None and feed.entity.late_arrival is None:
            message = (
                f"feed {feed.entity.name!r} declares no late_arrival.cut_off, so input {entry.input!r} is never late"
            )
            yield process.problem(("late_process", "inputs", index, "input"), message)
