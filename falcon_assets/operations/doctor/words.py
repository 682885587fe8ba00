"""Words that several checks use."""

from __future__ import annotations

from datetime import timedelta

from falcon_assets.errors import count_of
from falcon_assets.operations.doctor.judgement import Judgement, warning

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def lasting(time: timedelta) -> str:
    """``3 hours``: in the largest unit that fits."""
    seconds = int(time.total_seconds())
    for length, unit in _UNITS:
        if seconds >= length:
            return count_of(seconds // length, unit)
    return count_of(seconds, "second")


def not_checked(why: str) -> Judgement:
    """Of what nothing can be said about."""
    return warning(f"not checked: {why}", "mend that first")
