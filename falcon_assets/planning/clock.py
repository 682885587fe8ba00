"""The clock that decisions go by: the real one, a frozen one, or one that starts in the past and runs fast."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.errors import ExpressionError
from falcon_assets.model.instant import parse_instant

_SPEED = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)x")


@dataclass(frozen=True)
class Clock:
    """Turns real time into the time that this installation lives in.

    Attributes:
        origin: The time that it shows at ``started``; None: it shows real time.
        started: Real time at which it was started.
        speed: Seconds that it runs per real second; 0 = frozen at ``origin``.
    """

    origin: datetime | None = None
    started: datetime | None = None
    speed: float = 0

    @classmethod
    def parse(cls, text: str | None, started: datetime) -> Clock:
        """Reads a clock.

        Args:
            text: None or "" = the real clock; ``2013-01-03T06:00Z`` = frozen; ``2013-01-03T06:00Z@60x`` = starts there
                and runs 60 times as fast as real time.
            started: Real time of the start.

        Raises:
            ExpressionError: anything else.
        """
        if not text or not text.strip():
            return cls()
        instant, at, pace = text.strip().partition("@")
        speed = _SPEED.fullmatch(pace)
        if at and (speed is None or float(speed[1]) == 0):
            raise _bad(text)
        try:
            return cls(parse_instant(instant), started, float(speed[1]) if speed else 0)
        except ExpressionError:
            raise _bad(text) from None

    def at(self, real_now: datetime) -> datetime:
        """What this clock shows at the real time ``real_now``."""
        if self.origin is None or self.started is None:
            return real_now
        return self.origin + (real_now - self.started) * self.speed


def _bad(text: str) -> ExpressionError:
    return ExpressionError(
        f"{text!r} is not a clock: leave it out for the real one, or write 2013-01-03T06:00Z (frozen) or "
        "2013-01-03T06:00Z@60x (starts there, 60 times as fast)"
    )
