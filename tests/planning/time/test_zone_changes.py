from __future__ import annotations

from datetime import timedelta

import pytest

from falcon_assets.planning.timeline import OffsetChange, offset_changes


def hours(number: float) -> timedelta:
    return timedelta(hours=number)


@pytest.mark.parametrize(
    ("zone", "years", "expected"),
    [
        ("UTC", (1, 9999), set()),
        ("Asia/Kolkata", (2000, 2020), set()),
        ("America/New_York", (2010, 2099), {(2, 1), (2, -1)}),
        ("Europe/Berlin", (9000, 9999), {(2, 1), (3, -1)}),
        ("America/Sao_Paulo", (2010, 2015), {(0, 1), (0, -1)}),
        ("America/Sao_Paulo", (2020, 2022), set()),
        ("Australia/Lord_Howe", (2013, 2013), {(2, 0.5), (2, -0.5)}),
        ("America/Nuuk", (2025, 2025), {(23, 1), (0, -1)}),
        ("Pacific/Apia", (2011, 2011), {(4, -1), (3, 1), (0, 24)}),
    ],
)
def test_known_changes(zone, years, expected):
    assert offset_changes(zone, *years) == {OffsetChange(hours(at), hours(shift)) for at, shift in expected}


@pytest.mark.parametrize(
    ("change", "first", "last", "touched"),
    [
        ((2, 1), 2.5, 2.5, True),
        ((2, 1), 2, 2, True),
        ((2, 1), 3, 3, False),
        ((2, 1), 1, 2, False),
        ((2, 1), 3, 4, False),
        ((2, 1), 1, 4, True),
        ((2, -1), 1, 1, True),
        ((2, -1), 2, 2, False),
        ((2, -1), 0, 1, False),
        ((0, -1), 23, 24, True),
        ((0, -1), -1, 0, True),
        ((0, -1), 22, 23, False),
        ((0, 1), 23, 24, False),
        ((0, 1), 23, 24.5, True),
        ((0, 24), 12, 12, True),
        ((12, 1), 0, 24, True),
    ],
)
def test_touching(change, first, last, touched):
    assert OffsetChange(*map(hours, change)).touches(hours(first), hours(last)) is touched


@pytest.mark.parametrize(
    ("change", "clock", "stays"),
    [((2, 1), 2.5, True), ((0, 1), 0, True), ((23, 1), 23.5, False), ((0, -1), 23.5, True), ((0, 24), 5, False)],
)
def test_leaving_on_its_day(change, clock, stays):
    assert OffsetChange(*map(hours, change)).leaves_on_its_day(hours(clock)) is stays
