"""Expressions that Falcon evaluated by the zone of the feed, and that go by the process's here."""

from __future__ import annotations

import pytest

from falcon_assets.features.falcon_xml.conversion import Imported, convert
from falcon_assets.features.falcon_xml.feed_zones import plain_document, zone_warnings
from tests.features.falcon_xml.definitions import FEED, OUTPUT, PROCESS, changed

WINDOW = 'start="now(-1,0)" end="now(0,0)"'
UTC = "<timezone>UTC</timezone>"


def imported(text: str) -> Imported:
    found = convert(text.encode(), "a.xml")
    assert isinstance(found, Imported)
    return found


def told(
    window: str, feed_zone: str = "UTC", process_zone: str = "UTC", out: str = "now(0,0)"
) -> list[tuple[str, str]]:
    feed = changed(FEED, UTC, f"<timezone>{feed_zone}</timezone>")
    process = changed(changed(PROCESS, UTC, f"<timezone>{process_zone}</timezone>"), WINDOW, window)
    process = changed(process, 'instance="now(0,0)"', f'instance="{out}"')
    feeds = {one.name: plain_document(one.keys) for one in map(imported, (feed, OUTPUT))}
    return [(one.name, one.message) for one in zone_warnings(imported(process).keys, feeds)]


def test_a_window_is_told_with_an_instance_that_shows_it() -> None:
    (start,) = told('start="today(0,0)" end="now(0,0)"', feed_zone="Asia/Kolkata")
    assert start == (
        "process/inputs/input/@start",
        "today(0,0) counted in the zone of feed 'clicks' in Falcon, Asia/Kolkata, and counts in the process's here, "
        "UTC: for 2012-01-02T00:00Z it was 2012-01-01T18:00Z of the feed, and is 2012-01-02T00:00Z; give both one "
        "timezone, or write the hours that lie between into the expression",
    )


def test_an_output_too() -> None:
    (out,) = told(WINDOW, process_zone="America/New_York", out="yesterday(0,0)")
    assert out[0] == "process/outputs/output/@instance"
    assert "for 2012-01-02T00:00Z it was 2012-01-01T00:00Z of the feed, and is 2011-12-31T05:00Z" in out[1]


@pytest.mark.parametrize(
    ("window", "feed_zone", "process_zone"),
    [
        ('start="today(0,0)" end="now(0,0)"', "Europe/Berlin", "Europe/Berlin"),
        ('start="now(-3,0)" end="now(0,0)"', "Asia/Kolkata", "UTC"),
        ('start="latest(-1)" end="latest(0)"', "Asia/Kolkata", "UTC"),
        ('start="today(0,0" end="now(0,0)"', "Asia/Kolkata", "UTC"),
        ('start="today(0,0)" end="now(0,0)"', "Nowhere/Land", "UTC"),
    ],
    ids=["one zone", "no day in it", "what is there", "no expression", "no zone of Java"],
)
def test_where_both_are_the_same_nothing_is_told(window: str, feed_zone: str, process_zone: str) -> None:
    assert told(window, feed_zone, process_zone) == []
