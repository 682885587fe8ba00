"""Frequencies and durations: ``minutes(n)``, ``hours(n)``, ``days(n)``, ``months(n)``, n > 0."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator

from falcon_assets.errors import ExpressionError
from falcon_assets.model.text_value import TextValue

_PATTERN = re.compile(r"(minutes|hours|days|months)\(([0-9]{1,6})\)")


class TimeUnit(str, Enum):
    """The four units of Falcon, finest first."""

    MINUTES = "minutes"
    HOURS = "hours"
    DAYS = "days"
    MONTHS = "months"


_LENGTH = {
    TimeUnit.MINUTES: timedelta(minutes=1),
    TimeUnit.HOURS: timedelta(hours=1),
    TimeUnit.DAYS: timedelta(days=1),
    TimeUnit.MONTHS: timedelta(days=30),
}


@dataclass(frozen=True)
class Frequency(TextValue):
    """``count`` units of time, as a step between instances or as a duration.

    Minutes and hours are absolute time. Days and months are steps on a calendar: how long one is depends on the
    month and, across a daylight-saving change, on the time zone.
    """

    count: int
    unit: TimeUnit

    JSON_SCHEMA: ClassVar[dict[str, Any]] = {
        "pattern": r"^(minutes|hours|days|months)\([1-9][0-9]*\)$",
        "examples": ["minutes(45)", "hours(1)", "days(1)", "months(1)"],
    }

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> Frequency:
        """Reads ``hours(1)`` and the like.

        Raises:
            ExpressionError: anything else, ``hours(0)`` included.
        """
        match = _PATTERN.fullmatch(text.strip())
        if match is None or int(match[2]) == 0:
            raise ExpressionError(
                f"{text!r} is not a frequency: write minutes(n), hours(n), days(n) or months(n) with a whole n > 0"
            )
        return cls(int(match[2]), TimeUnit(match[1]))

    @cached_property
    def is_absolute(self) -> bool:
        """Whether every step has the same length in absolute time (minutes and hours)."""
        return self.unit in (TimeUnit.MINUTES, TimeUnit.HOURS)

    @cached_property
    def length(self) -> timedelta:
        """The length; exact for minutes and hours, a day counted as 24 hours and a month as 30 days.

        For the calendar units good for comparisons only, never for stepping.
        """
        return self.count * _LENGTH[self.unit]

    def __str__(self) -> str:
        return f"{self.unit.value}({self.count})"


_CENTURY = timedelta(days=36525)


def _at_most_a_century(step: Frequency) -> Frequency:
    if step.length > _CENTURY:
        raise ExpressionError(f"{str(step)!r} is not legal: a step from one instance to the next is a century at most")
    return step


Step = Annotated[Frequency, AfterValidator(_at_most_a_century)]
"""The frequency of an entity. Durations may be longer: of them a thousand years mean *for ever*."""
