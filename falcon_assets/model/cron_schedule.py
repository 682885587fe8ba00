"""Cron lines whose times are whole steps of a frequency."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar

from falcon_assets.errors import ExpressionError
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.text_value import TextValue
from falcon_assets.model.wall_clock import from_wall, start_of_day, to_wall, zone

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?")
_DAY = 24 * 60
_LAST_DAY_OF_ALL_MONTHS = 28


@dataclass(frozen=True)
class CronSchedule(TextValue):
    """A cron line: minute, hour, day of the month, month, weekday.

    Its times are a start and whole steps from there, as those of every feed are: every few minutes or hours, or once in
    a day, a week or some months.
    """

    text: str

    JSON_SCHEMA: ClassVar[dict[str, Any]] = {"examples": ["0 * * * *", "30 2 * * *", "0 6 * * 1"]}

    @classmethod
    def parse(cls, text: str) -> CronSchedule:
        """Reads a line.

        Raises:
            ExpressionError: it is no cron line, or its times are not whole steps.
        """
        found = cls(" ".join(text.split()))
        found.frequency  # noqa: B018 - raises
        return found

    def __str__(self) -> str:
        return self.text

    @cached_property
    def frequency(self) -> Frequency:
        """The step from one time to the next."""
        everything = [frozenset(range(low, high + 1)) for _, low, high in _FIELDS]
        days, months, weekdays = (self._fields[at] == everything[at] for at in (2, 3, 4))
        weekday = {day % 7 for day in self._fields[4]}
        if days and months and (weekdays or len(weekday) == 7):
            if len(self._times) == 1:
                return Frequency(1, TimeUnit.DAYS)
            if (step := _even_step(self._times, _DAY)) is not None:
                return Frequency(step // 60, TimeUnit.HOURS) if step % 60 == 0 else Frequency(step, TimeUnit.MINUTES)
        elif len(self._times) == 1 and days and months and len(weekday) == 1:
            return Frequency(7, TimeUnit.DAYS)
        elif len(self._times) == 1 and weekdays and len(self._fields[2]) == 1:
            step = _even_step(sorted(self._fields[3]), 12)
            if step is not None and max(self._fields[2]) <= _LAST_DAY_OF_ALL_MONTHS:
                return Frequency(step, TimeUnit.MONTHS)
        raise ExpressionError(
            f"{self.text!r} has no even step: write one time a day, a week (one weekday) or every few months (one day, "
            "28 at most), or every n minutes or hours of a day; or a frequency instead"
        )

    def fits(self, timezone: str) -> bool:
        """Whether its times are whole steps there: several a day are not where clocks are changed by less, or more."""
        if not self.frequency.is_absolute:
            return True
        year = datetime(2024, 1, 1, tzinfo=UTC)
        offsets = {(year + timedelta(days=day)).astimezone(zone(timezone)).utcoffset() for day in range(366)}
        return len({(offset or timedelta()) % self.frequency.length for offset in offsets}) == 1

    def first_from(self, moment: datetime, timezone: str) -> datetime:
        """The first time at or after ``moment``, both aware; in ``timezone``, whose clock it is about."""
        return next(time for time in self._from(moment, timezone) if time >= moment)

    def last_until(self, moment: datetime, timezone: str) -> datetime:
        """The last time at or before ``moment``."""
        times = self._from(moment - 2 * self.frequency.length, timezone)
        found = first = next(times)
        while first <= moment:
            found, first = first, next(times)
        return found

    def _from(self, moment: datetime, timezone: str) -> Iterator[datetime]:
        day = start_of_day(to_wall(moment, timezone)) - timedelta(days=1)
        _, _, days, months, weekdays = self._fields
        while True:
            is_weekday = bool({day.isoweekday(), day.isoweekday() % 7} & weekdays)
            if day.day in days and day.month in months and is_weekday:
                yield from (from_wall(day + timedelta(minutes=time), timezone) for time in self._times)
            day += timedelta(days=1)

    @cached_property
    def _times(self) -> list[int]:
        """Minutes of the day."""
        return [hour * 60 + minute for hour in sorted(self._fields[1]) for minute in sorted(self._fields[0])]

    @cached_property
    def _fields(self) -> list[frozenset[int]]:
        said = self.text.split()
        if len(said) != len(_FIELDS):
            raise ExpressionError(
                f"{self.text!r} is not a cron line: write minute hour day month weekday, as 30 2 * * *"
            )
        return [self._values(field, *about) for field, about in zip(said, _FIELDS, strict=True)]

    def _values(self, field: str, name: str, low: int, high: int) -> frozenset[int]:
        found = set[int]()
        for part in field.split(","):
            match = _PART.fullmatch(part)
            first, last, step = (match[1], match[2], match[3]) if match else (None, None, None)
            start = int(first) if first else low
            end = int(last) if last else start if first and not step else high
            if match is None or not low <= start <= end <= high or step == "0":
                raise ExpressionError(
                    f"{self.text!r} is not a cron line: {part!r} is no {name}: {low} to {high}, *, a-b, */n or a list"
                )
            found.update(range(start, end + 1, int(step or 1)))
        return frozenset(found)


def _even_step(values: list[int], around: int) -> int | None:
    """The distance of neighbours, where it is the same all around; None: it is not."""
    gaps = {(after - before) % around or around for before, after in zip(values, values[1:] + values[:1], strict=True)}
    return gaps.pop() if len(gaps) == 1 else None
