"""How often a tick of a sensor rounds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from falcon_assets.instances.coordination import ticks as tick_rounds
from falcon_assets.instances.coordination.ticks import rounds
from falcon_assets.planning.clock import Clock
from tests.own_time import OwnTime

NOW = datetime.now(UTC)
REAL, FROZEN, RUNNING = Clock(), Clock.parse("2013-01-01T00:00Z", NOW), Clock.parse("2013-01-01T00:00Z@60x", NOW)


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> OwnTime:
    own = OwnTime()
    monkeypatch.setattr(tick_rounds, "time", own)
    return own


def test_a_tick_has_rounds_until_just_before_the_next_one(time: OwnTime) -> None:
    assert [time.now for _ in rounds(REAL)] == [number / 2 for number in range(10)]


def test_a_round_that_takes_long_is_not_repeated(time: OwnTime) -> None:
    seen = 0
    for _ in rounds(REAL):
        seen += 1
        time.now += 0.5
    assert seen == 1


def test_a_tick_that_is_told_what_happens_waits_for_it(time: OwnTime) -> None:
    news = iter([3.0, 0.2])
    waited = []

    def wait(seconds: float) -> None:
        waited.append(round(seconds, 2))
        time.now += min(next(news, seconds), seconds)

    seen = [round(time.now, 2) for _ in rounds(REAL, 2, wait)]
    assert seen == [0.0, 3.05, 3.3, 29.5]
    assert waited == [29.45, 26.4, 26.15]


def test_a_tick_has_rounds_once_while_the_clock_stands_still() -> None:
    assert len(list(rounds(FROZEN))) == 1


def test_only_some_ticks_wait_at_a_time() -> None:
    waiting = []
    while next(one := rounds(RUNNING), True) is None and next(one, False) is None:
        waiting.append(one)
    assert len(waiting) >= 2
    assert len(list(rounds(REAL))) == 1
    for one in waiting:
        one.close()  # type: ignore[attr-defined]  # a generator
    again = rounds(REAL)
    assert next(again, True) is next(again, False) is None
