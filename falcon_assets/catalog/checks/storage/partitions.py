"""Sub-partitions: nobody may speak of more of them than the feed declares."""

from __future__ import annotations

import re
from collections.abc import Iterator

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.expression import Call
from falcon_assets.model.feed import Feed, FeedCluster
from falcon_assets.model.path_rules import legal_path
from falcon_assets.model.template import Variable, parse_template, value_of

_HOLE = re.compile(r"\$\{[^{}]*\}")


def components(partition: str | None) -> tuple[str, ...]:
    """The parts of a partition expression, one per sub-partition (``*/US``)."""
    whole = _HOLE.sub("*", partition or "")  # a hole is one level, whatever stands in it
    return tuple(piece for piece in whole.split("/") if piece)


def check_partitions(definitions: Definitions) -> Iterator[Problem]:
    """Partitions of clusters and inputs that are deeper than the feed's, or of clusters with unknown variables."""
    for feed in definitions.feeds.values():
        yield from _deep_clusters(feed)
        for index, entry, cluster in definitions.feed_clusters(feed):
            path = ("clusters", index, "partition")
            yield from (feed.problem(path, text) for text in _unknown_variables(entry.partition, cluster))
            yield from (feed.problem(path, text) for text in _no_folder(entry.partition))
    for process in definitions.processes.values():
        for index, declared in enumerate(process.entity.inputs):
            path = ("inputs", index, "partition")
            yield from (process.problem(path, text) for text in _no_folder(declared.partition))
            read = definitions.feeds.get(declared.feed)
            if read is not None and len(components(declared.partition)) > len(read.entity.partitions):
                yield process.problem(path, f"{declared.partition!r} is {_deeper(read.entity)}")


def _no_folder(partition: str | None) -> Iterator[str]:
    try:
        legal_path(partition or "")
    except ExpressionError as error:
        yield str(error)


def _deep_clusters(feed: Declared[Feed]) -> Iterator[Problem]:
    allowed = len(feed.entity.partitions)
    sources = [entry for entry in feed.entity.clusters if entry.type == "source"]
    for index, entry in enumerate(feed.entity.clusters):
        path: KeyPath = ("clusters", index, "partition")
        own = len(components(entry.partition))
        if own > allowed:
            yield feed.problem(path, f"{entry.partition!r} is {_deeper(feed.entity)}")
        elif own and entry.type == "target":
            yield from _deep_pairs(feed, path, entry, sources)


def _deep_pairs(
    feed: Declared[Feed], path: KeyPath, target: FeedCluster, sources: list[FeedCluster]
) -> Iterator[Problem]:
    """A target's partition stands below that of its source (source of the rule: Falcon's feed validation)."""
    allowed = len(feed.entity.partitions)
    for source in sources:
        depth = len(components(source.partition))
        if depth <= allowed < depth + len(components(target.partition)):
            both = f"{target.partition!r} below {source.partition!r} of source {source.name!r}"
            yield feed.problem(path, f"{both} is {_deeper(feed.entity)}")


def _deeper(feed: Feed) -> str:
    names = ", ".join(feed.partitions) or "none"
    return f"deeper than feed {feed.name!r} is partitioned (partitions: {names})"


def _unknown_variables(partition: str | None, cluster: Cluster) -> Iterator[str]:
    text = partition or ""
    try:
        for part in parse_template(text):
            if isinstance(part, Call):
                yield f"{text!r}: only variables may stand in a partition, not {part.name}(...)"
            elif isinstance(part, Variable):
                value_of(text, part, cluster.variables)
    except ExpressionError as error:
        yield f"{error} on cluster {cluster.name!r}"
