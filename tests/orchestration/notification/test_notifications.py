"""Who is told what, with a real database, a real web hook and a real mail server: each event once, whatever crashes."""

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
from falcon_assets.features.late.sensors import LateArrivalHandler
from falcon_assets.features.sla.evaluation import SlaEvaluation
from falcon_assets.history.events.event_log import Logged, observation
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.folding.fold import fold
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables import CLOCK, NOTIFICATION_EVENTS, NOTIFICATION_RECEIVERS, NOTIFICATIONS
from falcon_assets.instances.outbox.delivery import Delivered, Delivery
from falcon_assets.instances.outbox.recording import EventRecording
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings, load_settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.dead_sessions import wait_for_dead_sessions
from tests.hours import START
from tests.ledger.histories import empty, history_of
from tests.processes import free_port, killed_before
from tests.receivers import Received, mail_box, web_hook

TELLS = "notification: {{on: [{}], to: [{}]}}\n"
ALL = "FAILED, TIMED_OUT, SLA, LATE, EVICTED, SUCCEEDED, KILLED, RESTORED"
HOOK, BOTH = "{url: {env: HOOK}}", "{url: {env: HOOK}}, {url: {env: MAIL}}"
FEED = """---
kind: feed
name: raw
frequency: hours(1)
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
sla: {low: hours(1), high: hours(2)}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: "2014-01-01T00:00Z"}}]
schedule: true
"""
PROCESS = """---
kind: process
name: hourly
frequency: hours(1)
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: "2014-01-01T00:00Z"}}]
workflow: {engine: spark-sql, path: nothing.sql}
retry: {policy: periodic, delay: minutes(1), attempts: 1}
schedule: true
"""
MIDNIGHT = parse_instant("2026-01-01T00:00Z")
SECRET = "hushhush"
F, S = InstanceState.FAILED, InstanceState.SUCCEEDED


class World:
    """Entities that tell two receivers, at a time."""

    def __init__(self, settings: Settings, instance: dg.DagsterInstance) -> None:
        self.settings, self.instance = settings, instance
        self.now, self.passed, self._ids = START, MIDNIGHT, count(1)
        self.load()

    def load(self) -> None:
        """As after a load of the code location."""
        self.store = load_entities(self.settings.entity_defs)
        self.recording = EventRecording(self.store, self.settings)

    def declares(self, name: str, notification: str) -> None:
        text = {"raw": FEED, "hourly": PROCESS}[name]
        (self.settings.entity_defs / f"{name}.yaml").write_text(text + notification)
        self.load()

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self.settings, self.instance)

    def tick(self, **passed: float) -> list[Delivered]:
        """A tick of the sensor, after some real time."""
        self.passed += timedelta(**passed)
        self.recording.record(self.ledger, self.passed)
        return self.deliver()

    def deliver(self) -> list[Delivered]:
        recording = self.recording
        return Delivery(recording.clusters, lambda: self.passed, recording.receivers).deliver(self.ledger)

    def comes_to(self, hour: int, *states: InstanceState, reason: str = "") -> None:
        nominal = START + timedelta(hours=hour)
        key = dg.AssetKey(["primary", "hourly"])
        for state in states:
            changed = InstanceChanged("hourly", "primary", nominal, state, nominal, reason)
            self.instance.report_runless_asset_event(changed.event(key, format_instant(nominal)))

    def evicts(self, hour: int) -> None:
        nominal = START + timedelta(hours=hour)
        gone = FeedInstanceEvicted("primary", "raw", nominal, "delete", nominal, reason="too old")
        key = dg.AssetKey(["primary", "raw"])
        self.instance.report_runless_asset_event(observation(key, format_instant(nominal), gone))

    def counts(self) -> dict[str, int]:
        column = NOTIFICATIONS.c.state
        with self.ledger.engine.connect() as connection:
            rows = connection.execute(select(column, func.count()).group_by(column))
            return {row[0]: row[1] for row in rows}


@pytest.fixture(scope="module")
def hook() -> Iterator[Received]:
    with web_hook() as made:
        yield made


@pytest.fixture(scope="module")
def mails() -> Iterator[Received]:
    with mail_box() as made:
        yield made


@pytest.fixture(scope="module")
def defined(
    settings: Settings, write_entities: Callable[[dict[str, str]], Path], hook: Received, mails: Received
) -> Settings:
    tells = TELLS.format(ALL, BOTH)
    root = write_entities({"clusters.yaml": cluster_yaml(), "raw.yaml": FEED + tells, "hourly.yaml": PROCESS + tells})
    (root / "nothing.sql").write_text("SELECT 1")
    urls = {
        "HOOK": f"json://me:{SECRET}@127.0.0.1:{hook.port}/{SECRET}",
        "MAIL": f"mailto://127.0.0.1:{mails.port}?from=falcon@example.com&to={SECRET}@example.com&name={SECRET}",
    }
    return replace(settings, clock=Clock(origin=START), environ={**settings.environ, **urls})


