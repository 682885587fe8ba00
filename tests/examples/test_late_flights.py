"""Which flights of the demo come late, and what lands of them when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from examples.flights.late_flights import CORRECTED, FIRST_FILE, LATE, SECOND_FILE, deliveries

DAY = datetime(2013, 1, 3, tzinfo=UTC)


def flights(*carriers: str) -> pd.DataFrame:
    return pd.DataFrame({"carrier": carriers, "dep_delay": 7, "arr_delay": 9.0, "flight": range(len(carriers))})


def test_late_flights_come_in_a_file_of_their_own() -> None:
    hour = DAY + timedelta(hours=20)
    coming = deliveries(hour, flights("B6", "UA", "B6"))
    assert coming is not None
    assert coming.second_at == hour + LATE
    assert {name: list(rows["flight"]) for name, rows in coming.first.items()} == {FIRST_FILE: [1]}
    assert {name: list(rows["flight"]) for name, rows in coming.second.items()} == {
        FIRST_FILE: [1],
        SECOND_FILE: [0, 2],
    }


def test_corrections_replace_what_was_reported() -> None:
    hour, rows = DAY + timedelta(hours=16), flights("B6", "UA")
    coming = deliveries(hour, rows)
    assert coming is not None
    assert coming.second_at == hour + CORRECTED
    assert list(coming.first[FIRST_FILE]["dep_delay"]) == [7, 0]
    assert list(coming.second) == [SECOND_FILE]
    assert coming.second[SECOND_FILE] is rows


@pytest.mark.parametrize(
    ("hour", "carriers"),
    [(15, ("B6", "UA")), (20, ("B6", "B6")), (20, ("UA",)), (16, ("B6",))],
    ids=["other hour", "all late", "none late", "none wrong"],
)
def test_other_hours_come_at_once(hour: int, carriers: tuple[str, ...]) -> None:
    assert deliveries(DAY + timedelta(hours=hour), flights(*carriers)) is None
