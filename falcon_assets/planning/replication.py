"""The properties of a feed that steer its replication."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Literal, cast

from falcon_assets.errors import ExpressionError, UnknownEntityError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.expression import Call
from falcon_assets.model.feed import Feed
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.template import parse_template, value_of
from falcon_assets.planning.timeline import Timeline, feed_timeline

PRESERVED_BETWEEN = "attributes of files are preserved from file:// to file:// and from HDFS to HDFS only"
"""Where the properties named by :attr:`ReplicationOptions.preserved` mean something."""
Order = Literal["FIFO", "LIFO", "LAST_ONLY"]


@dataclass(frozen=True)
class ReplicationOptions:
    """How the instances of a feed are replicated (source: Falcon's feed properties, which are distcp's options)."""

    parallel: int = 1
    """How many instances may be copied at once, per target."""
    order: Order = "FIFO"
    """Which ready instance is copied first; LAST_ONLY drops all but the newest."""
    timeout: Frequency | None = None
    """How long an instance may wait for its sources; None: as for a process."""
    max_maps: int = 20
    """How many tasks one copy may have; 20 is distcp's default."""
    map_bandwidth: float | None = None
    """Mebibytes per second of each task; None: as fast as it goes."""
    overwrite: bool = False
    """Whether files that are equal already are copied all the same."""
    ignore_errors: bool = False
    """Whether an instance is published although some of its files could not be copied."""
    skip_checksum: bool = False
    """Whether the sizes alone decide which files are equal and whether a copy is right."""
    remove_deleted_files: bool = True
    """Whether files that the source does not have (any more) go from the target.

    Falcon's default was to leave them; then data that was written anew, with other file names, would be there twice.
    """
    preserve_permission: bool = False
    """Whether files get the permission bits of the source's, instead of those of the feed's ``acl``."""
    preserve_times: bool = False
    """Whether files get the modification times of the source's."""
    preserve_user: bool = False
    """Whether files get the owner of the source's."""
    preserve_group: bool = False
    """Whether files get the group of the source's."""

    @property
    def preserved(self) -> tuple[str, ...]:
        """The properties by which attributes of files are kept, which other stores do not have."""
        return tuple(
            name for name, (field, _) in _KNOWN.items() if name.startswith("preserve") and getattr(self, field)
        )

    def properties(self) -> dict[str, str]:
        """The properties that say the same, without those that say nothing."""
        found = {name: getattr(self, field) for name, (field, _) in _KNOWN.items()}
        return {name: _text(value) for name, value in found.items() if value is not None}


def replication_options(properties: Mapping[str, str]) -> ReplicationOptions:
    """The options that the properties of a feed declare; properties that have nothing to do with it are left alone.

    Raises:
        ExpressionError: a value that is not legal, or an option that is not offered.
    """
    for name, message in option_problems(properties):
        raise ExpressionError(f"properties.{name}: {message}")
    values: dict[str, Any] = {
        field: read(properties[name]) for name, (field, read) in _KNOWN.items() if name in properties
    }
    return ReplicationOptions(**values)


def option_problems(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is wrong with the options among the properties of a replicated feed: property and message."""
    for name, value in properties.items():
        if name in _KNOWN:
            try:
                _KNOWN[name][1](value)
            except ExpressionError as error:
                yield name, str(error)
        elif _plain(name) in _BY_PLAIN_NAME:
            yield name, f"unknown property {name!r} (did you mean {_BY_PLAIN_NAME[_plain(name)]!r}?)"
        elif name in _NOT_OFFERED or name.startswith(("preserve", "distcp")):
            yield name, f"{name!r} is not an option of replication here; options: {', '.join(_KNOWN)}"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower()


def _number(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text):
        raise ExpressionError(f"{text!r} is not a whole number from 1 to 9999")
    return int(text)


def _rate(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text) or not float(text):
        raise ExpressionError(f"{text!r} is not a number of MB per second above 0")
    return float(text)


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ExpressionError(f'{text!r} is not legal: write "true" or "false"')
    return text == "true"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _order(text: str) -> Order:
    if text not in ("FIFO", "LIFO", "LAST_ONLY"):
        raise ExpressionError(f"{text!r} is not legal: write FIFO, LIFO or LAST_ONLY")
    return cast(Order, text)


_KNOWN: dict[str, tuple[str, Callable[[str], Any]]] = {
    "parallel": ("parallel", _number),
    "order": ("order", _order),
    "timeout": ("timeout", Frequency.parse),
    "maxMaps": ("max_maps", _number),
    "mapBandwidth": ("map_bandwidth", _rate),
    "overwrite": ("overwrite", _flag),
    "ignoreErrors": ("ignore_errors", _flag),
    "skipChecksum": ("skip_checksum", _flag),
    "removeDeletedFiles": ("remove_deleted_files", _flag),
    "preservePermission": ("preserve_permission", _flag),
    "preserveTimes": ("preserve_times", _flag),
    "preserveUser": ("preserve_user", _flag),
    "preserveGroup": ("preserve_group", _flag),
}
"""Property -> field of :class:`ReplicationOptions`, and how its value is read."""

_BY_PLAIN_NAME = {_plain(name): name for name in _KNOWN}

_NOT_OFFERED = {
    "atomic", "append", "async", "bandwidth", "blocksperchunk", "copybuffersize", "direct", "filelimit", "filters",
    "jobPriority", "numListstatusThreads", "queueName", "rdiff", "sizelimit", "skipcrccheck", "tdeEncryptionEnabled",
    "update", "useiterator",
}  # fmt: skip
"""Options of distcp and Falcon that mean nothing without MapReduce or HDFS, or that are said otherwise here."""


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
