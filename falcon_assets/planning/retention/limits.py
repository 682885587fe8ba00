"""How old is too old, and how often retention passes."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta

from falcon_assets.model.feed import Feed
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.wall_clock import add_months, from_wall, to_wall
from falcon_assets.planning.time.timeline import Timeline

OFTEN = Frequency(6, TimeUnit.HOURS)
"""How often retention passes where nothing may lie for a day."""

_DAY = timedelta(hours=24)
_DAILY = Frequency(24, TimeUnit.HOURS)
_EPOCH, _DOOMSDAY = (datetime(year, 1, 1, tzinfo=UTC) for year in (2000, 2200))
_EVER = datetime.min.replace(tzinfo=UTC)


def cadence(feed: Feed, cluster: str) -> Frequency | None:
    """Time from one pass of retention over ``feed`` on ``cluster`` to the next; None: nothing is evicted.

    ``lifecycle.retention.frequency``, that of the cluster before that of the feed; else 6 hours where anything may stay
    for less than 24 hours, and 24 hours for the others. Source: Falcon's defaults.
    """
    entry = feed.on(cluster)
    if entry is None or not (entry.retention or feed.versions):
        return None
    lifecycle = entry.lifecycle or feed.lifecycle
    if lifecycle is not None:
        return lifecycle.retention.frequency
    ages = [entry.retention.limit if entry.retention else None, feed.versions.for_ if feed.versions else None]
    return OFTEN if any(age is not None and age.length < _DAY for age in ages) else _DAILY


def pass_times(every: Frequency) -> Timeline:
    """When passes of that cadence are: counted from the beginning of 2000, in UTC, whatever feed they are for."""
    return Timeline(_EPOCH, _DOOMSDAY, every, "UTC")


def first_pass_over(feed: Feed, cluster: str, nominal: datetime, now: datetime) -> datetime | None:
    """The first pass of retention that finds an instance older than its limit; None: none does.

    One that is dated after now goes with the next pass, where ``future: delete`` says so.
    """
    every, entry = cadence(feed, cluster), feed.on(cluster)
    if every is None or entry is None or entry.retention is None:
        return None
    passes, limit = pass_times(every), entry.retention.limit
    if nominal > now and entry.retention.future == "delete":
        at = passes.index_at_or_before(now) + 1
    else:
        at = bisect_left(
            range(passes.count), True, key=lambda k: nominal < before(passes.instance(k), limit, feed.timezone)
        )
    return passes.instance(at) if at < passes.count else None


def before(moment: datetime, age: Frequency, timezone_name: str) -> datetime:
    """What is ``age`` before ``moment``, in UTC: days and months on the calendar of that zone, so months as they are.

    A day that the month lacks becomes its last day: ``months(1)`` before 31 March is the end of February. Before
    the calendar begins: its first moment, so nothing is as old as that.
    """
    try:
        if age.is_absolute:
            return moment - age.length
        wall = to_wall(moment, timezone_name)
        if age.unit is TimeUnit.DAYS:
            return from_wall(wall - age.length, timezone_name)
        return from_wall(add_months(wall, -age.count), timezone_name)
    except OverflowError:
        return _EVER
