"""Replication: from sources to targets, and no instance of a target from two sources."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.expression import Call
from falcon_assets.model.feed import Feed
from falcon_assets.model.template import parse_template, value_of


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
