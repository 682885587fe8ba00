"""Real Dagster runs of real processes on real Spark: single partitions, ranges, and what goes wrong in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.history.events.columns import DataCaptured
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.process_instances import InstanceChanged, WorkDone
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml, land_rows
from tests.records import read_record
from tests.world import QUIET

ENTITIES = (
    cluster_yaml()
    + """---
kind: feed
name: raw
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "carrier string, delay int"
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}}]
---
kind: feed
name: hourly
description: Delays by carrier
tags: {owner: analytics}
groups: [delay-stats]
frequency: hours(1)
availability_flag: _DONE
versions: {keep: 1}
locations: {data: "/hourly/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}}]
acl: {owner: etl, permission: "0750"}
---
kind: feed
name: five-hourly
frequency: hours(5)
format: csv
locations: {data: "/five/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}}]
---
kind: feed
name: day-so-far
frequency: days(1)
availability_flag: _SUCCESS
locations: {data: "/so-far/${YEAR}-${MONTH}-${DAY}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}}]
---
kind: process
name: sum-up
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}}]
parallel: 2
frequency: hours(1)
inputs: [{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: sums, feed: hourly, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: sum_up.sql}
properties: {least: "10"}
---
kind: process
name: every-five
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}}]
frequency: hours(5)
inputs: [{name: rows, feed: raw, start: "now(-4,0)", end: "now(0,0)", optional: true}]
outputs: [{name: count, feed: five-hourly, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: count.sql}
---
kind: process
name: so-far
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: raw, start: "today(0,0)", end: "now(0,0)", optional: true}]
outputs: [{name: count, feed: day-so-far, instance: "today(0,0)"}]
workflow: {engine: pyspark, path: so_far.py}
"""
)
SUM_UP = "SELECT carrier, sum(delay) AS delay, :nominal_time AS hour FROM rows WHERE delay >= :least GROUP BY carrier"
COUNT = "SELECT count(*) AS n FROM rows"
SO_FAR = "def run(spark, inputs, instance):\n    return inputs['rows'].groupBy().count()\n"

Materialize = Callable[..., dg.ExecuteInProcessResult]


FILES = {"all.yaml": ENTITIES, "sum_up.sql": SUM_UP, "count.sql": COUNT, "so_far.py": SO_FAR}


@pytest.fixture(scope="module")
def definitions(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> dg.Definitions:
    return definitions_of(load_entities(write_entities(FILES)), settings)


@pytest.fixture(scope="module")
def materialize(definitions: dg.Definitions, instance: dg.DagsterInstance) -> Materialize:
    def run(
        process: str, first: str, last: str | None = None, of: dg.Definitions = definitions
    ) -> dg.ExecuteInProcessResult:
        job = of.resolve_job_def(f"primary__{process.replace('-', '_')}_job")
        if last is None:
            return job.execute_in_process(
                partition_key=first, instance=instance, run_config=QUIET, raise_on_error=False
            )
        tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        return job.execute_in_process(tags=tags, instance=instance, run_config=QUIET, raise_on_error=False)

    return run


@pytest.fixture(scope="module")
def land(settings: Settings) -> Callable[..., None]:
    """Lands an hour of ``raw``."""

    def write(hour: str, *rows: dict[str, Any]) -> None:
        folder = settings.home / "data/primary/raw" / hour[:10] / hour[11:13]
        land_rows(folder, *rows)

    return write


def materialized(instance: dg.DagsterInstance, feed: str) -> list[dg.EventLogRecord]:
    records = instance.fetch_materializations(dg.AssetKey(["primary", feed]), limit=1000).records
    return sorted(records, key=lambda record: record.partition_key or "")


def states(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult, feed: str) -> list[tuple[str, str, str]]:
    """The nominal time, state and reason of the observations of a run, by nominal time in the order of the log."""
    records = instance.fetch_observations(dg.AssetKey(["primary", feed]), limit=1000, ascending=True).records
    own = [read_record(InstanceChanged, record) for record in records if record.run_id == result.run_id]
    facts = [(format_instant(one.nominal), one.state.value, one.reason) for one in own]
    return sorted(facts, key=lambda fact: fact[0])


def failure(result: dg.ExecuteInProcessResult) -> str:
    (event,) = [event for event in result.all_events if event.is_step_failure]
    data = event.step_failure_data.user_failure_data
    assert data is not None
    assert data.description is not None
    return data.description


def test_a_missing_input_is_said_before_any_spark_work(
    materialize: Materialize, instance: dg.DagsterInstance, settings: Settings, tmp_path: Path
) -> None:
    """Whoever asked for Spark here would hear that nobody answers."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text.replace("local[2]", "sc://127.0.0.1:1"))
    away = definitions_of(load_entities(tmp_path), settings)
    result = materialize("sum-up", "2013-01-05T03:00Z", of=away)
    assert not result.success
    assert failure(result) == (
        "1 of 1 instance(s) of sum-up failed:\n"
        "2013-01-05T03:00Z: sum-up on primary at 2013-01-05T03:00Z waits for 1 input instance(s):\n"
        f"rows: raw 2013-01-05T03:00Z at {settings.home}/data/primary/raw/2013-01-05/03"
    )
    reason = (
        "sum-up on primary at 2013-01-05T03:00Z waits for 1 input instance(s):\n"
        f"rows: raw 2013-01-05T03:00Z at {settings.home}/data/primary/raw/2013-01-05/03"
    )
    assert states(instance, result, "hourly") == [("2013-01-05T03:00Z", "WAITING", reason)]
    assert materialized(instance, "hourly") == []


