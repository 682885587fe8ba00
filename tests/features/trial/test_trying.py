"""Instances that are only tried: what they would make is shown, and nothing of it stays; on Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import MissingInputsError, QueryError, WorkflowError
from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.trial.operations import TryInstance, TryResult, try_instance
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.views.listing import list_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.world import QUIET

pytestmark = pytest.mark.soak

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}"
FEED = """---
kind: feed
name: {name}
frequency: hours(1)
format: json
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: primary, {span}}}]
"""
PROCESS = """---
kind: process
name: {name}
clusters: [{{name: primary, {span}}}]
frequency: hours(1)
inputs: [{{name: read, feed: landed, start: "now(0,0)", end: "now(0,0)"}}]
{outputs}
workflow: {{engine: {engine}, path: {path}}}
properties: {{factor: "2", api_token: hush-hush}}
"""
OUT = 'outputs: [{{name: out, feed: {feed}, instance: "now(0,0)"}}]'


def process(name: str, engine: str, path: str, feed: str | None) -> str:
    outputs = OUT.format(feed=feed) if feed else ""
    return PROCESS.format(name=name, engine=engine, path=path, outputs=outputs, span=SPAN)


FILES = {
    "all.yaml": cluster_yaml()
    + "".join(FEED.format(name=name, span=SPAN) for name in ("landed", "a", "b", "c"))
    + FEED.format(name="d", span=SPAN).replace("json", "parquet")
    + process("by-sql", "spark-sql", "a.sql", "a")
    + process("by-python", "pyspark", "b.py", "b")
    + process("instant", "spark-sql", "d.sql", "d")
    + process("failing", "pyspark", "c.py", "c")
    + process("effect", "pyspark", "b.py", None),
    "a.sql": "SELECT v * :factor AS more, :api_token AS said FROM read ORDER BY v",
    "b.py": "def run(spark, inputs, instance): return inputs['read'].selectExpr('v + 1 AS next', '\"hush-hush\" AS t')",
    "d.sql": "SELECT timestamp'2013-01-01 20:15:00' AS t",
    "c.py": "def run(spark, inputs, instance):\n    raise ValueError('no ' + instance.properties['api_token'])\n",
}
HOUR, NEXT = parse_instant("2013-01-01T03:00Z"), parse_instant("2013-01-01T04:00Z")


@pytest.fixture(scope="module")
def world(
    settings: object, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> Iterator[Installation]:
    load_entities(write_entities(FILES))
    with open_installation(settings, instance) as installation:  # type: ignore[arg-type]
        folder = installation.settings.home / "data/primary/landed/2013-01-01-03"
        folder.mkdir(parents=True)
        (folder / "part.json").write_text("".join(f'{{"v": {value}}}\n' for value in (1, 2, 3)))
        collect_instances(installation, "landed", HOUR, HOUR)
        yield installation


def tried(installation: Installation, name: str, rows: int = 2) -> TryResult:
    with TryInstance(process=name, instance=HOUR, rows=rows).trial(installation) as trial:
        return try_instance(trial)


def left(installation: Installation) -> list[Path]:
    return list(installation.settings.home.rglob("tries/*"))


def test_rows_columns_and_where_they_come_from(world: Installation) -> None:
    (out,) = tried(world, "by-sql").as_data()["outputs"]
    assert (out["records"], out["rows"]) == (3, [["2", "*****"], ["4", "*****"]])
    assert {one["name"]: one["from"] for one in out["columns"]}["more"] == ["landed.v"]
    (out,) = tried(world, "by-python", rows=1).as_data()["outputs"]
    assert (out["records"], out["rows"]) == (3, [["2", "*****"]])
    assert left(world) == []
    assert not (world.settings.home / "data/primary/a").exists()
    runs = {one.instance: one.attempt for one in list_instances(world, InstanceQuery("by-sql", start=HOUR)).items}
    assert runs == {HOUR: 0}


def test_instants_are_shown_in_utc(world: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        (out,) = tried(world, "instant").as_data()["outputs"]
    time.tzset()
    assert out["rows"] == [["2013-01-01 20:15:00"]]


def test_what_cannot_be_tried(world: Installation) -> None:
    with (
        pytest.raises(MissingInputsError, match="waits for 1 input instance"),
        TryInstance(process="by-sql", instance=NEXT).trial(world),
    ):
        pass
    with (
        pytest.raises(QueryError, match=r"^effect has no outputs to look at"),
        TryInstance(process="effect", instance=HOUR).trial(world),
    ):
        pass
    with pytest.raises(WorkflowError) as raised:
        tried(world, "failing")
    assert "hush-hush" not in str(raised.value)
    assert left(world) == []


def test_what_was_killed_goes_with_the_next_one(world: Installation) -> None:
    tried(world, "by-python")
    (place,) = world.settings.home.rglob("tries")
    (place / "dead").mkdir()
    (place / "dead" / "part.json").write_text("{}")
    tried(world, "by-python")
    assert left(world) == []


def test_a_rerun_has_the_properties_that_were_asked_for_and_the_next_one_has_not(world: Installation) -> None:
    job = definitions_of(world.entities, world.settings).resolve_job_def("primary__by_sql_job")

    def made() -> str:
        done = job.execute_in_process(partition_key="2013-01-01T03:00Z", instance=world.instance, run_config=QUIET)
        assert done.success
        return "".join(one.read_text() for one in world.settings.home.glob("data/primary/a/2013-01-01-03/part*"))

    assert '"more":2,' in made()
    asked = InstanceRequest(InstanceQuery("by-sql", start=HOUR))
    rerun_instances(world, asked, RerunOptions(force=True, properties={"factor": "10"}))
    assert '"more":10,' in made()
    Coordinator(world.entities, world.settings, world.entities.workloads).decide(world.ledger)  # it has been served
    rerun_instances(world, asked, RerunOptions(force=True))
    assert '"more":2,' in made()
