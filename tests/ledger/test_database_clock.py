"""The database remembers its clock, and refuses another one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, select, text

from falcon_assets.errors import SettingsError
from falcon_assets.history.dagster_internals.tables import EVENT_LOG
from falcon_assets.history.database import remember_clock, require_clock
from falcon_assets.history.tables import CLOCK
from falcon_assets.planning.clock import Clock

STARTED = datetime(2026, 1, 1, 12, tzinfo=UTC)
AT = datetime(2026, 5, 5, 10, tzinfo=UTC)
REAL = Clock()
STANDS = Clock(datetime(2013, 1, 3, 6, tzinfo=UTC))
STANDS_LATER = Clock(datetime(2013, 1, 3, 7, tzinfo=UTC))
RUNS = Clock(STANDS.origin, STARTED, 60)
RUNS_ANEW = Clock(STANDS.origin, STARTED + timedelta(hours=1), 60)


@pytest.fixture(autouse=True)
def nothing_known(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(CLOCK.delete())


def remember(engine: Engine, clock: Clock, *, anew: bool = False) -> None:
    with engine.begin() as connection:
        remember_clock(connection, clock, EVENT_LOG, anew=anew)


def known(engine: Engine) -> Clock:
    with engine.connect() as connection:
        return Clock.from_tag(connection.execute(select(CLOCK.c.tag)).scalar_one())


def require(engine: Engine, clock: Clock) -> None:
    with engine.connect() as connection:
        require_clock(connection, clock)


@pytest.mark.parametrize("first", [REAL, STANDS, RUNS], ids=["real", "stands", "runs"])
def test_the_first_one_is_remembered(engine: Engine, first: Clock) -> None:
    require(engine, first)
    remember(engine, first)
    remember(engine, first)
    require(engine, first)
    assert known(engine) == first


@pytest.mark.parametrize(
    ("before", "after"),
    [(REAL, STANDS), (REAL, RUNS), (STANDS, REAL), (RUNS, REAL), (RUNS, STANDS), (RUNS, RUNS_ANEW)],
    ids=["real-stands", "real-runs", "stands-real", "runs-real", "runs-stands", "runs-anew"],
)
def test_another_one_is_refused(engine: Engine, before: Clock, after: Clock) -> None:
    remember(engine, before)
    for act in (remember, require):
        with pytest.raises(SettingsError, match=r"^the database uses another clock"):
            act(engine, after)
    assert known(engine) == before


@pytest.mark.parametrize("after", [STANDS_LATER, RUNS], ids=["stands", "runs"])
def test_one_that_stands_is_set_by_hand(engine: Engine, after: Clock) -> None:
    remember(engine, STANDS)
    require(engine, after)
    remember(engine, after)
    assert known(engine) == after


def test_a_person_may_set_a_simulated_one_anew_and_no_other(engine: Engine) -> None:
    remember(engine, RUNS)
    remember(engine, RUNS_ANEW, anew=True)
    assert known(engine) == RUNS_ANEW
    with pytest.raises(SettingsError):
        remember(engine, REAL, anew=True)


def test_what_is_said(engine: Engine) -> None:
    remember(engine, RUNS)
    with pytest.raises(SettingsError) as refused:
        require(engine, REAL)
    assert str(refused.value) == (
        "the database uses another clock (2013-01-03T06:00Z@60x since 2026-01-01T12:00:00Z) than this process "
        "(the real time); decisions by one are wrong by the other: set FALCON_CLOCK=2013-01-03T06:00Z@60x, or "
        "keep another history with another FALCON_HOME or FALCON_DATABASE_URL"
    )
    with pytest.raises(SettingsError, match="by the other: leave FALCON_CLOCK out, or keep another history"):
        require(engine, STANDS)


@pytest.mark.parametrize(
    ("seen", "refused", "accepted"),
    [(AT, STANDS, REAL), (datetime(2013, 1, 2, tzinfo=UTC), REAL, RUNS)],
    ids=["real", "simulated"],
)
def test_a_history_of_an_earlier_version_tells_its_clock(
    engine: Engine, seen: datetime, refused: Clock, accepted: Clock
) -> None:
    """By when Dagster wrote down what the falcon clock showed."""
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO event_logs (id, run_id, event, timestamp) VALUES (7, '', '', :at)"),
            {"at": AT.replace(tzinfo=None)},
        )
        connection.execute(
            text(
                "INSERT INTO falcon.feed_instances (cluster, feed, instance, state, version, landed_at, seen_at, "
                "changes, event_id, version_event, late) "
                "VALUES ('c', 'f', :at, 'AVAILABLE', 'v', :at, :at, 0, 7, 7, false)"
            ),
            {"at": seen},
        )
    try:
        with pytest.raises(SettingsError):
            remember(engine, refused)
        remember(engine, accepted)
        assert known(engine) == accepted
    finally:
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM event_logs"))
            connection.execute(text("DELETE FROM falcon.feed_instances"))
