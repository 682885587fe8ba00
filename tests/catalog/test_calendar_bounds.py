"""The ends of the calendar: what cannot work there is said, and a validity that goes on for ever works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.definition_files import FEEDS, FILES, changed, load, problems

SPAN = "{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}"
INPUT = '{name: flights, feed: raw, start: "now(0,0)", end: "now(0,0)"}'
DELAYS = FEEDS.partition("---")[2]


def with_delays(old: str, new: str) -> dict[str, str]:
    """The right definitions, but for the feed that the process writes."""
    assert DELAYS.count(old) == 1
    return {**FILES, "feeds.yaml": FEEDS.replace(DELAYS, DELAYS.replace(old, new))}


def for_ever() -> dict[str, str]:
    """Everything is valid for ever."""
    return {name: text.replace("end: 2014-01-01T00:00Z", "end: 9999-12-31T23:59Z") for name, text in FILES.items()}


@pytest.mark.parametrize("start", ["0001-01-01T00:00Z", "0999-12-31T23:59Z", "9001-01-01T00:00Z"])
def test_first_instance_outside_of_the_years(tmp_path: Path, start: str) -> None:
    files = with_delays(SPAN, f"{{start: {start}, end: 9999-12-31T23:59Z}}")
    rule = "is not legal: the first instance must be in the years 1000 to 9000"
    assert problems(tmp_path, files) == [f"feeds.yaml:24: clusters[0].validity.start: {start!r} {rule}"]


@pytest.mark.parametrize("end", ["2013-01-01T00:00Z", "2012-12-31T00:00Z"])
def test_no_instance_at_all(tmp_path: Path, end: str) -> None:
    files = with_delays("end: 2014-01-01T00:00Z", f"end: {end}")
    rule = f"start 2013-01-01T00:00Z must be before end {end}"
    assert problems(tmp_path, files) == [f"feeds.yaml:24: clusters[0].validity: {rule}"]


@pytest.mark.parametrize("frequency", ["months(1218)", "days(36526)", "hours(876601)"])
def test_step_of_more_than_a_century(tmp_path: Path, frequency: str) -> None:
    files = changed("processes.yaml", "frequency: hours(1)", f"frequency: {frequency}")
    rule = f"{frequency!r} is not legal: a step from one instance to the next is a century at most"
    assert problems(tmp_path, files) == [f"processes.yaml:3: frequency: {rule}"]


def test_clocks_that_were_set_by_the_sun(tmp_path: Path) -> None:
    files = with_delays("hours(1)", "days(1)\ntimezone: America/New_York")
    files["feeds.yaml"] = files["feeds.yaml"].replace(DELAYS[-60:], DELAYS[-60:].replace("2013", "1880"))
    rule = "had an offset from UTC with seconds then: start later, or use a frequency of minutes or hours"
    assert problems(tmp_path, files)[0] == (
        f"feeds.yaml:25: clusters[0].validity.start: clocks in America/New_York {rule}"
    )


def test_hours_when_clocks_were_set_by_the_sun(tmp_path: Path) -> None:
    files = with_delays("hours(1)", "hours(1)\ntimezone: America/New_York")
    files["feeds.yaml"] = files["feeds.yaml"].replace(DELAYS[-60:], DELAYS[-60:].replace("start: 2013", "start: 1880"))
    load(tmp_path, files)


WINDOWS = {
    "the_next_hour": ("now(0,0)", "now(1,0)"),
    "a_century_on": ("now(0,0)", "dateOffset(instanceTime(),10,'YEAR')"),
    "next_year": ("currentYear(0,0,0,0)", "currentYear(12,0,0,0)"),
    "the_past": ("now(-5,0)", "now(0,0)"),
}


@pytest.mark.parametrize(("start", "end"), WINDOWS.values(), ids=WINDOWS)
def test_windows_of_processes_that_run_for_ever(tmp_path: Path, start: str, end: str) -> None:
    files = for_ever()
    declared = f'{{name: flights, feed: raw, start: "{start}", end: "{end}"}}'
    load(tmp_path, {**files, "processes.yaml": files["processes.yaml"].replace(INPUT, declared)})


def test_window_of_more_instances_than_anybody_reads(tmp_path: Path) -> None:
    files = for_ever()
    declared = '{name: flights, feed: raw, start: "now(-999999,0)", end: "now(1,0)"}'
    files["processes.yaml"] = files["processes.yaml"].replace(INPUT, declared)
    rule = "holds 1000001 instances of feed 'raw': 1000000 at most"
    assert problems(tmp_path, files) == [f"processes.yaml:8: inputs[0].start: input 'flights' {rule}"]


SHOWN = [
    (
        "hours(1)",
        "path_timezone: America/New_York",
        "instances 2013-11-03T05:00Z and 2013-11-03T06:00Z would share a path of "
        "'/delays/${YEAR}/${MONTH}/${DAY}/${HOUR}' in America/New_York, "
        "where clocks show 2013-11-03T01:00 twice: write UTC",
    ),
    (
        "days(1)",
        "timezone: America/New_York\npath_timezone: UTC",
        "instances 2013-03-10T00:30Z and 2013-03-10T23:30Z would share a path of "
        "'/delays/${YEAR}/${MONTH}/${DAY}' in UTC, "
        "at 2013-03-10T00:30 and 2013-03-10T23:30: write a finer path, or start at another time of day",
    ),
    ("hours(1)", "path_timezone: Asia/Kolkata", None),
    ("hours(1)", "path_timezone: UTC\ntimezone: America/New_York", None),
    ("days(1)", "timezone: America/New_York\npath_timezone: Asia/Tokyo", None),
]


@pytest.mark.parametrize(("frequency", "keys", "message"), SHOWN)
def test_two_instances_that_would_share_a_path(tmp_path: Path, frequency: str, keys: str, message: str | None) -> None:
    start = "2013-01-01T00:30Z" if frequency == "days(1)" and message else "2013-01-01T00:00Z"
    feed = DELAYS.replace("hours(1)", f"{frequency}\n{keys}").replace("start: 2013-01-01T00:00Z", f"start: {start}")
    feed = feed.replace("/${HOUR}", "") if frequency == "days(1)" else feed
    files = {"clusters.yaml": FILES["clusters.yaml"], "feeds.yaml": feed.lstrip()}
    found = problems(tmp_path, files) if message else load(tmp_path, files) and []
    line = feed.lstrip()[: feed.lstrip().index("path_timezone")].count("\n") + 1
    assert found == ([f"feeds.yaml:{line}: path_timezone: {message}"] if message else [])


STARTS = [
    (
        "months(1)",
        "America/New_York",
        "2026-08-01T00:00Z",
        "2026-08-01T00:00Z is 2026-07-31T20:00 in America/New_York, not midnight of the first of a month: instance "
        "2026-08-01T00:00Z lies in '/delays/2026/07'; start at 2026-08-01T04:00Z, or set path_timezone to the zone of "
        "the times in paths (UTC: in '/delays/2026/08')",
    ),
    (
        "days(1)",
        "Asia/Singapore",
        "2026-08-04T22:00Z",
        "2026-08-04T22:00Z is 2026-08-05T06:00 in Asia/Singapore, not midnight: instance 2026-08-04T22:00Z lies in "
        "'/delays/2026/08/05'; start at 2026-08-03T16:00Z, or set path_timezone to the zone of the times in paths "
        "(UTC: in '/delays/2026/08/04')",
    ),
    (
        "days(1)",
        "Asia/Kolkata",
        "2026-08-04T00:00Z",
        "2026-08-04T00:00Z is 2026-08-04T05:30 in Asia/Kolkata, not midnight: instance 2026-08-04T00:00Z lies in "
        "'/delays/2026/08/04'; start at 2026-08-03T18:30Z, or set path_timezone to the zone of the times in paths",
    ),
    ("days(1)", "America/New_York", "2026-08-01T04:00Z", None),
    ("months(1)", "America/New_York", "2026-08-01T04:00Z", None),
    ("days(1)", "UTC", "2026-08-01T04:00Z", None),
    ("days(1)", "America/Sao_Paulo", "2013-10-20T03:00Z", None),
    ("hours(1)", "America/New_York", "2026-08-01T00:00Z", None),
    ("days(1)", "Asia/Singapore\npath_timezone: UTC", "2026-08-04T22:00Z", None),
    ("days(1)", "Asia/Singapore\npath_timezone: Asia/Singapore", "2026-08-04T22:00Z", None),
]


@pytest.mark.parametrize(("frequency", "zone", "start", "message"), STARTS)
def test_a_start_that_is_another_date_there(
    tmp_path: Path, frequency: str, zone: str, start: str, message: str | None
) -> None:
    """Midnight that clocks leave out is the time after it."""
    feed = DELAYS.replace("hours(1)", f"{frequency}\ntimezone: {zone}").replace(SPAN, SPAN.replace("2014", "2030"))
    feed = feed.replace("start: 2013-01-01T00:00Z", f"start: {start}").lstrip()
    for finer in {"days(1)": ["/${HOUR}"], "months(1)": ["/${DAY}", "/${HOUR}"]}.get(frequency, []):
        feed = feed.replace(finer, "")
    found = load(tmp_path, {"clusters.yaml": FILES["clusters.yaml"], "feeds.yaml": feed}).warnings
    told = [str(one).partition("validity.start: ")[2] for one in found]
    assert told == ([message] if message else [])
