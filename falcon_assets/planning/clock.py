"""The clock that decisions go by: the real one, a frozen one, or one that starts in the past and runs fast."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from falcon_assets.errors import ExpressionError
from falcon_assets.model.instant import parse_instant

_TAG = re.compile(r"([^@ ]+)(?:@([0-9.]+(?:e[+-]?[0-9]+)?)x since ([^@ ]+))?")
_SPEED = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)x")

_DOOMSDAY = datetime.max.replace(tzinfo=UTC)
APART = timedelta(minutes=5)
"""By how much the clocks of two machines may differ although neither was set back."""


def is_set_back(written: datetime, now: datetime) -> bool:
    """Whether the clock was set back since it showed ``written``: nothing may wait until it shows that again."""
    return written > now and written - now > APART


def later(moment: datetime, wait: timedelta, times: int = 1) -> datetime:
    """The last moment of the year 9999 where the result lies beyond it."""
    try:
        return moment + wait * times
    except OverflowError:
        return _DOOMSDAY


@dataclass(frozen=True)
class Clock:
    """Real time; frozen at ``origin`` without ``started``; else ``speed`` times as fast since real time ``started``."""

    origin: datetime | None = None
    started: datetime | None = None
    speed: float = 0

    @classmethod
    def parse(cls, text: str | None, started: datetime) -> Clock:
        """Parses "", ``2013-01-03T06:00Z`` (frozen) or ``2013-01-03T06:00Z@60x``; else raises ExpressionError."""
        if not text or not text.strip():
            return cls()
        instant, at, pace = text.strip().partition("@")
        speed = _SPEED.fullmatch(pace)
        if at and (speed is None or float(speed[1]) == 0):
            raise _bad(text)
        try:
            return cls(parse_instant(instant), started, float(speed[1])) if speed else cls(parse_instant(instant))
        except ExpressionError:
            raise _bad(text) from None

    def at(self, real_now: datetime) -> datetime:
        """Raises ExpressionError where the clock has run beyond the year 9999."""
        if self.origin is None:
            return real_now
        if self.started is None:
            return self.origin
        try:
            return self.origin + (real_now - self.started) * self.speed
        except OverflowError:
            raise ExpressionError(f"the clock {self.tag} has left the years 1 to 9999: start it anew") from None

    @property
    def runs(self) -> bool:
        return self.speed > 0

    def may_go_on_as(self, other: Clock) -> bool:
        """Decides whether history written by this clock may be continued by ``other``.

        A running clock is continued by the same clock only, start included. A frozen clock is set by hand between
        commands, so every simulated clock may follow it. Real time and simulated time never follow each other.
        """
        by_hand = self.origin is not None and not self.runs
        return self.tag == other.tag or (by_hand and other.origin is not None)

    @property
    def text(self) -> str:
        """The value for FALCON_CLOCK, to the minute; "" for the real clock."""
        if self.origin is None:
            return ""
        instant = f"{self.origin.astimezone(UTC):%Y-%m-%dT%H:%MZ}"
        return f"{instant}@{self.speed:g}x" if self.runs else instant

    def __str__(self) -> str:
        if self.origin is None:
            return "the real time"
        return (
            f"{self.text} since {self.started:%Y-%m-%dT%H:%M:%SZ}" if self.started else f"{self.text}, standing still"
        )

    @property
    def tag(self) -> str:
        """The clock and its start, exactly, for :meth:`from_tag`; "" for the real clock."""
        if self.origin is None:
            return ""
        if self.started is None:
            return _written(self.origin)
        return f"{_written(self.origin)}@{str(float(self.speed)).removesuffix('.0')}x since {_written(self.started)}"

    @classmethod
    def from_tag(cls, tag: str) -> Clock:
        """Raises ExpressionError where the text is no :attr:`tag`."""
        if not tag:
            return cls()
        match = _TAG.fullmatch(tag)
        try:
            if match:
                origin, speed, started = match.groups()
                return cls(_read(origin), _read(started), float(speed)) if speed else cls(_read(origin))
        except ValueError:
            pass
        raise ExpressionError(f"{tag!r} is not the tag of a clock: 2013-01-03T06:00:00Z@60x since 2026-01-01T12:00:00Z")


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _read(written: str) -> datetime:
    if not written.endswith("Z"):
        raise ValueError(written)
    return datetime.fromisoformat(written[:-1] + "+00:00")


def _bad(text: str) -> ExpressionError:
    return ExpressionError(
        f"{text!r} is not a clock: leave it out for the real one, or write 2013-01-03T06:00Z (frozen) or "
        "2013-01-03T06:00Z@60x (starts there, 60 times as fast)"
    )
