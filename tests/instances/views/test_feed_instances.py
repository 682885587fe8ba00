"""Lists of the instances of feeds: what is there, what was evicted, what is due and is not there."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml
from hypothesis import event, given
from hypothesis import strategies as st

from falcon_assets.errors import QueryError, UnknownEntityError, UnknownInstanceError
from falcon_assets.features.landing.store import set_incomplete
from falcon_assets.history.tables import CONSUMED, EVICTIONS
from falcon_assets.instances.views.listing import instance_status, latest, list_instances, summarize_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.instance_record import FeedState
from tests.builders import cluster_yaml
from tests.operations.rows import NOW, feed_row, fill, process_row, write
from tests.properties import examples

START = parse_instant("2013-04-02T00:00Z")
SPAN = "validity: {start: 2013-04-02T00:00Z, end: 2014-01-01T00:00Z}"
CLUSTERS = cluster_yaml("primary", colo="east") + cluster_yaml("backup", colo="west")
ENTITIES = f"""{CLUSTERS}
---
kind: feed
name: raw
frequency: hours(1)
availability_flag: _DONE
locations: {{data: "/raw/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters:
  - {{name: primary, type: source, {SPAN}, retention: {{limit: hours(3)}}}}
  - {{name: backup, type: target, {SPAN}, delay: minutes(40)}}
---
kind: feed
name: made
frequency: hours(1)
locations: {{data: "/made/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, {SPAN}}}]
---
kind: process
name: make
frequency: hours(1)
clusters: [{{name: primary, validity: {{start: 2013-04-02T01:00Z, end: 2014-01-01T00:00Z}}}}]
inputs: [{{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: made, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
"""
COPY = "raw from primary"


def hour(number: int) -> datetime:
    return START + timedelta(hours=number)


def listed(installation: Installation, **query: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = list_instances(installation, InstanceQuery(type="feed", **query)).as_data()["items"]
    return items


def test_what_is_there_is_told(installed: Callable[[str], Installation]) -> None:
    installation = installed(ENTITIES)
    write(installation, feed_row("raw", hour(1), bytes=7, files=2, records=3, run_id="run-1"))
    write(installation, process_row(COPY, hour(1), "SUCCEEDED", "backup"))
    read = {"process": COPY, "cluster": "backup", "nominal": hour(1), "input": "source", "feed": "raw"}
    seen = {"instance": hour(1), "version": "u", "read_event": 1, "stale": True, "input_cluster": "primary"}
    fill(installation, CONSUMED, {**read, **seen})
    (found,) = listed(installation, name="raw", cluster="primary", start=hour(1))
    feed = found.pop("feed")
    assert found == {
        "entity": "raw",
        "kind": "feed",
        "cluster": "primary",
        "instance": "2013-04-02T01:00Z",
        "state": "AVAILABLE",
        "reason": None,
        "attempt": 0,
        "run": "run-1",
        "started": None,
        "ended": None,
        "definition": None,
    }
    assert feed == {
        "path": "/raw/2013-04-02/01",
        "version": "v",
        "bytes": 7,
        "files": 2,
        "records": 3,
        "landed_at": "2013-04-02T01:00:00+00:00",
        "seen_at": "2013-04-02T01:00:00+00:00",
        "evicted_at": None,
        "expires_at": "2013-04-02T06:00:00+00:00",
        "replications": [{"source": "primary", "target": "backup", "state": "SUCCEEDED", "version": "u"}],
    }


def test_why_it_is_not_there(installed: Callable[[str], Installation]) -> None:
    installation = installed(ENTITIES)
    with installation.ledger.engine.begin() as connection:
        set_incomplete(connection, "primary", [("raw", hour(2))], [])
    write(installation, process_row("make", hour(2), "FAILED"))
    found = {(one["entity"], one["cluster"], one["instance"][11:13]): one["reason"] for one in listed(installation)}
    assert found["raw", "primary", "01"] == {"kind": "not_landed", "text": "has not landed"}
    assert found["raw", "primary", "02"]["text"] == "was there without its availability flag _DONE"
    assert found["raw", "backup", "02"]["text"] == "is not copied: raw from primary is WAITING"
    assert found["made", "primary", "00"]["text"] == "is written by no instance of make"
    assert found["made", "primary", "02"] == {
        "kind": "not_written",
        "text": "is not written: make 2013-04-02T02:00Z is FAILED",
        "process": "make",
        "instance": "2013-04-02T02:00Z",
        "state": "FAILED",
    }


def test_what_was_evicted_says_how(installed: Callable[[str], Installation]) -> None:
    installation = installed(ENTITIES)
    gone = {"state": "EVICTED", "evicted_at": hour(5), "evicted_by": "run-9", "run_id": "run-1"}
    write(installation, *(feed_row("raw", hour(number), **gone) for number in (0, 1)))
    decided = {"cluster": "primary", "feed": "raw", "locations": [], "files": 1, "bytes": 1, "run_id": "run-9"}
    why = {"action": "archive", "reason": "older than hours(3)", "archive_root": "s3://old", "archive_to": "/raw/00"}
    fill(installation, EVICTIONS, {**decided, **why, "instance": hour(0), "decided_at": hour(5)})
    archived, deleted = listed(installation, filters=(("state", "evicted"),))
    assert (archived["state"], archived["run"]) == ("EVICTED", "run-9")
    assert archived["reason"]["text"] == "was archived to s3://old/raw/00: older than hours(3)"
    assert archived["feed"]["evicted_at"] == "2013-04-02T05:00:00+00:00"
    assert archived["feed"]["expires_at"] is None
    assert deleted["reason"]["text"] == "was deleted by retention"


def test_what_is_not_due(installed: Callable[[str], Installation]) -> None:
    """The copy of five o'clock is due at 5:40."""
    installation = installed(ENTITIES)
    found = {(one["cluster"], one["instance"][11:13]) for one in listed(installation, name="raw")}
    assert found == {("primary", f"0{number}") for number in range(6)} | {("backup", f"0{n}") for n in range(5)}
    (copy, source) = instance_status(installation, InstanceQuery("raw", "feed", start=hour(5))).items
    assert (copy.state, source.state) == (FeedState.PENDING, FeedState.MISSING)
    assert copy.reason
    assert copy.reason["text"] == "is due at 2013-04-02T05:40Z"
    assert {one.state for one in instance_status(installation, InstanceQuery("made", "feed", start=hour(9))).items} == {
        FeedState.PENDING
    }


def test_mistakes(installed: Callable[[str], Installation]) -> None:
    installation = installed(ENTITIES)
    with pytest.raises(UnknownEntityError, match="'make' is a process: leave out --type feed"):
        listed(installation, name="make")
    with pytest.raises(UnknownEntityError, match="there is no feed 'rw'"):
        listed(installation, name="rw")
    with pytest.raises(QueryError, match="there is no state FAILED; there is: AVAILABLE, EVICTED, MISSING, PENDING"):
        listed(installation, filters=(("state", "FAILED"),))
    with pytest.raises(UnknownInstanceError, match="made has no instance 2013-04-02T00:30Z"):
        instance_status(installation, InstanceQuery("made", "feed", start=START + timedelta(minutes=30)))


FREQUENCIES = ("minutes(45)", "hours(1)", "hours(5)", "days(1)", "days(2)", "months(1)")
ZONES = ("UTC", "America/New_York", "Europe/Berlin")
SORTS = ("entity", "-entity", "instance", "-instance")


def steps(start: datetime, end: datetime, frequency: str, zone: str) -> list[datetime]:
    """Every instance, by the words of the definition alone."""
    unit, number = frequency[:-1].split("(")
    found, wall = list[datetime](), start.astimezone(ZoneInfo(zone))
    for k in range(10_000):
        if unit == "months":
            years, month = divmod(wall.month - 1 + k * int(number), 12)
            day = min(wall.day, monthrange(wall.year + years, month + 1)[1])
            at = wall.replace(year=wall.year + years, month=month + 1, day=day).astimezone(UTC)
        elif unit == "days":
            at = (wall + k * timedelta(days=int(number))).astimezone(UTC)
        else:
            at = start + k * timedelta(**{unit: int(number)})
        if at >= end:
            return found
        found.append(at)
    raise AssertionError(start, end, frequency)


def beginning(frequency: str, ago: int) -> datetime:
    """So long ago, in units that fit the frequency; not so late in a month that some months have no such day."""
    if "months" in frequency:
        return NOW.replace(month=NOW.month - ago, day=11)
    return NOW.replace(minute=0) - ago * timedelta(days=5 if "days" in frequency else 0.5)


def validity(start: datetime, end: datetime) -> dict[str, str]:
    return {"start": format_instant(start), "end": format_instant(end)}


@given(st.data())
@examples(160)
def test_lists_are_what_counting_through_everything_gives(
    installed: Callable[[str], Installation], data: st.DataObject
) -> None:
    """Random feeds, rows (on no timeline, too, and dated after now) and queries; against all instances in memory."""
    feeds, instances = list[dict[str, Any]](), dict[tuple[str, str, datetime], str]()
    lines = dict[tuple[str, str], list[datetime]]()
    for name in data.draw(st.lists(st.sampled_from(["a", "b", "Z"]), unique=True, min_size=1)):
        frequency, zone = data.draw(st.sampled_from(FREQUENCIES)), data.draw(st.sampled_from(ZONES))
        ago, length = data.draw(st.integers(-2, 3)), data.draw(st.integers(1, 4))
        start, end = beginning(frequency, ago), beginning(frequency, ago - length)
        own = steps(start, end, frequency, zone)
        entry: dict[str, Any] = {"name": "primary", "validity": validity(start, end)}
        lines[name, "primary"] = [one for one in own if one <= NOW]
        entries = [entry]
        if data.draw(st.booleans()):
            later, delay = data.draw(st.sampled_from(own[:3])), data.draw(st.sampled_from([1, 40, 600]))
            entry["type"] = "source"
            target = {
                "name": "backup",
                "type": "target",
                "validity": validity(later, end),
                "delay": f"minutes({delay})",
            }
            entries.append(target)
            due = NOW - timedelta(minutes=delay)
            lines[name, "backup"] = [one for one in own if later <= one <= due]
        path = f"/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}-${{MINUTE}}"
        told = {"frequency": frequency, "timezone": zone, "locations": {"data": path}, "clusters": entries}
        feeds.append({"kind": "feed", "name": name, **told})
    for (name, cluster), due in lines.items():
        instances |= {(name, cluster, at): "MISSING" for at in due}
        known = st.sampled_from([*due, NOW - timedelta(minutes=7), NOW + timedelta(hours=3)])
        for at in data.draw(st.lists(known, unique=True, max_size=6)):
            instances[name, cluster, at] = data.draw(st.sampled_from(["AVAILABLE", "EVICTED"]))
    installation = installed(CLUSTERS + "---\n" + yaml.safe_dump_all(feeds))
    there = [(key, state) for key, state in instances.items() if state != "MISSING"]
    write(installation, *(feed_row(name, at, where, state=state) for (name, where, at), state in there))
    event(f"{len(instances)} instances"[:1])

    states = data.draw(st.lists(st.sampled_from(["AVAILABLE", "EVICTED", "MISSING"]), unique=True))
    first, last = sorted(data.draw(st.lists(st.integers(-200, 40), min_size=2, max_size=2)))
    bounds = data.draw(st.sampled_from([{}, {"end": NOW}, {"start": NOW + timedelta(hours=first), "end": NOW}]))
    bounds = {**bounds, **({"end": NOW + timedelta(hours=last)} if bounds else {})}
    sort, limit = data.draw(st.sampled_from(SORTS)), data.draw(st.sampled_from([1, 3, 100]))
    filters = tuple(("state", one) for one in states)
    query = InstanceQuery(type="feed", sort=sort, limit=limit, filters=filters, **bounds)
    expected = [
        (*key, state)
        for key, state in instances.items()
        if (not states or state in states) and bounds.get("start", key[2]) <= key[2] <= bounds.get("end", key[2])
    ]
    by_time = "instance" in sort
    expected.sort(key=lambda one: (one[2], *one[:2]) if by_time else one[:3], reverse=sort.startswith("-"))
    found = []
    while True:
        page = list_instances(installation, query)
        found += [(one.entity, one.cluster, one.instance, one.state.value) for one in page.items]
        assert page.total == len(expected)
        if page.next is None:
            break
        query = replace(query, after=page.next)
    assert found == expected
    counts = {
        (one.entity, one.cluster, state.value): number
        for one in summarize_instances(installation, replace(query, after=None))
        for state, number in one.states.items()
    }
    keys = {(name, cluster, state) for name, cluster, _, state in expected}
    assert counts == {key: sum((*one[:2], one[3]) == key for one in expected) for key in keys}


def test_the_latest_of_a_feed(installed: Callable[[str], Installation]) -> None:
    installation = installed(ENTITIES)
    write(installation, feed_row("made", hour(4)))
    found = instance_status(installation, latest(InstanceQuery("made", "feed", limit=2))).items
    assert [(one.instance, one.state.value) for one in found] == [(hour(5), "MISSING"), (hour(4), "AVAILABLE")]


@pytest.mark.parametrize(
    ("output", "start", "end", "missing", "pending"),
    [
        ("now(0,0)", 1, 99, {0, 1, 2, 3, 4, 5}, {6: "06:00"}),
        ("now(-2,0)", 1, 99, {0, 1, 2, 3}, {4: "06:00", 5: "07:00"}),
        ("now(2,0)", 0, 99, {0, 1, 2, 3, 4, 5}, {6: "06:00"}),
        ("now(0,0)", 0, 3, {0, 1, 2, 3, 4, 5}, {}),
        ("now(0,0)", 7, 99, set(), {0: "00:00", 5: "05:00", 7: "07:00"}),
    ],
    ids=["at once", "later", "before", "ended", "not begun"],
)
def test_what_a_process_writes_is_due_when_it_can_be_written(
    installed: Callable[[str], Installation],
    output: str,
    start: int,
    end: int,
    missing: set[int],
    pending: dict[int, str],
) -> None:
    text = ENTITIES.replace(
        "2013-04-02T01:00Z, end: 2014-01-01T00:00Z", f"{format_instant(hour(start))}, end: {format_instant(hour(end))}"
    )
    installation = installed(text.replace('feed: made, instance: "now(0,0)"', f'feed: made, instance: "{output}"'))
    query = InstanceQuery("made", "feed")
    found = list_instances(installation, query).items
    assert {(one.instance - START) // timedelta(hours=1) for one in found} == missing
    assert {one.state for one in found} <= {FeedState.MISSING}
    for number, until in pending.items():
        (one,) = instance_status(installation, replace(query, start=hour(number))).items
        assert one.reason
        assert (one.state, one.reason["until"][11:16]) == (FeedState.PENDING, until)
