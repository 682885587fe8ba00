"""Timelines as Dagster partitions: one partition per instance, its key the instance's nominal time.

A frequency with a daily, weekly or yearly period is a time-window partitions definition. The others are dynamic
partitions: their name has the timeline, from which the instance storage computes the keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import MAXYEAR, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import ExpressionError
from falcon_assets.model.feed import Feed
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.model.wall_clock import zone
from falcon_assets.planning.cron import cron_of
from falcon_assets.planning.input_partitions import FeedAsset, Rewriter
from falcon_assets.planning.replication import replicated_timeline
from falcon_assets.planning.timeline import Timeline, feed_timeline

if TYPE_CHECKING:
    import dagster as dg


_UTC_KEY = "%Y-%m-%dT%H:%MZ"
_ZONED_KEY = "%Y-%m-%dT%H:%M%z"
_DYNAMIC = "falcon"


@lru_cache(maxsize=4096)
def partitions_of(timeline: Timeline) -> dg.PartitionsDefinition[str]:
    import dagster as dg  # noqa: PLC0415 - takes seconds, and commands that only read need none of it

    cron = cron_of(timeline)
    if cron is None:
        return dg.DynamicPartitionsDefinition(name=_dynamic_name(timeline))
    local = zone(cron.timezone)
    end = _end(timeline)
    return dg.TimeWindowPartitionsDefinition(
        start=timeline.start.astimezone(local).strftime(_format(cron.timezone)),
        end=end.astimezone(local).strftime(_format(cron.timezone)) if end else None,
        fmt=_format(cron.timezone),
        timezone=cron.timezone,
        cron_schedule=cron.schedule,
        exclusions=list(cron.exclusions) or None,
        end_offset=1,
    )


def _end(timeline: Timeline) -> datetime | None:
    """The end of the last step, if within Dagster's bounds; None: it is in the calendar's last year.

    Dagster counts steps beyond an end, and fails beyond the year 9999. Without an end it has the partitions up to now.
    """
    try:
        end = timeline.instance(timeline.count)
    except OverflowError:
        return None
    return end if end.year < MAXYEAR else None


def key_of(timeline: Timeline, instant: datetime) -> str:
    """Returns the partition key of an instance: ``2013-01-01T00:00Z``, or with the offset of a zone other than UTC."""
    cron = cron_of(timeline)
    if cron is None or cron.timezone == "UTC":
        return format_instant(instant)
    return instant.astimezone(zone(cron.timezone)).strftime(_ZONED_KEY)


def instant_of_key(key: str) -> datetime | None:
    """Returns the nominal time in a partition key; None: it is no key of this package."""
    try:
        return parse_instant(key) if key.endswith("Z") else datetime.strptime(key, _ZONED_KEY)
    except (ExpressionError, ValueError):
        return None


def _format(timezone: str) -> str:
    return _UTC_KEY if timezone == "UTC" else _ZONED_KEY


def _dynamic_name(timeline: Timeline) -> str:
    start, end = format_instant(timeline.start), format_instant(timeline.end)
    return f"{_DYNAMIC} {timeline.frequency} {start} {end} {timeline.timezone}"


@lru_cache(maxsize=4096)
def timeline_of_dynamic(name: str) -> Timeline | None:
    """Returns the timeline in the name of a dynamic partitions definition; None: it is not of this package."""
    words = name.split(" ")
    if len(words) != 5 or words[0] != _DYNAMIC:
        return None
    return Timeline(parse_instant(words[2]), parse_instant(words[3]), Frequency.parse(words[1]), words[4])


@dataclass(frozen=True)
class AssetPartitions:
    store: EntityStore
    _of_feeds: dict[tuple[str, str], FeedAsset] = field(default_factory=dict, init=False)

    def of_feed(self, feed: Feed, cluster: str) -> FeedAsset:
        key = (feed.name, cluster)
        if key not in self._of_feeds:
            self._of_feeds[key] = self._feed_asset(feed, cluster)
        return self._of_feeds[key]

    def partition_of(self, feed: Feed, cluster: str, instance: datetime) -> str:
        """Returns the asset's partition of an instance: the last one, if several write it."""
        asset = self.of_feed(feed, cluster)
        return key_of(asset.partitions, max(asset.partitions_of(instance), default=instance))

    def _feed_asset(self, feed: Feed, cluster: str) -> FeedAsset:
        timeline = feed_timeline(feed, cluster)
        if self.store.replications_to(feed.name, cluster):
            return FeedAsset(replicated_timeline(feed, cluster) or timeline)
        for workload in self.store.producers(feed.name, cluster):
            partitions = workload.partitions
            if partitions.shift is None:
                output = next(output for output in workload.outputs if output.feed == feed.name)
                return FeedAsset(timeline, Rewriter(output, partitions.timeline, workload.timezone))
        return FeedAsset(timeline)
