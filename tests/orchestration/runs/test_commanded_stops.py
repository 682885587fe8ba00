"""Commands to instances that a run computes: that one stops, on real Spark, and its siblings go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.instances.operations.selection import CommandResult, InstanceRequest
from falcon_assets.instances.operations.stopping import kill_instances, resume_instances, suspend_instances
from falcon_assets.instances.store.known_instances import known_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.waiting import wait_until
from tests.world import QUIET

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-08T00:00Z}"
FEED = """---
kind: feed
name: {name}
frequency: hours(1)
format: json
schema: "n bigint"
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, {span}}}]
"""
PROCESS = """---
kind: process
name: {name}
parallel: 2
frequency: hours(1)
clusters: [{{name: primary, {span}}}]
inputs: [{{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: {name}-out, instance: "now(0,0)"}}]
workflow: {workflow}
"""
COPIED = f"""---
kind: feed
name: copied
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/copied/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, type: source, {SPAN}}}, {{name: backup, type: target, {SPAN}}}]
properties: {{mapBandwidth: "1"}}
"""
WORKFLOWS = {
    "sql": "{engine: spark-sql, path: long.sql}",
    "python": "{engine: pyspark, path: long.py}",
    "stubborn": "{engine: pyspark, path: stubborn.py}",
    "program": '{engine: spark-submit, path: program.py, args: ["${rows}", "${out}"]}',
}
ENTITIES = (
    cluster_yaml()
    + cluster_yaml(name="backup")
    + COPIED
    + FEED.format(name="raw", span=SPAN)
    + "".join(FEED.format(name=f"{name}-out", span=SPAN) for name in WORKFLOWS)
    + "".join(PROCESS.format(name=name, workflow=workflow, span=SPAN) for name, workflow in WORKFLOWS.items())
)
FILES = {
    "all.yaml": ENTITIES,
    "long.sql": "SELECT sum(id % 7) AS n FROM range(0, 1000000000000000, 1, 2)",
    "long.py": """
def run(spark, inputs, instance):
    if inputs["rows"].first().n:
        return spark.range(0, 10**15, 1, 2).selectExpr("sum(id % 7) AS n")
    return inputs["rows"]
""",
    "stubborn.py": """
def run(spark, inputs, instance):
    for _ in range(2 * inputs["rows"].first().n):
        try:
            spark.range(0, 10**15, 1, 2).selectExpr("sum(id % 7) AS n").collect()
        except Exception as error:
            caught = error
    return inputs["rows"]
""",
    "program.py": """
import sys, time
print("here", flush=True)
while True:
    time.sleep(1)
