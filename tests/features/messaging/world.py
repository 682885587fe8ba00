"""A process and feeds on two clusters whose transitions are published: what happens there, and ticks of the sensor."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

import dagster as dg
import yaml
from sqlalchemy import func, select

from falcon_assets.catalog.store import load_entities
from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.folding.fold import fold
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables import CLOCK, NOTIFICATIONS
from falcon_assets.instances.outbox.delivery import Delivered, Delivery
from falcon_assets.instances.outbox.recording import EventRecording
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings
from tests.builders import cluster_yaml
from tests.ledger.histories import empty, history_of

CLUSTERS = ("primary", "other")
_SPANS = ", ".join(
    f"{{name: {one}, validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}" for one in CLUSTERS
)
FEED = f"""---
kind: feed
name: {{name}}
frequency: hours(1)
locations: {{{{data: "/{{name}}/${{{{YEAR}}}}-${{{{MONTH}}}}-${{{{DAY}}}}/${{{{HOUR}}}}"}}}}
clusters: [{_SPANS.replace("{", "{{").replace("}", "}}")}]
"""
PROCESS = f"""---
kind: process
name: add-up
frequency: hours(1)
clusters: [{_SPANS}]
inputs: [{{name: raw, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: sums, feed: sums, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
"""
START = parse_instant("2013-01-01T00:00Z")
MIDNIGHT = parse_instant("2026-01-01T00:00Z")
STORY = ["STARTED", "LANDED", "SUCCEEDED"]
"""What is published of a run, but for its input."""


class World:
    """Nothing has happened yet, and one tick has passed."""

    def __init__(self, settings: Settings, instance: dg.DagsterInstance, **messaging: dict[str, Any]) -> None:
        self.settings, self.instance, self.passed = settings, instance, MIDNIGHT
        self.logged: list[Logged] = []
        instance.wipe()
        self.declare(**messaging)
        empty(self.ledger.engine, CLOCK)
        assert self.tick() == []

    def declare(self, **messaging: dict[str, Any]) -> None:
        """Says where the events of the clusters go."""
        root = self.settings.entity_defs
        root.mkdir(exist_ok=True)
        text = "".join(FEED.format(name=name) for name in ("raw", "sums")) + PROCESS
        for name in CLUSTERS:
            interfaces = yaml.safe_load(cluster_yaml(name))["interfaces"]
            own = {"messaging": messaging[name]} if name in messaging else {}
            text += cluster_yaml(name, interfaces={**interfaces, **own})
        (root / "all.yaml").write_text(text)
        (root / "a.sql").write_text("SELECT 1")
        self.store = load_entities(root)

    def with_environ(self, **environ: str) -> None:
        self.settings = replace(self.settings, environ={**self.settings.environ, **environ})

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self.settings, self.instance)

    def record(self) -> EventRecording:
        recording = EventRecording(self.store, self.settings)
        recording.record(self.ledger, self.passed)
        return recording

    def tick(self, **passed: float) -> list[Delivered]:
        """A tick of the sensor, after some real time."""
        self.passed += timedelta(**passed)
        recording = self.record()
        return Delivery(recording.clusters, lambda: self.passed, recording.receivers).deliver(self.ledger)

    def happens(self, *facts: tuple[str | None, Fact]) -> None:
        self.logged += [Logged(len(self.logged) + number, fact, run) for number, (run, fact) in enumerate(facts, 1)]
        fold(self.ledger.engine, history_of(self.logged))

    def lands(self, hour: int, version: str = "r1", cluster: str = "primary") -> None:
        instance = START + timedelta(hours=hour)
        self.happens((None, FeedInstanceAvailable(cluster, "raw", instance, version, instance, 7, 3)))

    def runs(self, hour: int, number: int = 1, cluster: str = "primary") -> None:
        """A run of the instance of that hour: half a minute."""
        self.happens(*run_facts(hour, number, cluster))

    def states(self) -> dict[str, int]:
        with self.ledger.engine.connect() as connection:
            column = NOTIFICATIONS.c.state
            rows = connection.execute(select(column, func.count()).group_by(column))
            return {row[0]: row[1] for row in rows}


def run_facts(
    hour: int, number: int = 1, cluster: str = "primary", state: InstanceState = InstanceState.SUCCEEDED
) -> list[tuple[str | None, Fact]]:
    nominal = START + timedelta(hours=hour)
    about, end, run = ("add-up", cluster, nominal), nominal + timedelta(seconds=30), f"run-{hour}-{number}"
    made = FeedInstanceAvailable(
        *(cluster, "sums", nominal, f"v{number}", end, 7, 3), process="add-up", nominal=nominal
    )
    started = InstanceChanged(*about, InstanceState.RUNNING, nominal)
    return [(run, started), (run, made), (run, InstanceChanged(*about, state, end))]


def kinds(events: Collection[dict[str, Any]]) -> list[str]:
    return [event["data"]["event"] for event in events]


def first_by_instance(bodies: Collection[bytes | str]) -> dict[str, list[str]]:
    """Instance -> ids of its events in the order in which each came first."""
    found: dict[str, list[str]] = {}
    for body in bodies:
        event = json.loads(body)
        own = found.setdefault(event["partitionkey"], [])
        if event["id"] not in own:
            own.append(event["id"])
    return found


def recorded_by_instance(world: World) -> dict[str, list[str]]:
    """Instance -> ids of its events in the order of history, of the notices that were recorded."""
    found: dict[str, list[str]] = {}
    with world.ledger.engine.connect() as connection:
        for row in connection.execute(select(NOTIFICATIONS).order_by(NOTIFICATIONS.c.id)):
            instance = row.instance.strftime("%Y-%m-%dT%H:%MZ")
            key = f"/falcon/{row.cluster}/{row.kind}/{row.entity}/{instance}"
            found.setdefault(key, []).append(row.key)
    return found
