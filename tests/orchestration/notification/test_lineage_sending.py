"""Lineage is sent as it comes, to a real receiver on the loopback: each run at least once, always with the same id."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import event, func, select, text

from falcon_assets.catalog.store import load_entities
from falcon_assets.features.openlineage.operations import export_openlineage
from falcon_assets.features.openlineage.receiver import LineageSending
from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import InstanceChanged, RunEnded, RunEnding, RunQueued
from falcon_assets.history.folding.fold import fold
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables import CLOCK, FOLD, NOTIFICATIONS
from falcon_assets.instances.outbox.delivery import Delivered, Delivery
from falcon_assets.instances.outbox.recording import EventRecording
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings, load_settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.dead_sessions import wait_for_dead_sessions
from tests.features.openlineage.schemas import assert_valid
from tests.hours import START
from tests.ledger.histories import empty, history_of
from tests.processes import free_port, killed_before
from tests.receivers import Collected, Received, lineage_collector, web_hook
from tests.waiting import wait_until

SPAN = "{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}"
FEED = f"""---
kind: feed
name: {{name}}
frequency: hours(1)
locations: {{{{data: "/{{name}}/${{{{YEAR}}}}-${{{{MONTH}}}}-${{{{DAY}}}}/${{{{HOUR}}}}"}}}}
clusters: [{SPAN.replace("{", "{{").replace("}", "}}")}]
"""
PROCESS = f"""---
kind: process
name: add-up
frequency: hours(1)
clusters: [{SPAN}]
inputs: [{{name: raw, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: sums, feed: sums, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
notification: {{on: [SUCCEEDED, FAILED], to: [{{url: {{env: HOOK}}}}]}}
"""
MIDNIGHT = parse_instant("2026-01-01T00:00Z")
KEY = "hushhush"


def run_id(number: int) -> str:
    return f"{number:08}-0000-4000-8000-000000000000"


class World:
    """A process whose runs are sent, at a time; its facts are folded as Dagster's history would have them."""

    def __init__(self, settings: Settings, instance: dg.DagsterInstance) -> None:
        self.settings, self.instance, self.passed = settings, instance, MIDNIGHT
        self.store = load_entities(settings.entity_defs)

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self.settings, self.instance)

    def tick(self, **passed: float) -> list[Delivered]:
        """A tick of the sensor, after some real time: what it said of lineage."""
        self.passed += timedelta(**passed)
        recording = EventRecording(self.store, self.settings)
        recording.record(self.ledger, self.passed)
        sending = LineageSending(self.store, self.settings)
        delivery = Delivery(recording.clusters, lambda: self.passed, [*recording.receivers, sending])
        return [one for one in delivery.deliver(self.ledger) if one.receiver == "FALCON_OPENLINEAGE_URL"]

    def happens(self, *facts: tuple[str | None, Fact]) -> None:
        with self.ledger.engine.connect() as connection:
            last = connection.execute(select(FOLD.c.event_id)).scalar() or 0
        logged = [Logged(last + number, fact, run) for number, (run, fact) in enumerate(facts, 1)]
        fold(self.ledger.engine, history_of(logged))

    def runs(self, hour: int, run: str, *, fails: bool = False, version: str = "v1") -> None:
        """A run of the instance of that hour: half a minute."""
        self.happens(*self.facts(hour, run, fails=fails, version=version))

    def facts(self, hour: int, run: str, *, fails: bool = False, version: str = "v1") -> list[tuple[str, Fact]]:
        """What such a run says."""
        nominal = START + timedelta(hours=hour)
        about, end = ("add-up", "primary", nominal), nominal + timedelta(seconds=30)
        read = {"raw": (Consumption("raw", nominal, "r1"),)}
        made = FeedInstanceAvailable(
            *("primary", "sums", nominal, version, end, 7, 3), process="add-up", nominal=nominal, inputs=read
        )
        over = InstanceChanged(*about, InstanceState.SUCCEEDED, end, inputs=read)
        failed = InstanceChanged(*about, InstanceState.FAILED, end, "no space")
        started = InstanceChanged(*about, InstanceState.RUNNING, nominal)
        return [(run, started), *([(run, failed)] if fails else [(run, made), (run, over)])]

    def counts(self) -> dict[str, int]:
        table = NOTIFICATIONS.c
        asked = select(table.state, func.count()).where(table.receiver == "FALCON_OPENLINEAGE_URL")
        with self.ledger.engine.connect() as connection:
            return {row[0]: row[1] for row in connection.execute(asked.group_by(table.state))}

    def points_to(self, url: str) -> None:
        environ = {**self.settings.environ, "FALCON_OPENLINEAGE_URL": url, "FALCON_OPENLINEAGE_API_KEY": KEY}
        read = load_settings(environ)
        told = {name: getattr(read, name) for name in ("openlineage_url", "openlineage_key")}
        self.settings = replace(self.settings, environ=environ, **told)


@pytest.fixture(scope="module")
def hook() -> Iterator[Received]:
    with web_hook() as made:
        yield made


@pytest.fixture(scope="module")
def collecting() -> Iterator[Collected]:
    with lineage_collector() as made:
        yield made


@pytest.fixture(scope="module")
def defined(settings: Settings, write_entities: Callable[[dict[str, str]], Path], hook: Received) -> Settings:
    feeds = "".join(FEED.format(name=name) for name in ("raw", "sums"))
    root = write_entities({"all.yaml": cluster_yaml() + feeds + PROCESS})
    (root / "a.sql").write_text("SELECT 1")
    return replace(settings, environ={**settings.environ, "HOOK": f"json://127.0.0.1:{hook.port}"})


@pytest.fixture
def collector(collecting: Collected) -> Iterator[Collected]:
    collecting.requests.clear()
    collecting.answer, collecting.refuses, collecting.takes = 201, set(), None
    yield collecting
    collecting.released.set()


@pytest.fixture
def world(defined: Settings, instance: dg.DagsterInstance, collector: Collected, hook: Received) -> World:
    """Nothing has happened yet, and one tick has passed."""
    hook.messages.clear()
    instance.wipe()
    made = World(defined, instance)
    made.points_to(f"http://127.0.0.1:{collector.port}/")
    empty(made.ledger.engine, CLOCK)
    assert made.tick() == []
    return made


def said(collector: Collected) -> list[tuple[str, str]]:
    for one in collector.events:
        assert_valid(one)
    return [(one["eventType"], one["eventTime"][11:19]) for one in collector.events]


def test_a_run_is_sent_in_the_next_tick_and_once(world: World, collector: Collected) -> None:
    world.runs(1, run_id(1))
    assert [str(one) for one in world.tick()] == ["FALCON_OPENLINEAGE_URL was sent 1 event"]
    assert said(collector) == [("START", "01:00:00"), ("COMPLETE", "01:00:30")]
    assert {(path, key) for path, key, _ in collector.requests} == {("/api/v1/lineage", f"Bearer {KEY}")}
    end = collector.events[1]
    (read,), (made,) = end["inputs"], end["outputs"]
    assert read["name"].endswith("/data/primary/raw")
    assert made["facets"]["version"]["datasetVersion"] == "2013-01-01T01:00Z@v1"
    world.runs(2, run_id(2))
    world.tick(seconds=15)  # programs do not wait for five minutes, as people do
    assert len(collector.events) == 4
    assert world.tick(hours=1) == []
    assert world.counts() == {"SENT": 2}


def test_failures_are_sent(world: World, collector: Collected) -> None:
    world.runs(1, run_id(1), fails=True)
    world.tick()
    assert said(collector) == [("START", "01:00:00"), ("FAIL", "01:00:30")]
    assert collector.events[1]["run"]["facets"]["errorMessage"]["message"] == "no space"
    nominal = START + timedelta(hours=2)
    ended = RunEnded(RunEnding.FAILED, nominal, "it did not start")
    world.happens((run_id(2), RunQueued("add-up", "primary", (nominal,))), (run_id(2), ended))
    world.tick(seconds=15)
    assert said(collector)[2:] == [("START", "02:00:00"), ("FAIL", "02:00:00")]  # it never started


def killed(hour: int, by: InstanceState) -> InstanceChanged:
    """A command that finds the instance in that state."""
    nominal = START + timedelta(hours=hour)
    at = nominal + timedelta(seconds=20)
    return InstanceChanged("add-up", "primary", nominal, InstanceState.KILLED, at, "killed by me", before=by)


def test_what_is_killed_and_what_times_out_is_sent(world: World, collector: Collected) -> None:
    world.happens(world.facts(1, run_id(1))[0], (None, killed(1, InstanceState.RUNNING)))
    world.runs(2, run_id(2), fails=True)
    world.happens((None, killed(2, InstanceState.FAILED)))  # while it waits to be tried again
    late = START + timedelta(hours=3)
    world.happens((None, InstanceChanged("add-up", "primary", late, InstanceState.TIMED_OUT, late, "no raw")))
    world.tick()
    assert said(collector) == [
        *[("START", "01:00:00"), ("ABORT", "01:00:20"), ("START", "02:00:00"), ("FAIL", "02:00:30")],
        *[("START", "02:00:20"), ("ABORT", "02:00:20"), ("START", "03:00:00"), ("FAIL", "03:00:00")],
    ]
    ids = [one["run"]["runId"] for one in collector.events[1::2]]
    assert len(set(ids)) == 4
    assert [one["run"]["facets"]["errorMessage"]["message"] for one in collector.events[1::2]] == [
        *("killed by me", "no space", "killed by me", "no raw")
    ]
    with open_installation(world.settings, world.instance) as installation:
        exported = {one["run"]["runId"] for one in export_openlineage(installation)}
    assert exported == {ids[0], *ids[2:]}  # of an instance without outputs the last end is known


def test_what_is_restored_is_sent(world: World, collector: Collected) -> None:
    hour = START + timedelta(hours=1)
    world.runs(1, run_id(1), version="v1")
    world.runs(1, run_id(2), version="v2")
    back = FeedInstanceAvailable("primary", "sums", hour, "v1", hour + timedelta(minutes=5), 7, 3, restored_by="me")
    world.happens((None, back))
    world.tick()
    start, end = collector.events[-2:]
    assert (end["job"]["name"], end["eventType"], start["eventType"]) == ("primary.sums.restore", "COMPLETE", "START")
    assert [one["facets"]["version"]["datasetVersion"] for one in end["outputs"]] == ["2013-01-01T01:00Z@v1"]
    assert said(collector)[-1] == ("COMPLETE", "01:05:00")
    with open_installation(world.settings, world.instance) as installation:
        assert end["run"]["runId"] in {one["run"]["runId"] for one in export_openlineage(installation)}


def test_what_retention_takes_is_sent(world: World, collector: Collected) -> None:
    world.runs(1, run_id(1))
    hour = START + timedelta(hours=1)
    gone = FeedInstanceEvicted("primary", "sums", hour, "archive", hour, archived_to="s3://cold/sums")
    world.happens((run_id(2), gone))
    world.runs(1, run_id(3))  # and it came back at once
    world.tick()
    jobs = [one["job"]["name"] for one in collector.events]
    assert jobs == [*["primary.add-up"] * 4, *["primary.sums.archival"] * 2]
    assert said(collector)[5] == ("COMPLETE", "01:00:00")
    assert [one["name"] for one in collector.events[5]["outputs"]][1] == "sums"


def _answers(collector: Collected, world: World, status: int) -> None:
    collector.answer = status


def _is_dead(collector: Collected, world: World, status: int) -> None:
    world.points_to(f"http://127.0.0.1:{free_port()}")


def _hangs(collector: Collected, world: World, status: int) -> None:
    collector.released.clear()


@pytest.mark.parametrize(
    ("breaks", "status", "problem"),
    [
        (_answers, 500, "the receiver answered 500"),
        (_answers, 401, "the receiver answered 401"),
        (_answers, 302, "the receiver redirects elsewhere: this is not its address"),
        (_is_dead, 0, "the receiver cannot be reached: ConnectionError"),
        (_hangs, 0, "the receiver did not answer within 0.5 s"),
    ],
    ids=["broken", "forbidden", "elsewhere", "dead", "hanging"],
)
def test_a_receiver_that_is_down_is_sent_it_later_and_nobody_waits_for_it(
    world: World,
    collector: Collected,
    hook: Received,
    monkeypatch: pytest.MonkeyPatch,
    breaks: Callable[[Collected, World, int], None],
    status: int,
    problem: str,
) -> None:
    breaks(collector, world, status)
    world.runs(1, run_id(1))
    with monkeypatch.context() as patch:
        if breaks is _hangs:
            patch.setattr("falcon_assets.features.openlineage.sending._SECONDS", 0.5)
        (one,) = world.tick(minutes=6)
    assert one.problem == problem
    assert len(hook.messages) == 0  # SUCCEEDED waits for others of its kind
    world.runs(2, run_id(2), fails=True)
    assert world.tick(seconds=15) == []  # not so soon again
    assert world.counts() == {"PENDING": 2}
    collector.answer = 201
    collector.released.set()
    if breaks is _hangs:
        wait_until(lambda: len(collector.requests) == 1)  # it takes, after all, what nobody waits for any more
    world.points_to(f"http://127.0.0.1:{collector.port}")
    collector.requests.clear()
    world.tick(hours=1)
    assert said(collector) == [
        *[("START", "01:00:00"), ("COMPLETE", "01:00:30"), ("START", "02:00:00"), ("FAIL", "02:00:30")]
    ]
    assert world.counts() == {"SENT": 2}


def test_a_run_that_another_followed_while_the_receiver_was_down(world: World, collector: Collected) -> None:
    collector.answer = 503
    world.runs(1, run_id(1), fails=True)
    world.tick()
    world.runs(1, run_id(2))
    world.runs(1, run_id(3), version="v2")
    collector.answer = 201
    world.tick(hours=1)
    assert [kind for kind, _ in said(collector)] == ["START", "FAIL", "START", "COMPLETE", "START", "COMPLETE"]
    assert len({one["run"]["runId"] for one in collector.events}) == 3
    outputs = [[of["facets"]["version"]["datasetVersion"][-2:] for of in one["outputs"]] for one in collector.events]
    assert outputs[1::2] == [[], ["v1"], ["v2"]]


def test_what_the_receiver_never_takes_delays_nothing(world: World, collector: Collected) -> None:
    world.runs(1, run_id(1))
    world.tick()
    known = collector.events[0]["run"]["runId"]
    with world.ledger.engine.begin() as connection:
        connection.execute(text("UPDATE falcon.notifications SET state = 'PENDING', message = NULL"))
    collector.refuses = {known}
    world.runs(2, run_id(2))
    (one,) = world.tick(minutes=1)
    assert str(one) == "FALCON_OPENLINEAGE_URL was sent 2 events, and refused 1 of them"
    assert world.counts() == {"GIVEN_UP": 1, "SENT": 1}


def test_a_receiver_that_takes_a_few_at_a_time_gets_all_of_them(world: World, collector: Collected) -> None:
    for hour in range(5):
        world.runs(hour, run_id(hour))
    sent = []
    for _ in range(3):
        collector.takes = 4
        sent += [one.problem for one in world.tick(hours=1)]
    assert sent == ["the receiver answered 429", "the receiver answered 429", ""]
    assert len(collector.events) == 10
    assert world.counts() == {"SENT": 5}


def test_what_is_sent_has_the_ids_of_what_is_exported(world: World, collector: Collected) -> None:
    hour = START + timedelta(hours=1)
    world.runs(1, run_id(1))
    gone = FeedInstanceEvicted("primary", "sums", hour, "delete", hour + timedelta(seconds=0.123456))
    world.happens((run_id(2), gone))
    world.runs(2, run_id(3), fails=True)
    world.tick()
    world.ledger.catch_up()
    with open_installation(world.settings, world.instance) as installation:
        exported = {one["run"]["runId"]: one["job"]["name"] for one in export_openlineage(installation)}
    assert {one["run"]["runId"]: one["job"]["name"] for one in collector.events} == exported
    assert len(exported) == 3


def test_many_runs_are_sent_in_one_tick(world: World, collector: Collected) -> None:
    world.happens(*(fact for hour in range(60) for fact in world.facts(hour, run_id(hour))))
    assert [one.events for one in world.tick()] == [50, 10]
    assert len({one["run"]["runId"] for one in collector.events}) == 60
    assert world.counts() == {"SENT": 60}


def test_without_the_setting_nothing_is_kept_and_later_nothing_of_the_past_is_sent(
    world: World, collector: Collected
) -> None:
    url = world.settings.openlineage_url or ""
    world.points_to("")
    world.tick()
    world.runs(1, run_id(1))
    world.tick()
    assert world.counts() == {}
    world.points_to(url)
    world.tick()
    world.runs(2, run_id(2))
    world.tick()
    assert said(collector) == [("START", "02:00:00"), ("COMPLETE", "02:00:30")]


def test_the_sensor_is_there_for_it_alone(world: World, collector: Collected) -> None:
    def sensors() -> list[dg.SensorDefinition]:
        found = definitions_of(load_entities(root), world.settings).sensors or ()
        return [one for one in found if isinstance(one, dg.SensorDefinition) and "notification" in one.name]

    root = world.settings.entity_defs
    declared = (root / "all.yaml").read_text()
    try:
        (root / "all.yaml").write_text(declared.partition("notification:")[0])
        (sensor,) = sensors()
        world.runs(1, run_id(1))
        tick = sensor.evaluate_tick(dg.build_sensor_context(instance=world.instance))
        assert tick.skip_message == "1 event noted; 1 message sent"
        assert said(collector) == [("START", "01:00:00"), ("COMPLETE", "01:00:30")]
        world.points_to("")
        assert sensors() == []
    finally:
        (root / "all.yaml").write_text(declared)


def test_the_key_is_nowhere(
    world: World, collector: Collected, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(1)
    for status in (201, 401, 302):
        collector.answer = status
        world.runs(status % 24, run_id(status))
        assert KEY not in "".join(map(str, world.tick(hours=1)))
    assert KEY not in "".join([caplog.text, repr(world.settings), *capfd.readouterr()])
    with world.ledger.engine.connect() as connection:
        for table in ("notifications", "notification_receivers"):
            found = connection.execute(text(f"SELECT count(*) FROM falcon.{table} t WHERE t::text LIKE '%{KEY}%'"))
            assert found.scalar() == 0


STEPS = ("socket.connect", "falcon.commit")


def test_a_tick_that_is_killed_at_any_step_sends_each_run_at_least_once_and_with_the_same_id(
    world: World, collector: Collected
) -> None:
    repeated = 0
    for step in count(1):
        world.runs(step, run_id(step))
        collector.requests.clear()
        world.passed += timedelta(hours=1)
        is_killed = killed_before(step, STEPS, lambda: _tick_in_a_new_process(world))
        wait_for_dead_sessions(world.ledger.engine)
        world.tick(hours=1)
        assert {kind for kind, _ in said(collector)} == {"START", "COMPLETE"}
        assert len({one["run"]["runId"] for one in collector.events}) == 1
        repeated += len(collector.events) > 2
        if not is_killed:
            break
    assert step > 4
    assert repeated >= 1  # after it was taken, and before that was written down
    assert world.counts() == {"SENT": step}


def _tick_in_a_new_process(world: World) -> None:
    engine = world.ledger.engine
    engine.dispose(close=False)  # the connections are the parent's

    def committed(connection: Any) -> None:
        sys.audit("falcon.commit")

    event.listen(type(engine), "commit", committed)
    world.tick()