""",
}
JOB = "primary__{}_job"
SLOW, QUICK = parse_instant("2013-01-01T00:00Z"), parse_instant("2013-01-01T01:00Z")


@pytest.fixture(scope="module")
def definitions(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> dg.Definitions:
    for hour, n in (("00", 1), ("01", 0)):
        folder = settings.home / "data/primary/raw/2013-01-01" / hour
        folder.mkdir(parents=True)
        (folder / "part.json").write_text(f'{{"n": {n}}}\n')
    return definitions_of(load_entities(write_entities(FILES)), settings)


@pytest.fixture
def installation(definitions: dg.Definitions, settings: Settings) -> Iterator[Installation]:
    with open_installation(settings) as opened:
        yield opened


def record(installation: Installation, process: str, nominal: object = SLOW) -> InstanceRecord:
    installation.ledger.catch_up()
    key = (process, "primary", nominal)
    with installation.ledger.engine.connect() as connection:
        return known_instances(connection, [key])[key].record  # type: ignore[list-item,index]


class Run:
    """A run in another thread."""

    def __init__(self, definitions: dg.Definitions, instance: dg.DagsterInstance, job_name: str, last: str) -> None:
        tags = {
            "dagster/asset_partition_range_start": "2013-01-01T00:00Z",
            "dagster/asset_partition_range_end": last,
        }
        job = definitions.resolve_job_def(job_name)
        self.result: dg.ExecuteInProcessResult | None = None

        def run() -> None:
            self.result = job.execute_in_process(tags=tags, instance=instance, run_config=QUIET, raise_on_error=False)

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def ended(self) -> dg.ExecuteInProcessResult:
        self.thread.join(120)
        assert self.result is not None, "the run goes on"
        return self.result


def request(process: str) -> InstanceRequest:
    return InstanceRequest(InstanceQuery(process, start=SLOW), reason="it hangs")


def left_behind(settings: Settings, process: str) -> list[Path]:
    """Files of an output that is not published."""
    root = settings.home / "data/primary"
    return [file for file in root.rglob("*") if file.is_file() and f"{process}-out" in str(file)]


def begun(installation: Installation, process: str, settings: Settings) -> None:
    """Waits until the instance is computed: the ledger says so, and Spark or its program is at work."""
    wait_until(lambda: record(installation, process).state is InstanceState.RUNNING, 120, "it runs")
    if process == "program":
        logs = settings.home / "data/primary/.falcon/working/spark-submit"
        wait_until(lambda: any("here" in log.read_text() for log in logs.rglob("*.log")), 120, "the program runs")


STOPS = {"kill": (kill_instances, InstanceState.KILLED), "suspend": (suspend_instances, InstanceState.SUSPENDED)}


@pytest.mark.parametrize(
    ("process", "last", "command"),
    [
        ("sql", "2013-01-01T00:00Z", "kill"),
        ("python", "2013-01-01T01:00Z", "suspend"),
        ("stubborn", "2013-01-01T01:00Z", "kill"),
        ("program", "2013-01-01T00:00Z", "kill"),
    ],
)
def test_an_instance_that_is_computed_stops_and_its_siblings_go_on(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    installation: Installation,
    settings: Settings,
    process: str,
    last: str,
    command: str,
) -> None:
    run = Run(definitions, instance, JOB.format(process), last)
    begun(installation, process, settings)
    tell, state = STOPS[command]
    done: CommandResult = tell(installation, request(process))
    assert done.changed == 1
    assert record(installation, process).state is state  # its slot is free at once
    result = run.ended()
    stopped = record(installation, process)
    assert (stopped.state, stopped.failures, stopped.queued_run) == (state, 0, None)
    assert stopped.reason.endswith("it hangs")
    if last.startswith("2013-01-01T01"):
        assert result.success
        assert record(installation, process, QUICK).state is InstanceState.SUCCEEDED
        outputs = {file.parent.name for file in left_behind(settings, process)}
        assert outputs == {"01"}
    else:
        assert not result.success
        (event,) = [event for event in result.all_events if event.is_step_failure]
        assert event.step_failure_data.user_failure_data is not None
        said = event.step_failure_data.user_failure_data.description or ""
        assert said.startswith(f"1 of 1 instance(s) of {process} not computed:\n2013-01-01T00:00Z: ")
        assert left_behind(settings, process) == []
    if command == "suspend":
        assert resume_instances(installation, request(process)).changed == 1
        assert record(installation, process).state is InstanceState.WAITING


def test_a_copy_stops_and_nothing_of_it_is_published(
    definitions: dg.Definitions, instance: dg.DagsterInstance, installation: Installation, settings: Settings
) -> None:
    """More than is copied without Spark, at a megabyte a second."""
    folder = settings.home / "data/primary/copied/2013-01-01/00"
    folder.mkdir(parents=True)
    (folder / "part").write_bytes(bytes(60 << 20))
    (folder / "_SUCCESS").touch()
    (workload,) = (one for one in installation.entities.workloads if one.name == "copied from primary")
    run = Run(definitions, instance, workload.job_name, "2013-01-01T00:00Z")
    copied = InstanceQuery("copied", start=SLOW)

    def state() -> InstanceState:
        installation.ledger.catch_up()
        key = (workload.name, "backup", SLOW)
        with installation.ledger.engine.connect() as connection:
            return known_instances(connection, [key])[key].record.state

    wait_until(lambda: state() is InstanceState.RUNNING, 120, "it runs")
    assert kill_instances(installation, InstanceRequest(copied, reason="too slow")).changed == 1
    assert not run.ended().success
    assert state() is InstanceState.KILLED
    assert not (settings.home / "data/backup/copied/2013-01-01/00").exists()
