"""Commands and queries of the pages about Dagster, taken from their text, run with a real webserver and daemon."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.find_spark_home import _find_spark_home

from examples.flights.landing import land
from falcon_assets.catalog.store import load_entities
from falcon_assets.model.instant import parse_instant
from falcon_assets.settings import Settings
from tests.docs.pages import run_blocks, section, text_below
from tests.docs.programs import running
from tests.examples.sandbox import copy_demo
from tests.processes import BIN, free_port, listens
from tests.waiting import wait_until

pytestmark = pytest.mark.soak  # a minute and a half of commands and runs

ADDRESS = "127.0.0.1:3000"
MATERIALIZED = "2013-01-02T10:00Z"
LAUNCHED = "2013-01-02T11:00Z"
RANGE = ["2013-01-02T12:00Z", "2013-01-02T13:00Z"]
NEVER_LANDED = "2013-06-01T00:00Z"
RECIPES = {
    "Check that the code location loads",
    "List assets",
    "Materialize one partition",
    "Materialize a range of partitions in one run",
    "Queue a backfill",
    "Report new data",
    "GraphQL",
    "List assets and their groups",
    "Launch a run of one partition",
    "Launch one run of a range of partitions",
    "Launch a backfill over several assets",
    "Check a backfill",
    "Check a run",
    "Find out why a run failed",
    "Change entities",
    "Run instances again",
    "What is recorded of a partition",
    "See which partitions are available",
    "pyspark",
    "Many instances by one function",
    "A function of Arrow tables",
    "python",
}
"""The headings whose blocks are executed here."""


def query(heading: str) -> str:
    (block,) = [block for block in section(heading) if block.language == "graphql"]
    return block.text


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server, so that the runs need no Spark of their own: starting one is most of what a run costs."""
    folder, port = tmp_path_factory.mktemp("connect"), free_port()
    confs = {"master": "local[2]", "connect.grpc.binding.port": str(port), "driver.memory": "1g", "ui.enabled": "false"}
    flags = [part for key, value in confs.items() for part in ("--conf", f"spark.{key}={value}")]
    script = str(Path(_find_spark_home(), "sbin/start-connect-server.sh"))
    environ = {**os.environ, "SPARK_LOG_DIR": str(folder), "SPARK_PID_DIR": str(folder), "SPARK_LOCAL_IP": "127.0.0.1"}
    with running(folder / "connect.log", script, "--wait", *flags, cwd=folder, env=environ):
        wait_until(lambda: listens(port), 120, f"the Connect server; see {folder}")
        yield f"sc://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def project(checkout: Path, settings: Settings, connect: str) -> Path:
    """With the entities of the demo, and four hours of what ``make demo`` lands."""
    copy_demo(checkout, primary=connect, backup=connect)
    for file in (checkout / "entity_defs" / "processes").iterdir():
        # The recipes start runs themselves; coordinators would be faster.
        file.write_text(file.read_text().replace("schedule: true", "schedule: false"))
    store = load_entities(checkout / "entity_defs")
    first = parse_instant(MATERIALIZED)
    assert all(land(store, settings, first, first + timedelta(hours=3)))
    return checkout


@pytest.fixture(scope="module")
def run_section(project: Path, environ: dict[str, str]) -> Callable[[str], str]:
    """Runs the commands of a section, and checks that they print what it shows."""
    return lambda heading: run_blocks(section(heading), project, environ)


