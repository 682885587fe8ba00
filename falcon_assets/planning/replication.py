"""Options and sources of the replication of a feed."""

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
from falcon_assets.model.shared import Validity
from falcon_assets.model.template import parse_template, value_of
from falcon_assets.planning.timeline import Timeline, feed_timeline

PRESERVED_BETWEEN = "attributes of files are preserved from file:// to file:// and from HDFS to HDFS only"
Order = Literal["FIFO", "LIFO", "LAST_ONLY"]


@dataclass(frozen=True)
class ReplicationOptions:
    """Options by which the instances of a feed are replicated (source: Falcon's feed properties, those of distcp)."""

    parallel: int = 1
    order: Order = "FIFO"
    """Which ready instance is copied first; LAST_ONLY drops all but the newest."""
    timeout: Frequency | None = None
    """None: as for a process."""
    max_maps: int = 20
    """Tasks of one copy; 20 is distcp's default."""
    map_bandwidth: float | None = None
    """Mebibytes per second of each task; None: no limit."""
    bandwidth: float | None = None
    """Mebibytes per second of all tasks together; None: no limit."""
    overwrite: bool = False
    ignore_errors: bool = False
    """Publishes instances although some files could not be copied."""
    skip_checksum: bool = False
    remove_deleted_files: bool = True
    """Deletes files that the source lacks; Falcon left them, which doubles data written anew under other file names."""
    preserve_permission: bool = False
    preserve_times: bool = False
    preserve_user: bool = False
    preserve_group: bool = False

    @property
    def preserved(self) -> tuple[str, ...]:
        return tuple(
            name for name, (field, _) in _KNOWN.items() if name.startswith("preserve") and getattr(self, field)
        )

    def rate(self, tasks: int) -> float | None:
        """Mebibytes per second of each of so many tasks; None: no limit."""
        share = self.bandwidth / tasks if self.bandwidth and tasks else None
        return min((one for one in (self.map_bandwidth, share) if one is not None), default=None)

    def properties(self) -> dict[str, str]:
        found = {name: getattr(self, field) for name, (field, _) in _KNOWN.items()}
        return {name: _text(value) for name, value in found.items() if value is not None}


def replication_options(properties: Mapping[str, str]) -> ReplicationOptions:
    """Ignores other properties; raises ExpressionError for illegal values, and options that are not offered."""
    for name, message in option_problems(properties):
        raise ExpressionError(f"properties.{name}: {message}")
    values: dict[str, Any] = {
        field: read(properties[name]) for name, (field, read) in _KNOWN.items() if name in properties
    }
    return ReplicationOptions(**values)


def option_problems(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
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

_BY_PLAIN_NAME = {_plain(name): name for name in _KNOWN}

_NOT_OFFERED = {
    "atomic", "append", "async", "bandwidth", "blocksperchunk", "copybuffersize", "direct", "filelimit", "filters",
    "jobPriority", "numListstatusThreads", "queueName", "rdiff", "sizelimit", "skipcrccheck", "tdeEncryptionEnabled",
    "update", "useiterator",
}  # fmt: skip


@dataclass(frozen=True)
class Contribution:
    """One source's share in a target; ``partition``: patterns of the upper sub-partitions that it has; empty: all."""

    source: str
    theirs: Timeline
    ours: Timeline
    partition: tuple[str, ...]

    def brings(self, instance: datetime) -> bool:
        return self.theirs.contains(instance) and self.ours.contains(instance)

    def holds(self, name: str) -> bool:
        """A folder matches a pattern with or without Hive's ``key=``; files above the sub-partitions match none."""
        if not self.partition:
            return True
        folders = name.split("/")[:-1]
        return len(folders) >= len(self.partition) and all(map(_matches, folders, self.partition))


def contributions(feed: Feed, target: str, clusters: Mapping[str, Cluster]) -> tuple[Contribution, ...]:
    """Raises UnknownEntityError off the targets, ExpressionError for unknown variables in partitions.

    A target's partition stands below that of the source (source of the rule: Falcon's feed replication).
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
    """None: they share no instance (steps of one length all meet or never). Raises UnknownEntityError off a cluster."""
    theirs, ours = feed_timeline(feed, source), feed_timeline(feed, target)
    end = min(theirs.end, ours.end)
    found = ours.indexes(max(theirs.start, ours.start), end)
    if not found or not theirs.contains(first := ours.instance(found.start)) or first >= end:
        return None
    return replace(ours, start=first, end=end)


def replicated_timeline(feed: Feed, target: str) -> Timeline | None:
    own = feed.on(target)
    sources = [entry.name for entry in feed.clusters if entry.type == "source"]
    if own is None or own.type != "target":
        return None
    lines = [line for line in (common_timeline(feed, source, target) for source in sources) if line is not None]
    if not lines:
        return None
    return replace(min(lines, key=lambda line: line.start), end=max(line.end for line in lines))


def as_copied(feed: Feed, source: str, lines: Iterable[Timeline]) -> Feed:
    """Returns the feed with no more instances on the source than replications with these timelines copy."""
    spans = [(line.start, line.end) for line in lines]
    validity = Validity(start=min(start for start, _ in spans), end=max(end for _, end in spans))
    entries = (one.model_copy(update={"validity": validity}) if one.name == source else one for one in feed.clusters)
    return feed.model_copy(update={"clusters": tuple(entries)})


def sources_of(parts: Iterable[Contribution], instance: datetime) -> list[Contribution]:
    return [part for part in parts if part.brings(instance)]


def partition_patterns(partition: str | None, cluster: Cluster) -> tuple[str, ...]:
    """Fills in the variables of ``cluster``, ``*`` matches any folder; raises ExpressionError for unknown variables."""
    text = partition or ""
    filled = "".join(
        part if isinstance(part, str) else value_of(text, part, cluster.variables)
        for part in parse_template(text)
        if not isinstance(part, Call)
    )
    return tuple(level for level in filled.split("/") if level)


def _matches(folder: str, pattern: str) -> bool:
    return fnmatchcase(folder, pattern) or fnmatchcase(folder.partition("=")[2] or folder, pattern)
