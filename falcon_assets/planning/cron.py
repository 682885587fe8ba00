"""Cron lines for timelines, where cron can express them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.wall_clock import start_of_day
from falcon_assets.planning.timeline import OffsetChange, Timeline, offset_changes

_HOUR, _DAY = 60, 24 * 60


@dataclass(frozen=True)
class CronTimeline:
    schedule: str
    timezone: str
    exclusions: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def cron_of(timeline: Timeline) -> CronTimeline | None:
    """Returns the cron line whose ticks from ``start`` on are exactly the instances; None where there is none.

    Minutes and hours need a daily period and tick in UTC, except that steps dividing an hour tick in the timeline's
    zone, where they are the same. A wall time that daylight saving skips or repeats, and the days 29 to 31 of a month,
    have no cron line.
    """
    local = timeline.local_start
    if timeline.frequency.is_absolute:
        minutes = timeline.frequency.length // timedelta(minutes=1)
        if _HOUR % minutes == 0 and not local.second and _shifts_by_whole_hours(timeline):
            return _daily(local, minutes, timeline.timezone)
        return _daily(timeline.start, minutes, "UTC") if _DAY % minutes == 0 else None
    schedule = _calendar(local, timeline.frequency)
    clock = local - start_of_day(local)
    plain = not local.second and not any(change.touches(clock, clock) for change in _changes(timeline))
    return CronTimeline(schedule, timeline.timezone) if schedule and plain else None


def _daily(anchor: datetime, step: int, timezone: str) -> CronTimeline:
    phase = (anchor.hour * _HOUR + anchor.minute) % step
    times = range(phase, _DAY, step)
    hours_by_minute: dict[int, set[int]] = {}
    for time in times:
        hours_by_minute.setdefault(time % _HOUR, set()).add(time // _HOUR)
    hours = set().union(*hours_by_minute.values())
    exclusions = tuple(
        f"{minute} {_list(hours - own)} * * *" for minute, own in sorted(hours_by_minute.items()) if hours - own
    )
    hour_field = "*" if len(hours) == 24 else _list(hours)
    return CronTimeline(f"{_list(set(hours_by_minute))} {hour_field} * * *", timezone, exclusions)


def _calendar(anchor: datetime, frequency: Frequency) -> str | None:
    time = f"{anchor.minute} {anchor.hour}"
    if frequency.unit is TimeUnit.DAYS:
        weekday = (anchor.weekday() + 1) % 7  # cron counts from Sunday = 0
        return {1: f"{time} * * *", 7: f"{time} * * {weekday}"}.get(frequency.count)
    if 12 % frequency.count or anchor.day > 28:
        return None
    months = {(anchor.month - 1 + step) % 12 + 1 for step in range(0, 12, frequency.count)}
    return f"{time} {anchor.day} {'*' if len(months) == 12 else _list(months)} *"


def _list(numbers: set[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def _shifts_by_whole_hours(timeline: Timeline) -> bool:
    return all(change.shift % timedelta(hours=1) == timedelta() for change in _changes(timeline))


def _changes(timeline: Timeline) -> frozenset[OffsetChange]:
    return offset_changes(timeline.timezone, (timeline.start - timedelta(days=1)).year, timeline.end.year)
