"""Transitions are published as they come, by HTTP to a real server: in order per instance, at least once, none lost."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import event

from falcon_assets.doctor.all_checks import examine
from falcon_assets.features.messaging.cloud_events import cloud_event
from falcon_assets.features.messaging.operations import TailEvents
from falcon_assets.history.events.instance_event import InstanceEvent, Notice
from falcon_assets.history.folding.fold import rebuild
from falcon_assets.model.event_kind import EventKind
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.dead_sessions import wait_for_dead_sessions
from tests.features.messaging.world import STORY, World, first_by_instance, kinds, recorded_by_instance, run_facts
from tests.ledger.histories import history_of
from tests.processes import falcon_here, free_port, killed_before
from tests.receivers import Subscribed, subscriber
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def serving() -> Iterator[Subscribed]:
    with subscriber() as made:
        yield made


@pytest.fixture
def service(serving: Subscribed) -> Iterator[Subscribed]:
    serving.requests.clear()
    serving.answers.clear()
    yield serving
    serving.released.set()


@pytest.fixture
def world(settings: Settings, instance: dg.DagsterInstance, service: Subscribed) -> World:
    return World(settings, instance, primary={"endpoint": service.url})


def test_what_happens_to_instances_is_published_in_the_next_tick_and_once(world: World, service: Subscribed) -> None:
    world.lands(1)
    world.runs(1)
    assert [str(one) for one in world.tick()] == ["messaging of primary was sent 4 events"]
    assert kinds(service.events) == ["LANDED", *STORY]
    assert world.tick(hours=1) == []
    landed, started, made, _ = service.events
    assert landed == {
        "specversion": "1.0",
        "id": "LANDED feed raw primary 2013-01-01T01:00Z 1",
        "source": "/falcon/primary/feed/raw",
        "type": "org.falcon-assets.instance.landed",
        "subject": "2013-01-01T01:00Z",
        "time": "2013-01-01T01:00:00Z",
        "partitionkey": "/falcon/primary/feed/raw/2013-01-01T01:00Z",
        "datacontenttype": "application/json",
        "data": {
            **{"event": "LANDED", "kind": "feed", "entity": "raw", "cluster": "primary"},
            **{"instance": "2013-01-01T01:00Z", "version": "r1", "bytes": 7, "records": 3},
        },
    }
    assert {name: started["data"][name] for name in ("kind", "entity", "run_id", "attempt")} == {
        "kind": "process",
        "entity": "add-up",
        "run_id": "run-1-1",
        "attempt": 1,
    }
    assert (made["data"]["process"], made["data"]["run_id"]) == ("add-up", "run-1-1")
    assert {headers["Content-Type"] for headers, _ in service.requests} == {
        "application/cloudevents+json; charset=utf-8"
    }


def test_the_sensor_is_there_for_it_alone(world: World, service: Subscribed) -> None:
    def sensors() -> list[dg.SensorDefinition]:
        found = definitions_of(world.store, world.settings).sensors or ()
        return [one for one in found if isinstance(one, dg.SensorDefinition) and "notification" in one.name]

    (sensor,) = sensors()
    world.runs(1)
    tick = sensor.evaluate_tick(dg.build_sensor_context(instance=world.instance))
    assert (sensor.name, tick.skip_message) == ("other__notifications", "3 events noted; 1 message sent")
    assert kinds(service.events) == STORY
    world.declare()
    assert sensors() == []


def test_what_happens_to_an_entity_from_its_first_moment_is_published(world: World, service: Subscribed) -> None:
    world.happens(*run_facts(1))  # no tick has seen that instance, or any of its feed
    world.tick()
    assert kinds(service.events) == STORY


def test_another_version_says_which_one_it_replaced_and_the_same_one_is_no_event(
    world: World, service: Subscribed
) -> None:
    for version in ("r1", "r1", "r2"):
        world.lands(1, version)
    world.tick()
    versions = [(one["data"]["version"], one["data"].get("previous_version")) for one in service.events]
    assert versions == [("r1", None), ("r2", "r1")]


def test_only_what_is_asked_for_is_published(world: World, service: Subscribed) -> None:
    world.declare(primary={"endpoint": service.url, "on": ["SUCCEEDED", "LANDED"], "entities": ["sums", "add-up"]})
    world.tick()
    world.lands(1)
    world.runs(1)
    world.lands(1, cluster="other")
    world.tick()
    assert kinds(service.events) == ["LANDED", "SUCCEEDED"]


def test_secrets_reach_the_service_and_nothing_else(
    world: World, service: Subscribed, caplog: pytest.LogCaptureFixture
) -> None:
    messaging = {"endpoint": service.url, "options": {"Authorization": {"env": "TOKEN"}}}
    world.declare(primary=messaging)
    world.lands(1)
    (found,) = world.tick()
    assert found.problem == "the environment variable TOKEN is not set"
    world.with_environ(TOKEN="Bearer hushhush")
    assert [one.problem for one in world.tick(hours=1)] == [""]
    assert [headers["Authorization"] for headers, _ in service.requests] == ["Bearer hushhush"]
    assert "hushhush" not in caplog.text


def test_a_service_that_is_away_for_weeks_loses_nothing(world: World, service: Subscribed) -> None:
    there = {"endpoint": service.url}
    world.declare(primary={"endpoint": f"http://127.0.0.1:{free_port()}/"})
    world.runs(1)
    (found,) = world.tick()
    assert found.problem == "it cannot be reached: ConnectionError"
    for day in range(1, 15):
        world.runs(day + 1)
        assert [one.problem for one in world.tick(days=1)] == ["it cannot be reached: ConnectionError"]
    world.declare(primary=there)
    assert [one.problem for one in world.tick(hours=1)] == [""]
    assert kinds(service.events) == STORY * 15
    assert world.states() == {"SENT": 45}


def test_a_service_that_hangs_holds_up_no_other(
    settings: Settings, instance: dg.DagsterInstance, service: Subscribed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falcon_assets.features.messaging.http_broker.SECONDS", 0.5)
    with subscriber() as hanging:
        world = World(settings, instance, primary={"endpoint": hanging.url}, other={"endpoint": service.url})
        hanging.released.clear()
        for cluster in ("primary", "other"):
            world.runs(1, cluster=cluster)
        problems = {one.receiver: one.problem for one in world.tick()}
        assert problems == {
            "messaging of other": "",
            "messaging of primary": "it did not answer within 0.5 s",
        }
        assert kinds(service.events) == STORY
        hanging.released.set()
        world.tick(hours=1)
        assert list(first_by_instance(hanging.bodies).values()) == [
            ids for key, ids in recorded_by_instance(world).items() if "/primary/" in key
        ]


@pytest.mark.parametrize("answer", [500, 503, 401, 302, 404, 429])
def test_what_is_not_taken_is_sent_again_before_what_came_later(world: World, service: Subscribed, answer: int) -> None:
    service.answers = [202, answer]
    world.runs(1)
    (found,) = world.tick()
    assert found.problem
    assert kinds(service.events) == STORY[:1]
    world.runs(1, 2)
    world.tick(hours=1)
    assert first_by_instance(service.bodies) == recorded_by_instance(world)
    assert kinds(service.events) == STORY * 2


def test_what_is_never_taken_holds_up_nothing(world: World, service: Subscribed) -> None:
    service.answers = [202, 422]
    world.runs(1)
    assert [str(one) for one in world.tick()] == ["messaging of primary was sent 3 events, and refused 1 of them"]
    assert kinds(service.events) == ["STARTED", "SUCCEEDED"]
    assert world.states() == {"SENT": 2, "GIVEN_UP": 1}


def test_many_events_are_published_in_one_tick(world: World, service: Subscribed) -> None:
    world.happens(*(fact for hour in range(150) for fact in run_facts(hour)))
    world.tick()
    wait_until(lambda: len(service.requests) == 450)
    assert first_by_instance(service.bodies) == recorded_by_instance(world)


def test_a_rebuild_publishes_no_history_and_new_events_keep_their_ids(world: World, service: Subscribed) -> None:
    world.runs(1)
    history = history_of(world.logged)
    world.tick()
    published = first_by_instance(service.bodies)
    rebuild(world.ledger.engine, history)
    assert world.tick(days=30) == []
    assert first_by_instance(service.bodies) == published


STEPS = ("socket.connect", "falcon.commit")


def test_a_tick_that_is_killed_at_any_step_loses_nothing_and_keeps_the_order(world: World, service: Subscribed) -> None:
    for step in count(1):
        world.runs(step)
        world.passed += timedelta(hours=1)
        is_killed = killed_before(step, STEPS, lambda: _tick_in_a_new_process(world))
        wait_for_dead_sessions(world.ledger.engine)
        world.runs(step, 2)
        world.tick(hours=1)
        assert first_by_instance(service.bodies) == recorded_by_instance(world)
        if not is_killed:
            break
    assert step > 4
    assert len(service.requests) > step * 6  # what was taken before that was written down came again
    assert world.states() == {"SENT": step * 6}


def _tick_in_a_new_process(world: World) -> None:
    engine = world.ledger.engine
    engine.dispose(close=False)  # the connections are the parent's

    def committed(connection: Any) -> None:
        sys.audit("falcon.commit")

    event.listen(type(engine), "commit", committed)
    world.tick()


def test_they_are_shown_in_order_by_what_is_asked_for(world: World) -> None:
    world.happens(*run_facts(1), *run_facts(2))
    world.record()  # and nothing is published yet
    environ = {**os.environ, "FALCON_WEBSERVER_URL": ""}
    shown = falcon_here(environ, "events", "tail", "-n", "4")
    assert shown.stdout.splitlines() == [
        "2013-01-01T01:00:30Z SUCCEEDED process add-up primary 2013-01-01T01:00Z",
        "2013-01-01T02:00:00Z STARTED process add-up primary 2013-01-01T02:00Z",
        "2013-01-01T02:00:30Z LANDED feed sums primary 2013-01-01T02:00Z",
        "2013-01-01T02:00:30Z SUCCEEDED process add-up primary 2013-01-01T02:00Z",
    ]
    asked = ("--entity", "sums", "--kind", "LANDED", "--cluster", "primary", "--json")
    printed = falcon_here(environ, "events", "tail", *asked).stdout.splitlines()
    assert [json.loads(line)["subject"] for line in printed] == ["2013-01-01T01:00Z", "2013-01-01T02:00Z"]
    assert falcon_here(environ, "events", "tail", "--cluster", "other").stdout == "no matching events\n"
    with open_installation(world.settings) as installation:
        first = TailEvents(limit=2).run(installation)
        assert TailEvents(after=first.last).run(installation).items == ()
        assert [one.state for one in first.items] == ["PENDING", "PENDING"]


def test_the_doctor_says_whether_brokers_answer(world: World, service: Subscribed) -> None:
    def told() -> list[tuple[str, str]]:
        return [(one.diagnosis.status.value, one.diagnosis.text) for one in examine(datetime.now(UTC), ["messaging"])]

    there, away = service.url, f"http://127.0.0.1:{free_port()}/"
    world.declare(primary={"endpoint": there}, other={"endpoint": away})
    assert told() == [
        ("ok", f"cluster 'primary': {there} answers"),
        ("warning", f"cluster 'other': {away}: it cannot be reached: ConnectionError: its events wait"),
    ]
    service.answers = [403]
    world.declare(primary={"endpoint": there})
    assert told() == [("warning", f"cluster 'primary': {there}: it refuses access (403): its events wait")]
    world.declare()
    assert told() == [("ok", "no cluster names a broker")]


@pytest.mark.parametrize("event", [EventKind.SUCCEEDED, EventKind.SLA])
@pytest.mark.parametrize(
    ("name", "kind"), [("clicks from west", "replication"), ("clicks compaction", "compaction"), ("make", "process")]
)
def test_the_kind_is_that_of_the_workload(name: str, kind: str, event: EventKind) -> None:
    at = datetime(2013, 1, 1, tzinfo=UTC)
    entity = ("process", "make") if kind == "process" else ("feed", "clicks")
    found = cloud_event(Notice("all", *entity, InstanceEvent(event, "process", name, "primary", at, at, "1")))
    assert found.attributes["source"] == f"/falcon/primary/{kind}/{entity[1]}"
