"""Many instances at once where data is on an object store, or Spark is a Connect server; read by pyarrow."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet as pq

from falcon_assets.compute.engines.pyspark import PySparkWorkflow
from falcon_assets.compute.engines.spark_sql import SparkSqlWorkflow
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.errors import FalconError
from falcon_assets.instances.runs.instance_result import InstanceResult
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.instances.runs.together import Gathering, gathered
from falcon_assets.model.cluster import Cluster
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from tests.builders import VALIDITY, make_cluster, make_feed, make_process
from tests.hours import hour
from tests.s3_server import ENVIRON, lake

pytestmark = pytest.mark.soak
ON = [{"name": "lake", "validity": VALIDITY}]
HOURS, BAD, EMPTY = 10, 4, 2
INPUTS = [{"name": "flights", "feed": "raw-flights", "start": "now(-1,0)", "end": "now(0,0)", "optional": True}]
SQL = "SELECT :nominal_time AS at, sum(CAST(n AS INT)) AS n, count(*) AS rows FROM flights"
FUNCTION = """
from pyspark.sql import functions as F

def run(spark, inputs, instances):
    at = spark.createDataFrame([(one.nominal_time,) for one in instances], "falcon_instance timestamp")
    numbers = F.col("n").cast("int")
    rows = inputs["flights"].groupBy("falcon_instance").agg(F.sum(numbers).alias("n"), F.count("*").alias("c"))
    count = F.coalesce("c", F.lit(0)).alias("rows")
    made = at.join(rows, "falcon_instance", "left")
    return made.select("falcon_instance", F.col("falcon_instance").alias("at"), "n", count)
"""
WORKFLOWS = {
    "sql": {"engine": "spark-sql", "path": "a.sql"},
    "function": {"engine": "pyspark", "path": "a.py", "batch": True},
}


@pytest.fixture(params=["local on s3", "connect on s3", "connect on files"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Where it is computed, and where the data lies."""
    spark, _, place = request.param.partition(" on ")
    endpoint = request.getfixturevalue(f"{spark}_cluster").interfaces.execute.endpoint
    if place == "s3":
        return make_cluster(**lake(request.getfixturevalue("s3"), bucket=f"{spark}-lake", execute=endpoint))
    interfaces = {"write": {"endpoint": "data"}, "execute": {"endpoint": endpoint}}
    return make_cluster(name="lake", interfaces=interfaces)


def landed(store: ClusterStore, number: int) -> None:
    numbers = ["bad" if number == BAD and one == 1 else str(number + one) for one in range(0 if number == EMPTY else 3)]
    folder = store.path(f"/in/{number:02}")
    store.fs.makedirs(folder, exist_ok=True)
    store.fs.pipe_file(f"{folder}/a.json", "\n".join(json.dumps({"n": one}) for one in numbers).encode())
    store.fs.pipe_file(f"{folder}/_SUCCESS", b"")


def rows_at(store: ClusterStore, number: int) -> list[dict[str, Any]] | None:
    if not store.fs.exists(f"{(folder := store.path(f'/out/{number:02}'))}/_SUCCESS"):
        return None
    files = [name for name in store.fs.find(folder) if str(name).endswith(".parquet")]
    return [row for name in files for row in pq.read_table(io.BytesIO(store.fs.cat_file(name))).to_pylist()]


@pytest.mark.parametrize("engine", WORKFLOWS)
def test_each_is_published_as_if_alone(
    cluster: Cluster, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.sql").write_text(SQL)
    (tmp_path / "a.py").write_text(FUNCTION)
    store = ClusterStore(cluster, tmp_path, ENVIRON)
    if "s3:" in cluster.interfaces.write.endpoint and not store.fs.exists(store.path("/").split("/")[0]):
        store.fs.mkdir(store.path("/").split("/")[0])
    for number in range(HOURS):
        landed(store, number)
        if store.fs.exists(place := store.path(f"/out/{number:02}")):
            store.fs.rm(place, recursive=True)
    feeds = {
        "raw-flights": make_feed(clusters=ON, schema="n string", locations={"data": "/in/${HOUR}"}),
        "delays": make_feed(name="delays", clusters=ON, format="parquet", locations={"data": "/out/${HOUR}"}),
    }
    process = make_process(clusters=ON, inputs=INPUTS, workflow=WORKFLOWS[engine])
    executor = SparkExecutor(cluster, lambda: str(tmp_path / "working"))
    runner = InstanceRunner(
        process, executor, feeds, store, StoresOf(cluster, tmp_path, ENVIRON), tmp_path, "etl", "run"
    )
    counted = [_counted(monkeypatch, one) for one in (SparkSqlWorkflow, PySparkWorkflow)]
    found = _computed(runner, [hour(number) for number in range(HOURS)])
    assert sum(map(len, counted)) >= 1, "nothing was computed together"
    for number, result in enumerate(found):
        if number in (BAD, BAD + 1):
            assert isinstance(result, FalconError)
            assert "CAST_INVALID_INPUT" in str(result)
            assert rows_at(store, number) is None
            continue
        assert isinstance(result, InstanceResult)
        numbers = [one + add for one in (number - 1, number) if one not in (-1, EMPTY) for add in range(3)]
        (row,) = rows_at(store, number) or [{}]
        assert (row["n"], row["rows"]) == (sum(numbers), len(numbers))
        assert str(row["at"])[:19] == f"{hour(number):%F %T}"
        (output,) = result.outputs
        assert output.records == 1
        # Spark in the process of the tests has no listener when it reads from S3.
        is_captured = cluster.interfaces.execute.endpoint.startswith("sc:")
        assert result.usage.capture == ("complete" if is_captured else "none: Spark runs without the listener")
    left = [one for one in (tmp_path / "working").rglob("*") if "falcon_instance" in one.name]
    assert left == []


def _counted(monkeypatch: pytest.MonkeyPatch, engine: Any) -> list[int]:
    """How many instances each call that succeeded has computed."""
    together, found = engine.compute_together, list[int]()

    def compute_together(self: Any, tasks: Sequence[Any], example: Any) -> list[Any]:
        results: list[Any] = together(self, tasks, example)
        found.append(len(tasks))
        return results

    monkeypatch.setattr(engine, "compute_together", compute_together)
    return found


def _computed(runner: InstanceRunner, nominals: Sequence[datetime]) -> list[InstanceResult | FalconError]:
    gathering = Gathering(len(nominals), len(nominals), lambda text: None)

    def one(nominal: datetime) -> InstanceResult | FalconError:
        with gathering.instance(), gathered(gathering):
            try:
                return runner.run(runner.prepare(nominal))
            except FalconError as error:
                return error

    with ThreadPoolExecutor(len(nominals)) as pool:
        return list(pool.map(one, nominals))
