"""Processes without outputs: from the definition to the instance that succeeded, failed, was late or timed out."""

from __future__ import annotations

import dagster as dg
import pytest
from sqlalchemy import select

from falcon_assets.history.events.process_instances import InstanceChanged, WorkDone
from falcon_assets.history.tables import CONSUMED, FEED_INSTANCES
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.instances.runs.dead_runs import free_instances_of_deleted_runs
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.records import read_record
from tests.world import MakeWorld, World

ENTITIES = (
    cluster_yaml()
    + """---
kind: feed
name: orders
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "n int"
late_arrival: {cut_off: hours(4)}
locations: {data: "/orders/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
---
kind: process
name: check-orders
description: Nobody orders nothing
tags: {owner: sales}
pipelines: [data-quality]
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T04:00Z}}]
parallel: 4
frequency: hours(1)
timeout: hours(1)
inputs: [{name: rows, feed: orders, start: "now(0,0)", end: "now(0,0)"}]
workflow: {engine: spark-sql, path: check.sql}
late_process: {policy: backoff, delay: hours(1), inputs: [{input: rows, workflow: {engine: pyspark, path: tell.py}}]}
retry: {policy: final}
acl: {owner: sales}
schedule: true
---
kind: process
name: heart-beat
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}]
frequency: hours(5)
workflow: {engine: pyspark, path: tell.py}
schedule: true
"""
)
CHECK = "SET a.b = 1; SELECT assert_true(n > 0, concat(n, ' ordered')) FROM rows"
TELL = """
from pathlib import Path

def run(spark, inputs, instance):
    with Path({said!r}).open("a") as file:
        print(instance.process, f"{{instance.nominal_time:%H:%M}}", *instance.outputs, file=file)
"""
OWN = dg.AssetKey(["primary", "check-orders"])


class EffectsWorld(World):
    """The entities, what lands, and what is done about it."""

    @property
    def said(self) -> str:
        return (self.settings.home / "said").read_text()

    def tick(self, time: str, *processes: str) -> list[str]:
        """Collects, looks for late data, and executes what is launched; the keys of the runs."""
        self.collect(time)
        self.late(time, *processes)
        runs = self.decide(time, *processes).runs
        for run in runs:
            self.execute(run, time)
        self.ledger.catch_up()
        return [run.run_key for run in runs]

    def states(self, process: str) -> dict[int, tuple[str, str]]:
        return {number: (row["state"], row["reason"]) for number, row in self.rows(process).items()}

    def effects(self) -> list[dg.EventLogRecord]:
        return [*self.instance.fetch_materializations(OWN, limit=100, ascending=True).records]


@pytest.fixture(scope="module")
def world(settings: Settings, make_world: MakeWorld) -> EffectsWorld:
    tell = TELL.format(said=str(settings.home / "said"))
    return make_world({"all.yaml": ENTITIES, "check.sql": CHECK, "tell.py": tell}, EffectsWorld)


def test_the_effect_is_an_asset_of_its_own(world: EffectsWorld) -> None:
    definitions = definitions_of(world.store, world.settings)
    dg.Definitions.validate_loadable(definitions)
    specs = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    assert sorted(key.to_user_string() for key in specs) == [
        "primary/check-orders",
        "primary/heart-beat",
        "primary/orders",
    ]
    spec = specs[OWN]
    assert (spec.description, spec.group_name, list(spec.owners)) == (
        "Nobody orders nothing",
        "data_quality",
        ["team:sales"],
    )
    assert spec.kinds == {"primary", "spark"}
    assert {key: spec.tags[key] for key in ("owner", "falcon/process", "falcon/pipeline")} == {
        "owner": "sales",
        "falcon/process": "check-orders",
        "falcon/pipeline": "data-quality",
    }
    assert [dep.asset_key for dep in spec.deps] == [dg.AssetKey(["primary", "orders"])]
    assert spec.partitions_def is not None
    assert list(spec.partitions_def.get_partition_keys()) == [f"2013-01-01T0{hour}:00Z" for hour in range(4)]