@pytest.fixture
def world(defined: Settings, instance: dg.DagsterInstance, hook: Received, mails: Received) -> World:
    """Nothing has happened yet, and one tick has passed."""
    for one in (hook, mails):
        one.messages.clear()
        one.refuses = False
    instance.wipe()
    for name, declared in (("raw", FEED), ("hourly", PROCESS)):
        (defined.entity_defs / f"{name}.yaml").write_text(declared + TELLS.format(ALL, BOTH))
    made = World(defined, instance)
    empty(made.ledger.engine, CLOCK)
    assert made.tick() == []
    return made


def test_the_first_event_is_told_at_once_and_those_of_the_next_minutes_together(
    world: World, hook: Received, mails: Received
) -> None:
    world.comes_to(1, F, F, reason="no such table\nsecond line")
    assert [str(one) for one in world.tick()] == ["HOOK was sent 1 event", "MAIL was sent 1 event"]
    title, said, key = hook.messages[0]
    assert title == "falcon: FAILED process hourly on primary 2013-01-01T01:00Z"
    assert said.splitlines() == [
        "FAILED process hourly on primary 2013-01-01T01:00Z: no such table",
        "",
        f"all of it: falcon notification list --filter message={key}",
    ]
    assert mails.titles == hook.titles
    assert f"message={mails.messages[0][2]}" in mails.messages[0][1]
    world.comes_to(2, F, F, reason="no space")
    world.comes_to(3, S)
    world.comes_to(4, F, F, reason="no space")
    assert world.tick(minutes=4) == []
    world.tick(minutes=1)
    assert hook.titles[1:] == ["falcon: 2 FAILED, 1 SUCCEEDED"]
    assert hook.messages[1][1].splitlines()[:3] == [
        "2 x FAILED process hourly: no space",
        "1 x SUCCEEDED process hourly",
        "",
    ]
    assert world.tick(hours=1) == []
    assert world.counts() == {"SENT": 8}


def test_a_failure_that_is_tried_again_is_not_told(world: World, hook: Received) -> None:
    world.comes_to(1, F)
    world.tick()
    assert hook.messages == []
    world.comes_to(1, F)
    world.tick()
    assert hook.titles == ["falcon: FAILED process hourly on primary 2013-01-01T01:00Z"]


def test_what_waits_for_nobody_waits_a_while(world: World, hook: Received) -> None:
    """A pass of retention is one message."""
    for hour in range(30):
        world.evicts(hour)
    assert world.tick() == []
    for hour in range(20, 50):
        world.evicts(hour)
    assert world.tick(minutes=4) == []
    world.tick(minutes=1)
    assert hook.titles == ["falcon: 50 EVICTED"]
    assert hook.messages[0][1].startswith("50 x EVICTED feed raw: too old\n")
    assert "... and 40 more" in hook.messages[0][1]


def test_breaches_of_slas_and_that_they_are_met(world: World, hook: Received) -> None:
    evaluation = SlaEvaluation(world.store, "primary", lambda: world.now)
    evaluation.evaluate(world.ledger)
    world.now = START + timedelta(hours=1, minutes=1)
    evaluation.evaluate(world.ledger)
    world.tick()
    world.tick(hours=1)
    assert [said.splitlines()[0] for _, said, _ in hook.messages] == [
        "SLA feed raw on primary 2013-01-01T00:00Z: in danger: low was over at 2013-01-01T01:00+00:00"
    ]
    with world.ledger.engine.begin() as connection:
        connection.execute(
            text("UPDATE falcon.sla_breaches SET state = 'MET', cleared_at = :at"), {"at": START + timedelta(hours=2)}
        )
    world.tick(hours=1)
    world.tick(hours=1)
    assert [said.splitlines()[0] for _, said, _ in hook.messages[1:]] == [
        "SLA feed raw on primary 2013-01-01T00:00Z: met at 2013-01-01T02:00+00:00: low was over at "
        "2013-01-01T01:00+00:00"
    ]


