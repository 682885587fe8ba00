"""Whether anything of a feed lands from outside."""

from __future__ import annotations

from collections.abc import Sequence

from falcon_assets.model.feed import Feed
from falcon_assets.planning.workloads.workload import Workload


def not_from_outside(feed: Feed, cluster: str, producers: Sequence[Workload]) -> str | None:
    """Why nothing of a feed lands on one of its clusters from outside, given who writes it there; None: it does."""
    writers = ", ".join(repr(process.name) for process in producers)
    if writers:
        return f"process {writers} writes it on cluster {cluster!r}: materialize the partition to have it written anew"
    entry = feed.on(cluster)
    if entry and entry.type == "target":
        return f"feed {feed.name!r} is replicated to cluster {cluster!r}: look at its sources"
    return None