def test_instances_succeed_and_fail_on_their_own(world: EffectsWorld) -> None:
    world.write("orders", 0, 5)
    world.write("orders", 1, 0)
    assert world.tick("01:30", "check-orders") == [
        "check-orders on primary, 2013-01-01T00:00Z to 2013-01-01T01:00Z, attempt 1"
    ]
    states = world.states("check-orders")
    assert states[0] == ("SUCCEEDED", "")
    assert states[1][0] == "FAILED"
    assert states[1][1].endswith("check.sql:1: [USER_RAISED_EXCEPTION] 0 ordered")
    (event,) = world.effects()
    done = read_record(InstanceChanged, event)
    assert event.partition_key == format_instant(done.nominal) == "2013-01-01T00:00Z"
    assert (done.process, done.state) == ("check-orders", InstanceState.SUCCEEDED)
    assert read_record(WorkDone, event).spark_application_id.startswith("local-")
    assert [one.instance for one in done.inputs["rows"]] == [done.nominal]
    with world.ledger.engine.connect() as connection:
        assert {row.feed for row in connection.execute(select(FEED_INSTANCES))} == {"orders"}
        assert {row.nominal.hour for row in connection.execute(select(CONSUMED))} == {0}


def test_late_data_runs_it_again(world: EffectsWorld) -> None:
    world.write("orders", 0, 7)
    world.tick("01:40", "check-orders")
    assert world.tick("02:00", "check-orders") == ["check-orders on primary, 2013-01-01T00:00Z, attempt 2"]
    assert world.said == "check-orders 00:00\n"
    (_, again) = world.effects()
    assert again.partition_key == "2013-01-01T00:00Z"
    done = read_record(InstanceChanged, again)
    assert [(one.feed, one.instance) for one in done.late] == [("orders", done.nominal)]


def test_what_comes_too_late_is_said_there(world: EffectsWorld) -> None:
    world.tick("04:00", "check-orders")
    world.write("orders", 0, 8)
    world.tick("05:00", "check-orders")
    records = world.instance.fetch_observations(OWN, limit=100).records
    observed = [one.event_log_entry.asset_observation for one in records]
    assert "orders 2013-01-01T00:00Z changed 1:00:00 after its cut-off: check-orders 2013-01-01T00:00Z is not run" in {
        str(one.description).removesuffix(" again") for one in observed if one
    }


def test_it_times_out(world: EffectsWorld) -> None:
    assert world.states("check-orders")[3] == (
        "TIMED_OUT",
        "missing after hours(1): rows: orders 2013-01-01T03:00Z",
    )


def test_a_process_without_inputs_and_outputs_runs_at_its_time(world: EffectsWorld) -> None:
    runs = world.tick("10:00", "heart-beat")
    assert runs == ["heart-beat on primary, 2013-01-01T00:00Z to 2013-01-01T10:00Z, attempt 1"]
    assert world.said.splitlines()[1:] == [f"heart-beat {hour}:00" for hour in ("00", "05", "10")]
    assert {state for state, _ in world.states("heart-beat").values()} == {"SUCCEEDED"}


def test_an_instance_of_a_deleted_run_waits_again(world: EffectsWorld) -> None:
    settings, chosen = world.at("15:00"), world.store.workloads_of("heart-beat")
    (run,) = Coordinator(world.store, settings, chosen).decide(world.ledger).runs
    job = definitions_of(world.store, settings).resolve_job_def(run.job_name)
    made = world.instance.create_run_for_job(job, tags=dict(run.tags), status=dg.DagsterRunStatus.NOT_STARTED)
    event = dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, run.job_name, message="started")
    world.instance.report_dagster_event(event, made.run_id)
    world.ledger.catch_up()
    world.instance.delete_run(made.run_id)
    assert free_instances_of_deleted_runs(world.ledger, settings.now(), chosen) == 1
    world.ledger.catch_up()
    assert world.states("heart-beat")[15] == ("WAITING", "its run was deleted")
    assert world.tick("15:00", "heart-beat") == ["heart-beat on primary, 2013-01-01T15:00Z, attempt 2"]


def test_the_ledger_is_what_a_rebuild_makes_of_it(world: EffectsWorld) -> None:
    before = world.states("check-orders"), world.states("heart-beat")
    world.ledger.rebuild()
    assert (world.states("check-orders"), world.states("heart-beat")) == before
    assert parse_instant("2013-01-01T00:00Z").hour in before[0]
