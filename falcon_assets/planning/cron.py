"""Which timelines a cron line can say, and how."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.shared import zone
from falcon_assets.planning.timeline import Timeline

_HOUR, _DAY = 60, 24 * 60


@dataclass(frozen=True)
class CronTimeline:
    """A cron line in a zone, without the ticks that match one of the exclusions."""

    schedule: str
    timezone: str
    exclusions: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def cron_of(timeline: Timeline) -> CronTimeline | None:
    """The cron line whose ticks from ``start`` on are exactly the instances; None where there is none.

    Minutes and hours need a daily period (they divide 24 hours) and tick in UTC, except that steps dividing an hour
    tick in the timeline's own zone, where they are the same. Days are daily or weekly, months divide a year; a wall
    time that daylight saving skips or repeats, and the days 29 to 31 of a month, have no cron line.
    """
    if timeline.frequency.is_absolute:
        minutes = timeline.frequency.length // timedelta(minutes=1)
        if _HOUR % minutes == 0 and _shifts_by_whole_hours(timeline.timezone, timeline.start.year, timeline.end.year):
            return _daily(timeline.start.astimezone(zone(timeline.timezone)), minutes, timeline.timezone)
        return _daily(timeline.start, minutes, "UTC") if _DAY % minutes == 0 else None
    local = timeline.start.astimezone(zone(timeline.timezone))
    schedule = _calendar(local, timeline.frequency)
    if schedule is None or not _wall_time_is_plain(
        timeline.timezone, local.hour, local.minute, local.year, timeline.end.year
    ):
        return None
    return CronTimeline(schedule, timeline.timezone)


def _daily(anchor: datetime, step: int, timezone: str) -> CronTimeline:
    """Every ``step`` minutes of every day, in phase with ``anchor``; ``step`` divides a day."""
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


@lru_cache(maxsize=1024)
def _shifts_by_whole_hours(timezone: str, first: int, last: int) -> bool:
    offsets = {_offset(zone(timezone), day) for day in _days(first, last)}
    return all(offset % timedelta(hours=1) == min(offsets) % timedelta(hours=1) for offset in offsets)


@lru_cache(maxsize=1024)
def _wall_time_is_plain(timezone: str, hour: int, minute: int, first: int, last: int) -> bool:
    """Whether that wall-clock time exists exactly once on every day of the years ``first`` to ``last``."""
    if timezone == "UTC":
        return True
    local = zone(timezone)
    for day in _days(first, last):
        wall = day.replace(hour=hour, minute=minute)
        if _offset(local, wall) != _offset(local, wall.replace(fold=1)):
            return False
    return True


def _offset(local: ZoneInfo, wall: datetime) -> timedelta:
    return wall.replace(tzinfo=local).utcoffset() or timedelta()


def _days(first: int, last: int) -> list[datetime]:
    start = datetime(first, 1, 1)
    return [start + timedelta(days=day) for day in range((datetime(min(last, 9998) + 1, 1, 1) - start).days)]
