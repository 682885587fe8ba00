"""A definition changes between two instances: each runs with the one that it has, on every engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import delete, insert, select, update

from falcon_assets.catalog.store import load_entities
from falcon_assets.compute.spark.sessions import stop_sessions
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.mapping.run_tags import USE_LATEST
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables import DEFINITION_VERSIONS, ENTITY_STATUS, PROCESS_INSTANCES, WORKFLOW_FILES
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.records import read_record
from tests.world import QUIET

pytestmark = pytest.mark.soak
VALIDITY = "{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}"
ENGINES = {
    "by-sql": "{engine: spark-sql, path: flows/n.sql}",
    "by-py": "{engine: pyspark, path: flows/n.py, lib: [flows/amount.py]}",
    "by-submit": '{engine: spark-submit, path: flows/program.py, args: ["${out}"], lib: [libs]}',
}
FEED = """---
kind: feed
name: {name}-out
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "n int"
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: primary, validity: {validity}}}]
"""
PROCESS = """---
kind: process
name: {name}
clusters: [{{name: primary, validity: {validity}}}]
frequency: hours(1)
outputs: [{{name: out, feed: {name}-out, instance: "now(0,0)"}}]
workflow: {workflow}
retry: {{policy: final}}
schedule: {schedule}
"""
PYTHON = """
from amount import N

def run(spark, inputs, instance):
    return spark.sql(f"SELECT {N} AS n")
"""
PROGRAM = """
import sys
from pyspark.sql import SparkSession
from told import N