@pytest.fixture(scope="module")
def address() -> str:
    """Where the webserver listens here."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def graphql(project: Path, environ: dict[str, str], address: str, settings: Settings) -> Iterator[Callable[..., Any]]:
    """The function of the page, with ``dagster dev`` behind it."""
    (block,) = [block for block in section("GraphQL") if block.language == "python"]
    assert ADDRESS in block.text
    names: dict[str, Any] = {}
    exec(block.text.replace(ADDRESS, address), names)

    def locations() -> list[Any] | None:
        try:
            answer = names["graphql"]("{ assetNodes { id } }")
        except urllib.error.URLError:
            return None
        return answer["assetNodes"] or None

    command = (str(BIN / "dagster"), "dev", "--host", *address.replace(":", " --port ").split())
    own = {**environ, "FALCON_SUPERUSERS": settings.user}  # the entities of the demo belong to others
    with running(project / "dev.log", *command, cwd=project, env=own):
        wait_until(locations, 120, f"the webserver; see {project / 'dev.log'}")
        yield names["graphql"]


@dataclass(frozen=True)
class Launched:
    """What the mutations of the page started."""

    one: str
    range: str
    failing: str
    backfill: str


@pytest.fixture(scope="module")
def launched(graphql: Callable[..., Any]) -> Launched:
    def run(text: str) -> str:
        answer = graphql(text)["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        run_id: str = answer["run"]["runId"]
        return run_id

    one = query("Launch a run of one partition")
    assert LAUNCHED in one
    backfill = graphql(query("Launch a backfill over several assets"))["launchPartitionBackfill"]
    assert backfill["__typename"] == "LaunchBackfillSuccess", backfill
    return Launched(
        one=run(one),
        range=run(query("Launch one run of a range of partitions")),
        failing=run(one.replace(LAUNCHED, NEVER_LANDED)),
        backfill=backfill["backfillId"],
    )


@pytest.fixture(scope="module")
def ended(graphql: Callable[..., Any]) -> Callable[[str], str]:
    """Waits for a run, by the query of the page, and gives its last status."""

    def wait(run_id: str) -> str:
        def final() -> str | None:
            status: str = graphql(query("Check a run"), id=run_id)["runOrError"]["status"]
            return status if status in ("SUCCESS", "FAILURE", "CANCELED") else None

        return wait_until(final, 300, f"the end of run {run_id}")

    return wait


@pytest.fixture(scope="module")
def recorded(graphql: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """The metadata of the latest materialization of a partition, by the query of the page."""

    def read(asset: list[str], partition: str) -> dict[str, Any]:
        answer = graphql(query("What is recorded of a partition"), asset=asset, partition=partition)
        (materialization,) = answer["assetNodeOrError"]["assetMaterializations"]
        return {
            entry["label"]: next(value for key, value in entry.items() if key != "label")
            for entry in materialization["metadataEntries"]
        }

    return read


def test_assets_and_their_groups(graphql: Callable[..., Any], launched: Launched) -> None:
    found = graphql(query("List assets and their groups"))["assetNodes"]
    nodes = {"/".join(one["assetKey"]["path"]): one for one in found}
    assert {key: one["groupName"] for key, one in nodes.items()} == {
        "backup/raw-flights": "landing",
        "backup/raw-weather": "landing",
        "backup/weather-daily": "weather",
        "primary/carriers-weekly": "reports",
        "primary/delays-daily": "delays",
        "primary/delays-hourly": "delays",
        "primary/raw-flights": "landing",
        "primary/raw-weather": "landing",
        "primary/weather-daily": "weather",
    }
    assert not nodes["primary/raw-flights"]["isMaterializable"]
    assert "primary__hourly_delays_job" in nodes["primary/delays-hourly"]["jobNames"]
    assert set(nodes["primary/delays-hourly"]["kinds"]) == {"parquet", "primary", "spark"}


def test_check_that_the_code_location_loads(run_section: Callable[[str], str]) -> None:
    shown = run_section("Check that the code location loads")
    assert "2 clusters, 6 feeds, 4 processes: no problems" in shown
    assert "All code locations passed validation." in shown


def test_list_assets(run_section: Callable[[str], str]) -> None:
    run_section("List assets")


def test_queue_a_backfill(
    run_section: Callable[[str], str], instance: dg.DagsterInstance, ended: Callable[[str], str], project: Path
) -> None:
    run_section("Queue a backfill")
    job = dg.RunsFilter(job_name="backup__daily_weather_job")
    run = wait_until(lambda: next(iter(instance.get_runs(job)), None), 60, "the run of the backfill")
    assert ended(run.run_id) == "SUCCESS"
    assert (project / ".falcon/data/backup/weather/daily/2013-01-01/_SUCCESS").is_file()


def test_materialize_one_partition(
    run_section: Callable[[str], str], recorded: Callable[..., dict[str, Any]], project: Path
) -> None:
    run_section("Materialize one partition")
    assert recorded(["primary", "delays-hourly"], MATERIALIZED)["instance"] == MATERIALIZED
    assert (project / ".falcon/data/primary/delays/hourly/2013-01-02/10/_SUCCESS").is_file()


def test_materialize_a_range_of_partitions_in_one_run(
    run_section: Callable[[str], str], recorded: Callable[..., dict[str, Any]]
) -> None:
    run_section("Materialize a range of partitions in one run")
    for day in ("2013-01-01T00:00Z", "2013-01-02T00:00Z"):
        assert recorded(["primary", "weather-daily"], day)["instance"] == day


def test_report_what_has_landed(
    graphql: Callable[..., Any],
    recorded: Callable[..., dict[str, Any]],
    address: str,
    project: Path,
    environ: dict[str, str],
    settings: Settings,
    instance: dg.DagsterInstance,
) -> None:
    missing, there = (f"2013-01-02T{hour}:00Z" for hour in (14, 15))
    blocks = {block.language: block.text for block in section("Report new data")}
    assert missing in blocks["bash"]
    assert there in blocks["python"]
    assert any(land(load_entities(project / "entity_defs"), settings, parse_instant(there), parse_instant(there)))
    own = {**environ, "DAGSTER_HOME": str(project)}
    for command in (["bash", "-euc", blocks["bash"].replace(ADDRESS, address)], ["python", "-c", blocks["python"]]):
        subprocess.run(command, cwd=project, env=own, check=True, capture_output=True, timeout=60)
    key = dg.AssetKey(["primary", "raw-flights"])

    def refusal() -> str | None:
        records = instance.fetch_observations(key, limit=10).records
        said = [event for record in records if (event := record.asset_observation) and event.partition == missing]
        return said[0].description if said else None

    said = wait_until(refusal, 60, "the answer to what is not there")
    assert f"raw-flights {missing} was reported and is not recorded: there is nothing at " in said
    wait_until(lambda: "files" in recorded(list(key.path), there), 60, "the record of what is there")


def test_a_run_of_one_partition_and_what_it_records(
    launched: Launched, ended: Callable[[str], str], recorded: Callable[..., dict[str, Any]], project: Path
) -> None:
    assert ended(launched.one) == "SUCCESS"
    facts = recorded(["primary", "delays-hourly"], LAUNCHED)
    folder = Path(facts["path"])
    assert folder == (project / ".falcon").resolve() / "data/primary/delays/hourly/2013-01-02/11"
    assert (folder / "_SUCCESS").is_file()
    inputs = json.loads(facts["inputs"])
    assert [one["instance"] for one in inputs["flights"]] == [LAUNCHED]
    assert len(facts["data_version"]) == len(inputs["flights"][0]["version"]) == 32
    assert facts["records"] > 0
    listed = re.findall(r"^\| (.+?) \|", text_below("docs/reference/events.md", "Materializations"), flags=re.MULTILINE)
    assert set(facts) == set(re.findall(r"`(.+?)`", "".join(listed)))


def test_one_run_of_a_range_of_partitions(
    launched: Launched, ended: Callable[[str], str], recorded: Callable[..., dict[str, Any]]
) -> None:
    assert ended(launched.range) == "SUCCESS"
    assert [recorded(["primary", "delays-hourly"], key)["instance"] for key in RANGE] == RANGE


def test_entities_are_changed_by_a_job(
    graphql: Callable[..., Any], ended: Callable[[str], str], project: Path, environ: dict[str, str]
) -> None:
    answer = graphql(query("Change entities"))["launchRun"]
    assert answer["__typename"] == "LaunchRunSuccess", answer
    assert ended(answer["run"]["runId"]) == "SUCCESS"
    command = [BIN / "falcon", "admin", "audit", "--filter", "entity=weekly-carriers", "--json"]
    told = subprocess.run(command, cwd=project, env=environ, check=True, capture_output=True, timeout=60).stdout
    (entry,) = json.loads(told)["items"]
    assert (entry["operation"], entry["way"], entry["result"]) == ("schedule", "job", "done")
    assert entry["reason"] == "the report is back"


def test_instances_are_run_again_by_a_job(graphql: Callable[..., Any], ended: Callable[[str], str]) -> None:
    answer = graphql(query("Run instances again"))["launchRun"]
    assert answer["__typename"] == "LaunchRunSuccess", answer
    assert ended(answer["run"]["runId"]) == "SUCCESS"  # none has timed out


def test_why_a_run_failed(launched: Launched, ended: Callable[[str], str], graphql: Callable[..., Any]) -> None:
    assert ended(launched.failing) == "FAILURE"
    events = graphql(query("Find out why a run failed"), id=launched.failing)["logsForRun"]["events"]
    (failure,) = filter(None, events)
    text = failure["error"]["message"]
    assert f"1 of 1 instance(s) of hourly-delays failed:\n{NEVER_LANDED}: " in text
    assert "flights: raw-flights 2013-06-01T00:00Z at " in text


def test_which_partitions_are_there(
    launched: Launched, ended: Callable[[str], str], graphql: Callable[..., Any]
) -> None:
    assert [ended(run) for run in (launched.one, launched.range, launched.failing)] == ["SUCCESS", "SUCCESS", "FAILURE"]
    node = graphql(query("See which partitions are available"), asset=["primary", "delays-hourly"])["assetNodeOrError"]
    ranges = {one["status"]: (one["startKey"], one["endKey"]) for one in node["assetPartitionStatuses"]["ranges"]}
    assert node["partitionStats"]["numPartitions"] == 365 * 24
    assert node["partitionStats"]["numFailed"] == 1
    assert ranges["MATERIALIZED"][1] == RANGE[1]
    assert ranges["FAILED"] == (NEVER_LANDED, NEVER_LANDED)


def test_a_backfill_over_several_assets(
    launched: Launched, graphql: Callable[..., Any], recorded: Callable[..., dict[str, Any]]
) -> None:
    def final() -> list[str] | None:
        answer = graphql(query("Check a backfill"), id=launched.backfill)["partitionBackfillOrError"]
        found = [run["status"] for run in answer["runs"]]
        return found if found and set(found) <= {"SUCCESS", "FAILURE", "CANCELED"} else None

    statuses = wait_until(final, 300, "the end of the backfill's runs")
    assert set(statuses) == {"SUCCESS"}
    for cluster in ("primary", "backup"):
        facts = recorded([cluster, "weather-daily"], "2013-01-02T00:00Z")
        observations = json.loads(facts["inputs"])["observations"]
        assert sum(one["version"] is not None for one in observations) == 4


def test_workflows(connect: str, tmp_path: Path) -> None:
    """Those that the page shows compute the same."""
    (sql,), (pyspark,), (python,) = section("spark-sql"), section("pyspark"), section("python")
    (batch,), (arrow,) = section("Many instances by one function"), section("A function of Arrow tables")
    Path(tmp_path, "batch").write_text(batch.text)
    Path(tmp_path, "arrow").write_text(arrow.text)
    Path(tmp_path, "sql").write_text(sql.text)
    Path(tmp_path, "pyspark").write_text(pyspark.text)
    Path(tmp_path, "python").write_text(python.text)
    subprocess.run([sys.executable, "-c", _WORKFLOWS, connect], cwd=tmp_path, check=True, timeout=120)


_WORKFLOWS = """
import runpy, sys
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession
from types import SimpleNamespace

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
rows = [("JFK", 10.0), ("JFK", 12.0), ("JFK", 99.0), ("EWR", 8.0)]
observations = spark.createDataFrame(rows, "origin string, wind_speed double")
observations.createOrReplaceTempView("observations")
instance = SimpleNamespace(properties={"least": "30"})
by_sql = spark.sql(open("sql").read(), args=instance.properties)
by_pyspark = runpy.run_path("pyspark")["run"](spark, {"observations": observations}, instance)
for found in (by_sql, by_pyspark):
    assert sorted(map(tuple, found.collect())) == [("EWR", 8.0), ("JFK", 12.0)]
hours = spark.sql("SELECT timestamp_seconds(id) AS falcon_instance FROM range(2)")
by_batch = runpy.run_path("batch")["run"](spark, {"observations": observations.crossJoin(hours)}, [instance] * 2)
found = sorted((row["origin"], row["wind_speed"]) for row in by_batch.collect())
assert found == [("EWR", 8.0)] * 2 + [("JFK", 12.0)] * 2
table = pa.table(dict(zip(("origin", "wind_speed"), map(list, zip(*rows)))))
for engine, read in (("python", ds.dataset(table)), ("arrow", table)):
    made = runpy.run_path(engine)["run"]({"observations": read}, instance)
    assert sorted(map(tuple, map(dict.values, made.to_pylist()))) == [("EWR", 8.0), ("JFK", 12.0)]
"""
