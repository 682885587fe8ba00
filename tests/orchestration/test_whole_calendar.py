"""The whole calendar, all frequencies and zones: what validates loads, can be asked about, explained and retained."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import available_timezones

import dagster as dg
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.errors import FalconError, InvalidDefinitionsError
from falcon_assets.features.landing.rules import horizon_of, watch_window
from falcon_assets.history.mapping.partitions import instant_of_key, key_of
from falcon_assets.instances.rules.coordination import decide
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Situation
from falcon_assets.model.expression import Call
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.model.process import Process
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, plan_eviction
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.process_instance import plan_process_instance
from falcon_assets.planning.timeline import Timeline, feed_timeline, process_timeline
from falcon_assets.planning.workloads import ProcessWorkload
from falcon_assets.settings import load_settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.catalog.definition_files import write
from tests.properties import examples
from tests.zones import ZONES

FOREVER = "9999-12-31T23:59Z"
CLUSTER = 'kind: cluster\nname: lab\ninterfaces: {write: {endpoint: data}, execute: {endpoint: "local[1]"}}\n'
PATH = "${YEAR}-${MONTH}-${DAY}-${HOUR}-${MINUTE}"

moments = st.one_of(
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59)),
    st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
    st.datetimes(datetime(9990, 1, 1), datetime(9999, 12, 31, 23, 59)),
).map(lambda naive: naive.replace(second=0, microsecond=0, tzinfo=UTC))
starts = st.one_of(
    moments.map(format_instant),
    st.datetimes(datetime(1950, 1, 1), datetime(9000, 12, 31)).map(lambda naive: f"{naive:%Y-%m-%dT%H:%MZ}"),
    st.sampled_from(["0001-01-01T00:00Z", "1000-01-01T00:00Z", "2013-01-01T00:00Z", "9000-12-31T23:59Z"]),
)
ends = st.one_of(st.just(FOREVER), moments.map(format_instant))
zones = st.one_of(st.sampled_from(ZONES), st.sampled_from(sorted(available_timezones())))
counts = st.one_of(st.sampled_from([1, 2, 3, 5, 7, 12, 15, 24, 45, 60, 90, 1440]), st.integers(1, 999_999))
lengths = st.builds("{}({})".format, st.sampled_from(["minutes", "hours", "days", "months"]), counts)
steps = st.one_of(st.sampled_from(["minutes(1)", "hours(1)", "days(1)", "days(7)", "months(1)", "months(12)"]), lengths)
numbers = st.one_of(st.integers(-50, 50), st.integers(-50, 50), st.sampled_from([-999_999, 999_999]))
times = st.one_of(
    st.just("instanceTime()"),
    st.builds("now({},{})".format, numbers, numbers),
    st.builds("{}({},0)".format, st.sampled_from(["today", "yesterday"]), numbers),
    st.builds("{}(TUE,{},0)".format, st.sampled_from(["currentWeek", "lastWeek"]), numbers),
    st.builds("{}({},0,0)".format, st.sampled_from(["currentMonth", "lastMonth"]), numbers),
    st.builds("{}({},{},0,0)".format, st.sampled_from(["currentYear", "lastYear"]), numbers, numbers),
    st.builds("dateOffset(instanceTime(),{},'{}')".format, numbers, st.sampled_from(["DAY", "MONTH", "YEAR"])),
)
windows = st.one_of(
    st.just(("instanceTime()", "instanceTime()")),
    st.tuples(times, times),
    st.tuples(st.just("latest(-2)"), st.just("latest(0)")),
    st.tuples(times, st.just("latest(0)")),
    st.tuples(st.just("future(0,5)"), st.just("future(1,5)")),
)


def feed_text(name: str, start: str, end: str, frequency: str, zone: str, limit: str) -> str:
    return f"""\
---
kind: feed
name: {name}
frequency: {frequency}
timezone: {zone}
locations: {{data: "/{name}/{PATH}"}}
clusters: [{{name: lab, validity: {{start: {start}, end: {end}}}, retention: {{limit: {limit}}}}}]
"""


def process_text(start: str, end: str, frequency: str, zone: str, window: tuple[str, str], output: str) -> str:
    return f"""\
