"""Who writes an instance of a feed: the workloads that do, or somebody outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from falcon_assets.model.feed import Feed
from falcon_assets.planning.input_windows import nominal_of_output
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload


def makers(
    workloads: Iterable[Workload], feed: str, cluster: str, instance: datetime
) -> list[tuple[Workload, datetime]]:
    """Raises UnknownEntityError off the cluster, ExpressionError where an output is beyond the years 1 to 9999."""
    found: dict[tuple[Workload, datetime], None] = {}
    for workload in workloads:
        line = feed_timeline(workload.feeds[feed], cluster)
        for output in workload.outputs:
            if output.feed == feed:
                nominals = nominal_of_output(output, workload.timeline, line, workload.timezone, instance)
                found.update(dict.fromkeys((workload, nominal) for nominal in nominals))
    return list(found)


def not_from_outside(feed: Feed, cluster: str, producers: Sequence[Workload]) -> str | None:
    """Why nothing lands there from outside, given its producers; None: it does."""
    writers = ", ".join(repr(process.name) for process in producers)
    if writers:
        return f"process {writers} writes it on cluster {cluster!r}: materialize the partition to have it written anew"
    if feed.rollup is not None:
        return f"feed {feed.name!r} is made of {', '.join(feed.rollup.of)}: look at these"
    entry = feed.on(cluster)
    if entry and entry.type == "target":
        return f"feed {feed.name!r} is replicated to cluster {cluster!r}: look at its sources"
    return None