def test_one_partition_is_computed_published_and_recorded(
    materialize: Materialize, land: Callable[..., None], instance: dg.DagsterInstance, settings: Settings
) -> None:
    land("2013-01-01T05", {"carrier": "AA", "delay": 20}, {"carrier": "AA", "delay": 15}, {"carrier": "UA", "delay": 5})
    result = materialize("sum-up", "2013-01-01T05:00Z")
    assert result.success
    (record,) = materialized(instance, "hourly")
    assert record.partition_key == "2013-01-01T05:00Z"
    there, done, work = (read_record(kind, record) for kind in (FeedInstanceAvailable, InstanceChanged, WorkDone))
    folder, five = settings.home / "data/primary/hourly/2013-01-01/05", parse_instant("2013-01-01T05:00Z")
    files = list(folder.glob("part-*"))
    (consumed,) = (there.inputs or {})["rows"]
    assert done.inputs == there.inputs
    assert done.nominal == there.nominal == there.instance == five
    assert done.process == there.process == "sum-up"
    assert done.state is InstanceState.SUCCEEDED
    assert done.at == there.seen_at
    assert states(instance, result, "hourly") == [("2013-01-01T05:00Z", "RUNNING", "")]
    assert there.path == str(folder)
    assert there.records == 1
    assert there.files == len(files) == 1
    assert there.bytes == sum(file.stat().st_size for file in files)
    assert work.duration_seconds > 0
    assert read_record(DataCaptured, record) == DataCaptured("complete")
    assert (work.spark_application_id or "").startswith("local-")
    assert (consumed.feed, consumed.instance, consumed.path) == ("raw", five, "/raw/2013-01-01/05")
    assert len(consumed.version or "") == len(there.version) == 32
    assert sorted(path.name for path in folder.iterdir()) == ["_DONE", files[0].name]
    assert folder.stat().st_mode & 0o777 == 0o750


