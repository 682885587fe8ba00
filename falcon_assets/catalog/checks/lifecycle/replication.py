"""Replication: no instance of a target from two sources, and options that its stores can do."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.storage.templates import kind_of_files, lies_in_folders, lies_mounted
from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.expression import Call
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.template import parse_template, value_of
from falcon_assets.planning.replication.options import PRESERVED_BETWEEN, option_problems, replication_options
from falcon_assets.planning.replication.targets import common_timeline
from falcon_assets.planning.time.timeline import feed_timeline


def check_replication(definitions: Definitions) -> Iterator[Problem]:
    """Targets without a source, and several sources that no partition expression tells apart."""
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
        for index, _ in targets:
            yield from _never_met(feed, index, [entry.name for _, entry in sources])


def check_replication_options(definitions: Definitions) -> Iterator[Problem]:
    """Properties that are no options or have no legal value, and what object stores cannot do."""
    for feed in definitions.feeds.values():
        if any(entry.type == "target" for entry in feed.entity.clusters):
            for name, message in option_problems(feed.entity.properties):
                yield feed.problem(("properties", name), message)
            yield from _preserved(definitions, feed)
            yield from _object_stores(definitions, feed)


def _preserved(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    """Attributes of files that no store of the feed has, or that mean something else on the other one."""
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
        where = f"{entry.type} {entry.name!r} is no file:// store"
        is_switched = entry.type == "target" and not lies_in_folders(feed.entity, cluster)
        if is_switched and feed.entity.availability_flag is None:
            rule = "and is published to by setting the flag: declare availability_flag"
            yield feed.problem(("clusters", index, "name"), f"{where}, {rule}")


def _never_met(feed: Declared[Feed], index: int, sources: list[str]) -> Iterator[Problem]:
    """Targets that get nothing; with several sources one of them may have ended before the target began."""
    target = feed.entity.clusters[index].name
    apart = [one for one in sources if common_timeline(feed.entity, one, target) is None]
    for source in apart:
        theirs, ours = feed_timeline(feed.entity, source), feed_timeline(feed.entity, target)
        start, end = format_instant(theirs.start), format_instant(theirs.end)
        is_apart = max(theirs.start, ours.start) >= min(theirs.end, ours.end)
        why = f"it is valid from {start} to {end}" if is_apart else f"its steps count from {start}"
        message = f"no instance of this target is one of source {source!r}: {why}, so nothing is copied"
        tell = feed.problem if len(apart) == len(sources) else feed.warning
        yield tell(("clusters", index, "validity"), message)


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
    """The expression's value on the cluster; None where it has none, which is another check's matter."""
    try:
        parts = parse_template(partition)
        return "".join(
            part if isinstance(part, str) else value_of(partition, part, cluster.variables)
            for part in parts
            if not isinstance(part, Call)
        )
    except ExpressionError:
        return None
