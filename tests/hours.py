"""The hours of 2013, when everything happens in tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2013, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hour(number: float) -> datetime:
    """The hour of that number since the beginning of the year."""
    return START + number * HOUR