def test_late_data_that_is_read_again(world: World, hook: Received) -> None:
    """Told once, also where more changes before it runs."""
    (world.settings.entity_defs / "raw.yaml").write_text(FEED + "late_arrival: {cut_off: hours(9)}\n")
    reads = 'inputs: [{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}]\n'
    late = "late_process: {policy: backoff, delay: hours(1), inputs: [{input: rows}]}\n"
    world.declares("hourly", reads + late + TELLS.format("LATE", HOOK))
    world.tick()
    facts = [
        FeedInstanceAvailable("primary", "raw", START, "v1", START),
        InstanceChanged("hourly", "primary", START, S, START, inputs={"rows": (Consumption("raw", START, "v1"),)}),
        *(FeedInstanceAvailable("primary", "raw", START, f"v{n}", START + timedelta(minutes=n)) for n in (2, 3)),
    ]
    handler = LateArrivalHandler(lambda: START + timedelta(hours=5), world.store.workloads)
    for number, fact in enumerate(facts, 1):
        fold(world.ledger.engine, history_of([Logged(number, fact)]))
        handler.decide(world.ledger)
    world.tick()
    world.tick(hours=1)
    assert [said.splitlines()[0] for _, said, _ in hook.messages] == [
        "LATE process hourly on primary 2013-01-01T00:00Z: runs again: raw 2013-01-01T00:00Z changed"
    ]


def test_a_thousand_failures_are_one_message(world: World, hook: Received) -> None:
    about = ("hourly", "primary")
    hours = [START + timedelta(hours=hour) for hour in range(1_000)]
    said = [InstanceChanged(*about, hour, F, hour, "no space left") for hour in hours]
    fold(world.ledger.engine, history_of([Logged(number, fact) for number, fact in enumerate([*said, *said], 1)]))
    world.tick()
    assert hook.titles == ["falcon: 1000 FAILED"]
    assert hook.messages[0][1].startswith("1000 x FAILED process hourly: no space left\n")
    assert len(hook.messages[0][1].splitlines()) < 20


def test_a_receiver_that_is_down_is_told_everything_once_and_delays_no_other(
    world: World, hook: Received, mails: Received
) -> None:
    hook.refuses = True
    tried = []
    for minute in range(60):
        world.comes_to(minute, F, F)
        if any(one.problem == "the receiver answered 503" for one in world.tick(minutes=1)):
            tried.append(minute)
    assert tried == [0, 1, 3, 7, 15, 30, 45]
    assert len(mails.messages) == 12
    hook.refuses = False
    for _ in range(20):
        world.tick(minutes=1)
    assert hook.titles == ["falcon: 60 FAILED"]
    assert world.counts() == {"SENT": 120}


def test_nobody_is_told_what_could_not_be_told_for_days(world: World, hook: Received) -> None:
    hook.refuses = True
    world.comes_to(1, F, F)
    world.tick()
    world.tick(days=2)
    assert world.counts() == {"PENDING": 1, "SENT": 1}
    hook.refuses = False
    world.tick(days=2)
    assert world.counts() == {"GIVEN_UP": 1, "SENT": 1}
    assert hook.messages == []
    world.tick(days=8)
    assert world.counts() == {}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "the environment variable HOOK is not set"),
        (f"nonsense://{SECRET}", "HOOK does not hold one URL of apprise, or a package for it is missing"),
        (f"slack://{SECRET}", "HOOK does not hold one URL of apprise, or a package for it is missing"),
        (f"json://127.0.0.1:{{}}/{SECRET}", "the receiver does not answer, or refuses"),
    ],
    ids=["not_set", "no_scheme", "wrong_url", "nobody_there"],
)
def test_why_a_receiver_is_not_told(world: World, url: str, problem: str, capfd: pytest.CaptureFixture[str]) -> None:
    environ = {**world.settings.environ, "HOOK": url.format(free_port())}
    world.settings = replace(world.settings, environ=environ)
    world.declares("hourly", TELLS.format("FAILED", HOOK))
    world.comes_to(1, F, F)
    (one,) = world.tick()
    assert one.problem == problem
    assert world.counts() == {"PENDING": 1}
    with world.ledger.engine.connect() as connection:
        assert connection.execute(select(NOTIFICATION_RECEIVERS.c.problem)).scalars().all() == [problem]
    assert SECRET not in "".join(capfd.readouterr())


def test_a_rebuild_tells_nothing_again(world: World, hook: Received) -> None:
    world.comes_to(1, F, F)
    world.tick()
    with world.ledger.engine.begin() as connection:
        connection.execute(text("TRUNCATE falcon.notifications"))  # as after years
    world.ledger.rebuild()
    world.tick(hours=1)
    assert len(hook.messages) == 1
    world.comes_to(2, F, F)
    world.ledger.rebuild()
    world.tick(hours=1)
    assert len(hook.messages) == 2


def test_what_happened_before_somebody_wanted_it_is_not_told(world: World, hook: Received) -> None:
    world.declares("hourly", "")
    world.tick()
    world.comes_to(1, F, F)
    world.tick(hours=1)
    world.declares("hourly", TELLS.format("FAILED", HOOK))
    world.tick(hours=1)
    assert hook.messages == []
    with world.ledger.engine.connect() as connection:
        assert connection.execute(select(NOTIFICATION_EVENTS)).all() == []
    world.comes_to(2, F, F)
    world.tick(hours=1)
    assert hook.titles == ["falcon: FAILED process hourly on primary 2013-01-01T02:00Z"]


