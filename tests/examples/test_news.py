"""What ``make up`` says of the instances that ended while it runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from examples.flights.news import in_words
from falcon_assets.planning.instance_record import InstanceState, KeyedInstance

S = InstanceState
HOUR = datetime(2013, 1, 2, tzinfo=UTC)


def ended(hour: int, state: S, reason: str = "", attempt: int = 1, process: str = "sums") -> KeyedInstance:
    at = HOUR + timedelta(hours=hour)
    return KeyedInstance(at, state, reason, attempt, process=process, cluster="primary", event_id=hour)


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        pytest.param([ended(1, S.SUCCEEDED)], ["sums on primary 2013-01-02T01:00Z succeeded"], id="one"),
        pytest.param(
            [ended(3, S.SUCCEEDED), ended(1, S.SUCCEEDED), ended(0, S.SUCCEEDED, process="alone")],
            [
                "alone on primary 2013-01-02T00:00Z succeeded",
                "sums on primary 2 instances from 2013-01-02T01:00Z to 2013-01-02T03:00Z succeeded",
            ],
            id="several",
        ),
        pytest.param(
            [ended(1, S.SUCCEEDED, attempt=2)],
            ["sums on primary 2013-01-02T01:00Z succeeded (not the first attempt)"],
            id="again",
        ),
        pytest.param(
            [
                ended(1, S.FAILED, "boom\n\nat line 3\nand\nso on"),
                ended(2, S.TIMED_OUT, "missing"),
                ended(3, S.KILLED, "x"),
            ],
            [
                "sums on primary 2013-01-02T01:00Z failed: boom\n  at line 3\n  and\n  ...",
                "sums on primary 2013-01-02T03:00Z was stopped: x",
                "sums on primary 2013-01-02T02:00Z timed out: missing",
            ],
            id="with-their-causes",
        ),
        pytest.param(
            [ended(hour, S.FAILED, f"boom {hour}") for hour in range(6)],
            [
                *(f"sums on primary 2013-01-02T0{hour}:00Z failed: boom {hour}" for hour in range(3)),
                "sums on primary 3 instances from 2013-01-02T03:00Z to 2013-01-02T05:00Z failed as well",
            ],
            id="many-failures",
        ),
    ],
)
def test_every_end_is_said_once_by_name(found: list[KeyedInstance], lines: list[str]) -> None:
    assert list(in_words(found)) == lines