SparkSession.builder.getOrCreate().sql(f"SELECT {N} AS n").write.json(sys.argv[1])
"""


def files(n: int) -> dict[str, str]:
    """Workflows that write this number; where a library says it, only that differs."""
    return {
        "flows/n.sql": f"SELECT {n} AS n",
        "flows/n.py": PYTHON,
        "flows/amount.py": f"N = {' + '.join('1' * n)}\n",
        "flows/program.py": PROGRAM,
        "libs/told.py": f"N = {n}\n",
    }


@dataclass
class World:
    """The code location at some times of a day."""

    settings: Settings
    instance: dg.DagsterInstance
    ledger: Ledger
    write: Callable[[dict[str, str]], Path]
    log: list[str] = field(default_factory=list)

    def declare(self, n: int, *, schedule: bool = True, **texts: str) -> None:
        """Writes the definitions, some with another text."""
        parts = [FEED.format(name=name, validity=VALIDITY) for name in ENGINES]
        for name, workflow in ENGINES.items():
            told = {"name": name, "validity": VALIDITY, "workflow": workflow, "schedule": str(schedule).lower()}
            parts.append(texts.get(name) or PROCESS.format(**told))
        self.write({"all.yaml": cluster_yaml() + "".join(parts), **files(n)})

    def at(self, time: str) -> Settings:
        return replace(self.settings, clock=Clock(origin=parse_instant(f"2013-01-01T{time}Z")))

    def tick(self, time: str, *processes: str) -> None:
        """Loads the code location, and executes what is due."""
        settings = self.at(time)
        store = load_entities(settings.entity_defs)
        chosen = store.workloads_of(*processes or ENGINES)
        outlook = Coordinator(store, settings, chosen).decide(self.ledger)
        assert outlook.problems == {}
        for run in outlook.runs:
            self._execute(definitions_of(store, settings), run.job_name, tags=dict(run.tags))

    def materialize(self, time: str, process: str, hour: int, **tags: str) -> dg.ExecuteInProcessResult:
        """Loads the code location, and runs an instance as a person does."""
        settings = self.at(time)
        definitions = definitions_of(load_entities(settings.entity_defs), settings)
        job = f"primary__{process.replace('-', '_')}_job"
        return self._execute(definitions, job, tags=tags, partition_key=f"2013-01-01T{hour:02}:00Z")

    def _execute(self, definitions: dg.Definitions, job: str, **told: object) -> dg.ExecuteInProcessResult:
        if "by_py" in job:
            stop_sessions()  # a Spark application has each library once, as the process of a run has
        result = definitions.resolve_job_def(job).execute_in_process(
            instance=self.instance, run_config=QUIET, raise_on_error=False, **told
        )
        self.log = [entry.user_message for entry in self.instance.all_logs(result.run_id)]
        self.ledger.catch_up()
        return result

    def written(self, process: str, hour: int) -> int:
        folder = self.settings.home / f"data/primary/{process}/2013-01-01-{hour:02}"
        (line,) = [line for file in folder.glob("part-*") for line in file.read_text().splitlines()]
        return int(json.loads(line)["n"])

    def recorded(self, process: str) -> dict[int, tuple[str, int | None]]:
        """Hour -> state and version."""
        table = PROCESS_INSTANCES.c
        with self.ledger.engine.connect() as connection:
            rows = connection.execute(select(PROCESS_INSTANCES).where(table.process == process)).all()
        return {row.nominal.hour: (row.state, row.definition) for row in rows}


@pytest.fixture(scope="module")
def world(
    settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> Iterator[World]:
    """Definitions that write 1 until 01:30, and 2 since then."""
    made = World(settings, instance, open_ledger(settings, instance), write_entities)
    made.declare(1)
    made.tick("00:30")
    made.declare(2)
    made.tick("01:30")
    made.tick("02:10")
    yield made


@pytest.mark.parametrize("process", ENGINES)
def test_each_instance_runs_with_the_definition_of_its_time(world: World, process: str) -> None:
    assert [world.written(process, hour) for hour in (0, 1, 2)] == [1, 1, 2]
    done = {0: ("SUCCEEDED", 1), 1: ("SUCCEEDED", 1), 2: ("SUCCEEDED", 2)}
    assert {hour: world.recorded(process)[hour] for hour in done} == done
    records = world.instance.fetch_materializations(dg.AssetKey(["primary", f"{process}-out"]), limit=10).records
    said = {one.partition_key: read_record(InstanceChanged, one).definition for one in records}
    assert said == {f"2013-01-01T0{hour}:00Z": version for hour, (_, version) in done.items()}


@pytest.mark.parametrize(
    "process", ["by-sql", *(pytest.param(name, marks=pytest.mark.soak) for name in ENGINES if name != "by-sql")]
)
def test_a_rerun_has_the_old_definition_unless_the_latest_is_asked_for(world: World, process: str) -> None:
    assert world.materialize("03:00", process, 0).success
    assert (world.written(process, 0), world.recorded(process)[0]) == (1, ("SUCCEEDED", 1))
    hint = f"falcon instance rerun {process} --start 2013-01-01T00:00Z --cluster primary --use-latest"
    assert [line for line in world.log if "runs with version 1 of its definition" in line and line.endswith(hint)]
    assert world.materialize("03:00", process, 0, **{USE_LATEST: "true"}).success
    assert (world.written(process, 0), world.recorded(process)[0]) == (2, ("SUCCEEDED", 2))
    assert not [line for line in world.log if "of its definition" in line]
    assert world.materialize("03:00", process, 0).success
    assert (world.written(process, 0), world.recorded(process)[0]) == (1, ("SUCCEEDED", 1))


def test_a_rebuild_knows_the_versions_too(world: World) -> None:
    before = [world.recorded(process) for process in ENGINES]
    world.ledger.rebuild()
    assert [world.recorded(process) for process in ENGINES] == before


def failure(world: World, process: str, hour: int) -> str:
    """Why the instance failed."""
    table = PROCESS_INSTANCES.c
    with world.ledger.engine.connect() as connection:
        rows = connection.execute(select(table.nominal, table.reason).where(table.process == process)).all()
    return next(row.reason for row in rows if row.nominal.hour == hour)


INSTEAD = (
    "to run it with the latest: falcon instance rerun by-sql --start 2013-01-01T00:00Z --cluster primary --use-latest"
)


def test_a_version_whose_files_were_not_kept_fails_with_what_to_do(world: World) -> None:
    table = WORKFLOW_FILES
    own = (table.c.process == "by-sql", table.c.version == 1)
    with world.ledger.engine.begin() as connection:
        rows = [dict(row._mapping) for row in connection.execute(select(table).where(*own))]
        connection.execute(delete(table).where(*own))
    assert not world.materialize("03:10", "by-sql", 0).success
    said = "version 1 of process 'by-sql' cannot run any more: its workflow flows/n.sql was not kept"
    assert failure(world, "by-sql", 0) == f"{said}: the version is older than that; {INSTEAD}"
    assert world.recorded("by-sql")[0] == ("FAILED", 1)
    assert world.materialize("03:10", "by-sql", 0, **{USE_LATEST: "true"}).success
    with world.ledger.engine.begin() as connection:
        connection.execute(insert(table), [{**rows[0], "hash": None, "problem": "Permission denied"}])
    assert not world.materialize("03:10", "by-sql", 0).success
    assert "its workflow flows/n.sql was not kept: Permission denied; to run" in failure(world, "by-sql", 0)
    with world.ledger.engine.begin() as connection:
        connection.execute(update(table).where(*own).values(**rows[0]))
    assert world.materialize("03:10", "by-sql", 0).success


def test_a_text_that_is_no_definition_any_more_fails_with_what_is_wrong(world: World) -> None:
    table = DEFINITION_VERSIONS
    own = (table.c.name == "by-sql", table.c.version == 1)
    with world.ledger.engine.begin() as connection:
        text = connection.execute(select(table.c.text).where(*own)).scalar_one()
        connection.execute(update(table).where(*own).values(text=text.replace("frequency", "frequencies")))
    assert not world.materialize("03:20", "by-sql", 0).success
    said = failure(world, "by-sql", 0)
    assert "cannot run any more: by-sql version 1:4: frequencies: unknown key" in said
    assert said.endswith(INSTEAD)
    with world.ledger.engine.begin() as connection:
        connection.execute(update(table).where(*own).values(text=text))


def test_an_error_in_an_old_workflow_says_that_it_is_an_old_one(world: World) -> None:
    broken = PROCESS.format(name="by-sql", validity=VALIDITY, schedule="true", workflow=ENGINES["by-sql"])
    world.declare(2, **{"by-sql": broken + "description: broken\n"})
    world.write({"flows/n.sql": "SELECT no_such_column AS n"})
    world.tick("03:30", "by-sql")
    world.declare(2)
    assert not world.materialize("05:00", "by-sql", 4).success
    said = failure(world, "by-sql", 4)
    assert "no_such_column" in said
    assert "\nthis is version 3 of the definition, the latest is 4; to run it with the latest: falcon instance" in said
    assert world.recorded("by-sql")[4] == ("FAILED", 3)


def test_a_feed_that_is_gone_is_named(world: World) -> None:
    feed = FEED.format(name="new", validity=VALIDITY)
    new = PROCESS.format(name="by-sql", validity=VALIDITY, schedule="true", workflow=ENGINES["by-sql"])
    world.declare(2, **{"by-sql": feed + new.replace("feed: by-sql-out", "feed: new-out")})
    text = (world.settings.entity_defs / "all.yaml").read_text()
    world.write({"all.yaml": text.replace(FEED.format(name="by-sql", validity=VALIDITY), "")})
    assert not world.materialize("06:00", "by-sql", 0).success
    assert (
        failure(world, "by-sql", 0)
        == f"version 1 of process 'by-sql' cannot run any more: there is no feed 'by-sql-out'; {INSTEAD}"
    )
    world.declare(2)


def test_an_instance_that_only_the_new_frequency_has_runs_with_it(world: World) -> None:
    assert world.materialize("07:00", "by-sql", 0).success  # the definition of before is there again
    text = PROCESS.format(name="by-sql", validity=VALIDITY, schedule="true", workflow=ENGINES["by-sql"])
    world.declare(2, **{"by-sql": text.replace("hours(1)", "hours(5)")})
    world.materialize("08:00", "by-sql", 5)
    world.declare(2)
    world.materialize("09:00", "by-sql", 8)
    assert {hour: world.recorded("by-sql")[hour] for hour in (5, 8)} == {5: ("SUCCEEDED", 4), 8: ("SUCCEEDED", 8)}


def test_what_never_was_scheduled_runs_with_the_definition_that_is_there(world: World) -> None:
    with world.ledger.engine.begin() as connection:
        connection.execute(delete(ENTITY_STATUS))
    for n in (3, 4):
        world.declare(n, schedule=False)
        assert world.materialize("10:00", "by-sql", 0).success
        assert world.written("by-sql", 0) == n
