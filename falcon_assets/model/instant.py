"""Instants: points in time as people write them, ``YYYY-MM-DDTHH:MMZ``, always UTC, to the minute."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from falcon_assets.errors import ExpressionError

_PATTERN = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2})Z")


@lru_cache(maxsize=1024)
def parse_instant(text: str) -> datetime:
    """The aware UTC datetime that ``text`` says.

    Raises:
        ExpressionError: not of the form ``YYYY-MM-DDTHH:MMZ`` or not a date of the calendar.
    """
    if found := _PATTERN.fullmatch(text):
        year, month, day, hour, minute = map(int, found.groups())
        try:
            return datetime(year, month, day, hour, minute, tzinfo=UTC)
        except ValueError:
            pass
    raise ExpressionError(f"{text!r} is not an instant: write YYYY-MM-DDTHH:MMZ (UTC), for example 2013-01-01T00:00Z")


def format_instant(moment: datetime) -> str:
    """``moment`` (aware) as ``YYYY-MM-DDTHH:MMZ``; seconds are cut off."""
    # Not strftime: its %Y does not pad years below 1000.
    return moment.astimezone(UTC).isoformat(timespec="minutes").removesuffix("+00:00") + "Z"


def _validate(value: Any) -> datetime:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return parse_instant(value if isinstance(value, str) else str(value))


Instant = Annotated[
    datetime,
    BeforeValidator(_validate),
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}Z$", "examples": ["2013-01-01T00:00Z"]}
    ),
]
"""A field that holds an instant."""