def test_a_range_fails_and_waits_instance_by_instance(
    materialize: Materialize, land: Callable[..., None], instance: dg.DagsterInstance, settings: Settings
) -> None:
    for hour in (0, 1, 3):
        land(f"2013-01-02T{hour:02}", {"carrier": "AA", "delay": 10 + hour})
    land("2013-01-02T02", {"carrier": "AA", "delay": "late"})  # not what the schema says; hour 4 does not land
    before = len(materialized(instance, "hourly"))
    result = materialize("sum-up", "2013-01-02T00:00Z", "2013-01-02T04:00Z")
    assert not result.success
    lines = failure(result).splitlines()
    assert lines[0] == "2 of 5 instance(s) of sum-up failed:"
    assert lines[1].startswith("2013-01-02T02:00Z: ")
    assert "delay" in failure(result)
    assert "2013-01-02T04:00Z: sum-up on primary at 2013-01-02T04:00Z waits for 1 input instance(s):" in lines
    came_to = states(instance, result, "hourly")
    assert [(nominal[11:13], state) for nominal, state, _ in came_to] == [
        ("00", "RUNNING"),
        ("01", "RUNNING"),
        ("02", "RUNNING"),
        ("02", "FAILED"),
        ("03", "RUNNING"),
        ("04", "WAITING"),
    ]
    reasons = {nominal: reason for nominal, _, reason in came_to if reason}
    assert all(f"{nominal}: {reason}" in failure(result) for nominal, reason in reasons.items())
    done = [record.partition_key for record in materialized(instance, "hourly")][before:]
    assert done == ["2013-01-02T00:00Z", "2013-01-02T01:00Z", "2013-01-02T03:00Z"]
    assert not (settings.home / "data/primary/hourly/2013-01-02/02").exists()
    assert not list((settings.home / "data/primary/.falcon/staging").rglob("part-*"))


def test_a_range_that_succeeds_records_each_instance_once(
    materialize: Materialize, land: Callable[..., None], instance: dg.DagsterInstance
) -> None:
    for hour in range(4):
        land(f"2013-01-03T{hour:02}", {"carrier": "AA", "delay": 10 + hour})
    result = materialize("sum-up", "2013-01-03T00:00Z", "2013-01-03T03:00Z")
    assert result.success
    records = [record for record in materialized(instance, "hourly") if (record.partition_key or "") >= "2013-01-03"]
    assert [record.partition_key for record in records] == [f"2013-01-03T0{hour}:00Z" for hour in range(4)]
    assert len({read_record(FeedInstanceAvailable, record).version for record in records}) == 4


def test_a_rerun_replaces_the_instance_and_records_what_it_read(
    materialize: Materialize, land: Callable[..., None], instance: dg.DagsterInstance
) -> None:
    first = read_record(FeedInstanceAvailable, materialized(instance, "hourly")[0])
    land("2013-01-01T05", {"carrier": "AA", "delay": 100}, {"carrier": "UA", "delay": 50})
    assert materialize("sum-up", "2013-01-01T05:00Z").success
    newest = instance.fetch_materializations(dg.AssetKey(["primary", "hourly"]), limit=1).records[0]
    second = read_record(FeedInstanceAvailable, newest)
    assert second.records == 2
    assert second.version != first.version
    assert first.inputs and second.inputs
    assert second.inputs["rows"][0].version != first.inputs["rows"][0].version


def test_a_frequency_without_a_cron_line_runs_as_well(
    materialize: Materialize, instance: dg.DagsterInstance, settings: Settings
) -> None:
    result = materialize("every-five", "2013-01-01T05:00Z")
    assert result.success
    (record,) = materialized(instance, "five-hourly")
    assert record.partition_key == "2013-01-01T05:00Z"
    rows = (read_record(FeedInstanceAvailable, record).inputs or {})["rows"]
    assert [one.instance for one in rows] == [parse_instant(f"2013-01-01T0{hour}:00Z") for hour in range(1, 6)]
    assert [one.instance.hour for one in rows if one.version] == [5]
    assert {one.feed for one in rows} == {"raw"}
    assert (settings.home / "data/primary/five/2013-01-01-05").is_dir()


