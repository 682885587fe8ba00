"""Replication: which instances a target has, which sources bring them, and which part of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase

from falcon_assets.errors import UnknownEntityError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.expression import Call
from falcon_assets.model.feed import Feed
from falcon_assets.model.template import parse_template, value_of
from falcon_assets.planning.time.timeline import Timeline, feed_timeline


@dataclass(frozen=True)
class Contribution:
    """What one source brings to the instances of one target.

    Attributes:
        source: Name of the source cluster.
        theirs: The instances of the source.
        ours: The instances of the target.
        partition: A pattern for each of the upper sub-partitions: only what matches comes from this source. Empty: all.
    """

    source: str
    theirs: Timeline
    ours: Timeline
    partition: tuple[str, ...]

    def brings(self, instance: datetime) -> bool:
        """Whether the instance exists on both sides: within both validities, and on the steps of both."""
        return self.theirs.contains(instance) and self.ours.contains(instance)

    def holds(self, name: str) -> bool:
        """Whether the file of that name, relative to the instance, comes from this source.

        A folder matches its pattern as it is, or without Hive's ``key=``. A file above the sub-partitions that the
        patterns speak of belongs to none of them.
        """
        if not self.partition:
            return True
        folders = name.split("/")[:-1]
        return len(folders) >= len(self.partition) and all(map(_matches, folders, self.partition))


def contributions(feed: Feed, target: str, clusters: Mapping[str, Cluster]) -> tuple[Contribution, ...]:
    """What each source of ``feed`` brings to ``target``, in the order of the definition.

    A target's partition stands below that of the source (source of the rule: Falcon's feed replication).

    Args:
        feed: The feed.
        target: Name of a cluster that the feed has as a target.
        clusters: All clusters of the feed by name, for the variables of their partition expressions.

    Raises:
        UnknownEntityError: ``target`` is no target of the feed.
        ExpressionError: a partition expression names an unknown variable.
    """
    own = feed.on(target)
    if own is None or own.type != "target":
        raise UnknownEntityError(f"cluster {target!r} is not a target of feed {feed.name!r}")
    below = partition_patterns(own.partition, clusters[target])
    return tuple(
        Contribution(
            entry.name,
            feed_timeline(feed, entry.name),
            feed_timeline(feed, target),
            (*partition_patterns(entry.partition, clusters[entry.name]), *below),
        )
        for entry in feed.clusters
        if entry.type == "source"
    )


def common_timeline(feed: Feed, source: str, target: str) -> Timeline | None:
    """The instances of ``feed`` that exist on both clusters; None where there are none.

    They are those of the target within both validities: ``max`` of the starts, ``min`` of the ends. Steps of one
    length either all meet or never.

    Raises:
        UnknownEntityError: the feed is not on one of the clusters.
    """
    theirs, ours = feed_timeline(feed, source), feed_timeline(feed, target)
    end = min(theirs.end, ours.end)
    found = ours.indexes(max(theirs.start, ours.start), end)
    if not found or not theirs.contains(first := ours.instance(found.start)) or first >= end:
        return None
    return replace(ours, start=first, end=end)


def replicated_timeline(feed: Feed, target: str) -> Timeline | None:
    """The instances of ``feed`` that some source brings to the target; None where none does, or it is no target."""
    own = feed.on(target)
    sources = [entry.name for entry in feed.clusters if entry.type == "source"]
    if own is None or own.type != "target":
        return None
    lines = [line for line in (common_timeline(feed, source, target) for source in sources) if line is not None]
    if not lines:
        return None
    return replace(min(lines, key=lambda line: line.start), end=max(line.end for line in lines))


def sources_of(parts: Iterable[Contribution], instance: datetime) -> list[Contribution]:
    """Those of ``parts`` that bring something to ``instance``; the instance is complete when all of them have come."""
    return [part for part in parts if part.brings(instance)]


def partition_patterns(partition: str | None, cluster: Cluster) -> tuple[str, ...]:
    """The levels of a partition expression with the variables of ``cluster`` filled in; ``*`` matches any folder.

    Raises:
        ExpressionError: an unknown variable.
    """
    text = partition or ""
    filled = "".join(
        part if isinstance(part, str) else value_of(text, part, cluster.variables)
        for part in parse_template(text)
        if not isinstance(part, Call)
    )
    return tuple(level for level in filled.split("/") if level)


def _matches(folder: str, pattern: str) -> bool:
    return fnmatchcase(folder, pattern) or fnmatchcase(folder.partition("=")[2] or folder, pattern)
