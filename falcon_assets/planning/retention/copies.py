"""What keeps an instance on its source: a target that has not replicated it yet."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from falcon_assets.planning.retention.eviction import Hold
from falcon_assets.planning.time.timeline import Timeline


def replication_hold(target: str, timeline: Timeline, arrived: Collection[datetime]) -> Hold:
    """Holds what exists on the target too and has never been there.

    Args:
        target: Name of the target cluster.
        timeline: The feed's instances there.
        arrived: Those that are available there, or were until they were evicted; a set, for speed.
    """

    def hold(instance: datetime) -> str | None:
        if timeline.contains(instance) and instance not in arrived:
            return f"{target} has not replicated it yet"
        return None

    return hold