def test_instances_that_rewrite_one_output_are_partitions_of_their_own(
    materialize: Materialize, instance: dg.DagsterInstance
) -> None:
    assert materialize("so-far", "2013-01-03T01:00Z", "2013-01-03T02:00Z").success
    records = materialized(instance, "day-so-far")
    assert [record.partition_key for record in records] == ["2013-01-03T01:00Z", "2013-01-03T02:00Z"]
    written = [read_record(FeedInstanceAvailable, record) for record in records]
    assert {one.instance for one in written} == {parse_instant("2013-01-03T00:00Z")}
    assert [len((one.inputs or {})["rows"]) for one in written] == [2, 3]


def test_an_instance_that_does_not_exist_says_why(materialize: Materialize) -> None:
    with pytest.raises(dg.DagsterUnknownPartitionError):
        materialize("sum-up", "2014-01-01T05:00Z")


def test_the_asset_shows_what_the_definition_says(definitions: dg.Definitions) -> None:
    spec = {spec.key.path[-1]: spec for spec in definitions.resolve_all_asset_specs()}["hourly"]
    assert spec.description == "Delays by carrier"
    assert spec.group_name == "delay_stats"
    assert list(spec.owners) == ["team:etl"]
    assert spec.kinds == {"primary", "parquet", "spark"}
    assert spec.tags["owner"] == "analytics"
    assert spec.tags["falcon/process"] == "sum-up"
    assert spec.metadata["falcon/frequency"] == "hours(1)"
    assert spec.metadata["falcon/location"] == "/hourly/${YEAR}-${MONTH}-${DAY}/${HOUR}"
    assert spec.metadata["falcon/inputs"] == "rows = raw now(0,0)..now(0,0)"


def test_feeds_that_nobody_produces_are_external(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    external = {key.to_user_string() for key in graph.get_all_asset_keys() if not graph.get(key).is_executable}
    assert external == {"primary/raw"}


def test_what_is_replaced_is_kept_and_said(
    materialize: Materialize, land: Callable[..., None], instance: dg.DagsterInstance, settings: Settings
) -> None:
    for delay in (20, 30):
        land("2013-01-06T05", {"carrier": "AA", "delay": delay})
        assert materialize("sum-up", "2013-01-06T05:00Z").success
    asked = dg.AssetRecordsFilter(asset_key=dg.AssetKey(["primary", "hourly"]), asset_partitions=["2013-01-06T05:00Z"])
    found = instance.fetch_materializations(asked, 2, ascending=True).records
    first, second = (read_record(FeedInstanceAvailable, record) for record in found)
    assert first.kept_versions == ()
    (kept,) = second.kept_versions or ()
    assert kept.version == first.version != second.version
    assert (Path(kept.path) / "_DONE").is_file()
    assert Path(kept.path).is_relative_to(settings.home / "data/primary/.falcon/staging/versions/primary/hourly")


def test_jobs_and_schedules_say_what_they_are_for(definitions: dg.Definitions) -> None:
    repository = definitions.get_repository_def()
    assert repository.get_job("primary__sum_up_job").description == (
        "sum-up on primary, every hours(1): reads raw and writes hourly"
    )
    assert all(repository.get_job(name).description for name in repository.job_names if not name.startswith("__"))
    assert all(one.description for one in (*repository.schedule_defs, *repository.sensor_defs))


def test_everything_that_exists_is_listed(definitions: dg.Definitions) -> None:
    repository = definitions.get_repository_def()
    keys = sorted(key.to_user_string() for key in repository.asset_graph.get_all_asset_keys())
    assert keys == ["primary/day-so-far", "primary/five-hourly", "primary/hourly", "primary/raw"]
    assert sorted(name for name in repository.job_names if not name.startswith("__")) == [
        "primary__every_five_job",
        "primary__retention_hours_24",
        "primary__so_far_job",
        "primary__sum_up_job",
    ]
    assert sorted(sensor.name for sensor in repository.sensor_defs) == [
        "default__coordinator",
        "primary__collector",
        "primary__retention_at_once",
    ]
    assert [schedule.name for schedule in repository.schedule_defs] == ["primary__retention_hours_24_schedule"]
