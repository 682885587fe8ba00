"""Deadlines: until when the instances of a feed have to be there, those of a process to have started or ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from falcon_assets.model.feed import FeedSla
from falcon_assets.model.process import ProcessSla
from falcon_assets.planning.rules.retries import later
from falcon_assets.planning.time.timeline import Timeline

LOOK_AHEAD = timedelta(minutes=15)
"""How long before it happens a breach is pending at least (source: Falcon's feed.sla.lookAheadWindow.millis)."""
_BEGINNING = datetime.min.replace(tzinfo=UTC)


class SlaLevel(str, Enum):
    """The two levels of an SLA, of feeds and of processes, as definitions call them."""

    LOW = "low"
    HIGH = "high"
    START = "should_start_in"
    END = "should_end_in"

    @property
    def is_missed(self) -> bool:
        """Whether the SLA is missed when this is breached; else it is in danger (source: Falcon's slaLow)."""
        return self in (SlaLevel.HIGH, SlaLevel.END)


@dataclass(frozen=True)
class Deadline:
    """One level of the SLA of a feed or process on a cluster.

    Attributes:
        kind: feed or process.
        entity: Its name.
        cluster: Where.
        level: Which level.
        limit: How long after its nominal time an instance has time; a day is 24 hours long, a month 30 days.
        announced: How long after its nominal time a breach of an instance is pending, unless it is met.
        timeline: The instances.
    """

    kind: str
    entity: str
    cluster: str
    level: SlaLevel
    limit: timedelta
    announced: timedelta
    timeline: Timeline

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Names it: kind, entity, cluster, level."""
        return self.kind, self.entity, self.cluster, self.level.value

    def of(self, instance: datetime) -> datetime:
        """Until when that instance has time; what comes at this very moment is in time."""
        return later(instance, self.limit)

    def instances(self, first: datetime, before: datetime) -> range:
        """Indexes of the instances from ``first`` on, all before ``before``."""
        last = before - timedelta.resolution if before > _BEGINNING else before
        return self.timeline.indexes(first, last) if first <= last and self.timeline.count else range(0)


def earlier(moment: datetime, by: timedelta) -> datetime:
    """So long before a moment; the first moment of the year 1 where that lies before it."""
    try:
        return moment - by
    except OverflowError:
        return _BEGINNING


def feed_deadlines(feed: str, cluster: str, sla: FeedSla, timeline: Timeline) -> Iterator[Deadline]:
    """The deadlines of a feed on a cluster."""
    levels = ((SlaLevel.LOW, sla.low.length), (SlaLevel.HIGH, sla.high.length))
    return _deadlines("feed", feed, cluster, levels, timeline)


def process_deadlines(process: str, cluster: str, sla: ProcessSla, timeline: Timeline) -> Iterator[Deadline]:
    """The deadlines of a process on a cluster."""
    levels = ((SlaLevel.START, sla.should_start_in.length), (SlaLevel.END, sla.should_end_in.length))
    return _deadlines("process", process, cluster, levels, timeline)


def _deadlines(
    kind: str, entity: str, cluster: str, levels: tuple[tuple[SlaLevel, timedelta], ...], timeline: Timeline
) -> Iterator[Deadline]:
    """The second level is announced when the first one is breached, or as long before as the first one is."""
    warned: timedelta | None = None
    for level, limit in levels:
        announced = max(limit - LOOK_AHEAD, timedelta())
        announced = announced if warned is None else min(announced, warned)
        yield Deadline(kind, entity, cluster, level, limit, announced, timeline)
        warned = limit