---
kind: process
name: work
frequency: {frequency}
timezone: {zone}
clusters: [{{name: lab, validity: {{start: {start}, end: {end}}}}}]
inputs: [{{name: in, feed: read, start: "{window[0]}", end: "{window[1]}"}}]
outputs: [{{name: out, feed: written, instance: "{output}"}}]
workflow: {{engine: spark-sql, path: work.sql}}
"""


feeds = st.tuples(starts, ends, steps, zones, lengths)
same = st.integers(0, 3).map(bool)
FIRST, TICK = datetime.min.replace(tzinfo=UTC), timedelta(seconds=30)


@st.composite
def definitions(draw: st.DrawFn) -> str:
    """Two feeds and a process: all alike, or each with a life of its own."""
    read = draw(feeds)
    written = read if draw(same) else draw(feeds)
    own = written[:4] if draw(same) else (draw(starts), draw(ends), draw(steps), draw(zones))
    output = "instanceTime()" if draw(same) else draw(times)
    texts = (CLUSTER, feed_text("read", *read), feed_text("written", *written))
    return "".join((*texts, process_text(*own, draw(windows), output)))


@examples(100)
@given(definitions(), moments)
def test_what_validates_can_be_used(text: str, now: datetime) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            store = load_entities(write(Path(folder), {"all.yaml": text, "work.sql": "SELECT 1"}))
        except InvalidDefinitionsError as error:
            event("refused")
            assert str(error)
            return
        event("loaded")
        used(store, now)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "frequency", ["minutes(1)", "hours(1)", "hours(5)", "days(1)", "days(2)", "months(1)", "months(5)"]
)
def test_for_ever(tmp_path: Path, frequency: str, zone: str) -> None:
    life = ("2013-01-01T00:00Z", FOREVER, frequency, zone)
    texts = (feed_text("read", *life, "months(9999)"), feed_text("written", *life, "days(1)"))
    window = ("now(-1,0)", "now(1,0)")
    text = "".join((CLUSTER, *texts, process_text(*life, window, "now(0,0)")))
    used(load_entities(write(tmp_path, {"all.yaml": text, "work.sql": "SELECT 1"})), datetime(2013, 1, 2, tzinfo=UTC))


def used(store: EntityStore, now: datetime) -> None:
    """Everything that a code location, ``falcon explain``, ``falcon retention plan`` and coordinators do with it."""
    (workload,) = store.workloads_of("work")
    process, lines = workload.entity, {name: feed_timeline(feed, "lab") for name, feed in store.feeds.items()}
    partitioned = {**lines, "written": workload.partitions.timeline}
    seen_in_dagster(definitions_of(store, load_settings({})), partitioned)
    nominals = process_timeline(process, "lab")
    for nominal in some_of(nominals, now):
        explained(store, process, nominal)
    for name, feed in store.feeds.items():
        retained(store, feed, some_of(lines[name], now), now)
        watch_window(lines[name], now, max(now, FIRST + TICK) - TICK, horizon_of(feed, ()))
    decided(store, workload, now)


def some_of(timeline: Timeline, now: datetime) -> list[datetime]:
    """The first and the last instance, the one of now, and one in between."""
    indexes = {0, timeline.count // 2, timeline.count - 1, timeline.index_at_or_before(now)}
    found = [timeline.instance(k) for k in sorted(indexes) if 0 <= k < timeline.count]
    assert [parse_instant(format_instant(one)) for one in found] == found
    return found


def seen_in_dagster(defs: dg.Definitions, lines: dict[str, Timeline]) -> None:
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    for name, line in lines.items():
        node = graph.get(dg.AssetKey(["lab", name]))
        partitions = node.partitions_def
        if isinstance(partitions, dg.TimeWindowPartitionsDefinition):
            first, last = partitions.get_first_partition_key(), partitions.get_last_partition_key()
            keys = [key for key in (first, last) if key is not None]
            assert first in (None, key_of(line, line.start))
            for key in keys:
                instant = instant_of_key(key)
                assert instant is not None and line.contains(instant)
                assert partitions.has_partition_key(key)
            if partitions.exclusions is None and "minutes" in str(line.frequency):
                assert partitions.get_num_partitions() >= len(keys)


def wide(store: EntityStore, process: Process, nominal: datetime) -> bool:
    """Whether its window has more instances than are worth listing in a test."""
    one, line = process.inputs[0], feed_timeline(store.feed("read"), "lab")
    sides = (side.call if side.call.kind is Kind.TIME else Call("instanceTime") for side in (one.start, one.end))
    if one.start.call.kind is Kind.INSTANCES:
        return False
    try:
        ends = [evaluate_time(side, nominal, process.timezone) for side in sides]
    except FalconError:
        return False
    return len(line.indexes(*ends)) > 5000


def explained(store: EntityStore, process: Process, nominal: datetime) -> None:
    cluster = store.cluster("lab")
    if wide(store, process, nominal):
        return
    try:
        plan_process_instance(
            process, cluster, store.feeds, nominal, user="me", available=lambda feed: lambda moment: True
        )
    except FalconError as error:
        assert str(error)


def retained(store: EntityStore, feed: Feed, there: list[datetime], now: datetime) -> None:
    paths = InstancePaths(feed, store.cluster("lab"))
    found = [StoredInstance(one, (StoredLocation("data", paths.data(one), paths.prefix),)) for one in there]
    assert [one.instance.nominal for one in plan_eviction(paths, found, now)] == there
    assert [paths.instance(paths.data(one)) for one in there] == there


def decided(store: EntityStore, workload: ProcessWorkload, now: datetime) -> None:
    timeline = workload.timeline
    if any(wide(store, workload.entity, nominal) for nominal in some_of(timeline, now)):
        return
    line = feed_timeline(store.feed("read"), "lab")
    there = {line.instance(k) for k in line.indexes(line.start, now)[-10:]}
    try:
        decide(
            Situation(
                readiness=Readiness(workload),
                now=now,
                until=None,
                since=timeline.start,
                first_open=max(min(timeline.index_at_or_before(now) - 3, timeline.count - 1), 0),
                records={},
                slots_in_use=0,
                available={"read": there},
            )
        )
    except FalconError as error:
        assert str(error)
