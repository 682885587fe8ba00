"""How a feed is replicated: options that are offered, and stores that can do what they say."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.templates import is_mounted
from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.feed import Feed
from falcon_assets.planning.replication.options import option_problems, replication_options


def check_replication_options(definitions: Definitions) -> Iterator[Problem]:
    """Properties that are no options or have no legal value, and what object stores cannot do."""
    for feed in definitions.feeds.values():
        if any(entry.type == "target" for entry in feed.entity.clusters):
            for name, message in option_problems(feed.entity.properties):
                yield feed.problem(("properties", name), message)
            yield from _object_stores(definitions, feed)


def _object_stores(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    try:
        preserved = replication_options(feed.entity.properties).preserved
    except ExpressionError:
        preserved = ()
    for index, entry, cluster in definitions.feed_clusters(feed):
        if entry.type is None or is_mounted(feed.entity, cluster, readonly=entry.type == "source"):
            continue
        where = f"{entry.type} {entry.name!r} is an object store"
        for name in preserved:
            yield feed.problem(("properties", name), f"{where}, which has no such thing to preserve: remove {name}")
        if entry.type == "target" and feed.entity.availability_flag is None:
            rule = "which publishes by setting the flag: declare availability_flag"
            yield feed.problem(("clusters", index, "name"), f"{where}, {rule}")