def test_what_nobody_asked_for_in_days_is_kept_no_longer(world: World, hook: Received) -> None:
    """The sensor was off, or there was none any more: it is told from when it is asked for again."""
    world.comes_to(1, F, F)
    world.ledger.catch_up()
    world.tick(days=2)
    assert len(hook.messages) == 1
    world.passed += timedelta(days=4)
    world.tick()
    world.comes_to(2, F, F)
    world.tick(hours=1)
    assert len(hook.messages) == 2


def test_the_default_is_for_what_declares_nothing(world: World, hook: Received, mails: Received) -> None:
    environ = {**world.settings.environ, "FALCON_NOTIFICATION_TO": "MAIL", "FALCON_NOTIFICATION_ON": "SUCCEEDED"}
    world.settings = replace(world.settings, notification=load_settings(environ).notification)
    world.declares("hourly", "")
    world.declares("raw", TELLS.format("EVICTED", HOOK))
    world.tick()
    world.comes_to(1, F, F)
    world.comes_to(2, S)
    world.evicts(1)
    world.tick(hours=1)
    world.tick(hours=1)
    assert [*hook.titles, *mails.titles] == [
        "falcon: EVICTED feed raw on primary 2013-01-01T01:00Z",
        "falcon: SUCCEEDED process hourly on primary 2013-01-01T02:00Z",
    ]


def test_the_code_location_has_a_sensor_where_somebody_is_told(world: World, hook: Received) -> None:
    def sensors() -> list[dg.SensorDefinition]:
        found = definitions_of(world.store, world.settings).sensors or ()
        return [one for one in found if isinstance(one, dg.SensorDefinition) and "notification" in one.name]

    (sensor,) = sensors()
    assert sensor.name == "primary__notifications"

    def tick() -> str | None:
        return sensor.evaluate_tick(dg.build_sensor_context(instance=world.instance)).skip_message

    world.settings = replace(world.settings, environ={**world.settings.environ, "MAIL": ""})
    (sensor,) = sensors()
    world.comes_to(1, F, F)
    assert tick() == "2 events noted; 1 message sent"
    assert hook.titles == ["falcon: FAILED process hourly on primary 2013-01-01T01:00Z"]
    assert tick() == "0 events noted; 0 messages sent"
    world.declares("hourly", "")
    world.declares("raw", "")
    assert sensors() == []


def test_a_secret_is_nowhere(world: World, hook: Received, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in the log, at the finest level, nor in any table of the database."""
    caplog.set_level(1)
    world.comes_to(1, F, F)
    world.tick()
    hook.refuses = True
    world.comes_to(2, F, F)
    told = world.tick(hours=1)
    assert [one.receiver for one in told if one.problem] == ["HOOK"]
    assert SECRET not in "".join([caplog.text, *map(str, told)])
    with world.ledger.engine.connect() as connection:
        tables = connection.execute(
            text(
                "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('falcon', 'public')"
            )
        )
        for table in tables.scalars().all():
            rows = connection.execute(text(f"SELECT count(*) FROM {table} AS t WHERE t::text LIKE '%{SECRET}%'"))
            assert rows.scalar() == 0, table


STEPS = ("socket.connect", "falcon.commit")


def test_a_tick_that_is_killed_at_any_step_tells_each_event_once(world: World, hook: Received) -> None:
    """Killed after the receiver has taken a message and before that is written down, it sends the same once more."""
    world.declares("raw", "")
    world.declares("hourly", TELLS.format("FAILED", HOOK))
    world.tick()
    repeated = 0
    for step in count(1):
        world.comes_to(2 * step, F, F)
        world.comes_to(2 * step + 1, F, F)
        hook.messages.clear()
        world.passed += timedelta(hours=1)
        is_killed = killed_before(step, STEPS, lambda: _tick_in_a_new_process(world))
        wait_for_dead_sessions(world.ledger.engine)
        world.tick(hours=1)
        world.tick(hours=1)
        keys = {key for _, _, key in hook.messages}
        assert len(keys) == 1, hook.messages
        assert len(set(hook.messages)) == 1
        repeated += len(hook.messages) - 1
        if not is_killed:
            break
    assert step > 4
    assert repeated == 1
    assert world.counts() == {"SENT": 2 * step}


def _tick_in_a_new_process(world: World) -> None:
    engine = world.ledger.engine
    engine.dispose(close=False)  # the connections are the parent's

    def said(connection: Any) -> None:
        sys.audit("falcon.commit")

    event.listen(type(engine), "commit", said)
    world.tick()
