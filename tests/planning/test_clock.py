from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from falcon_assets.errors import ExpressionError
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import Clock

STARTED = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "after_ten_minutes"),
    [
        (None, "2026-01-01T12:10Z"),
        ("", "2026-01-01T12:10Z"),
        ("  ", "2026-01-01T12:10Z"),
        ("2013-01-03T06:00Z", "2013-01-03T06:00Z"),
        ("2013-01-03T06:00Z@60x", "2013-01-03T16:00Z"),
        (" 2013-01-03T06:00Z@0.5x ", "2013-01-03T06:05Z"),
    ],
    ids=["none", "empty", "blank", "frozen", "fast", "slow"],
)
def test_clocks(text, after_ten_minutes):
    clock = Clock.parse(text, STARTED)
    assert format_instant(clock.at(STARTED + timedelta(minutes=10))) == after_ten_minutes


@pytest.mark.parametrize(
    "text", ["now", "2013-01-03", "2013-01-03T06:00Z@", "2013-01-03T06:00Z@60", "2013-01-03T06:00Z@0x", "@60x",
             "2013-01-03T06:00Z@-1x", "2013-01-03T06:00Z@60x@60x", "2013-02-30T06:00Z"]
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(ExpressionError) as caught:
        Clock.parse(text, STARTED)
    assert str(caught.value) == (
        f"{text!r} is not a clock: leave it out for the real one, or write 2013-01-03T06:00Z (frozen) or "
        "2013-01-03T06:00Z@60x (starts there, 60 times as fast)"
    )
