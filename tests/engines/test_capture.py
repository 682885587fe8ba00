"""What instances read and wrote, on every kind of execute endpoint, by every engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.engines.computing.task import WorkflowTask
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.model.cluster import Cluster
from falcon_assets.planning.captured import Captured
from tests.spark.sandbox import Sandbox

FOREIGN = """
def run(spark, inputs, instance):
    known = spark.read.parquet(instance.properties["elsewhere"])
    known.limit(1).write.mode("overwrite").json(instance.properties["aside"])
    return inputs["flights"].join(known, "carrier", "left").select("carrier", "delay", "name")
"""
PROGRAM = """
import sys
from pyspark.sql import SparkSession

flights, elsewhere, delays = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
known = spark.read.parquet(elsewhere)
spark.read.json(flights).join(known, "carrier", "left").select("carrier", "delay", "name").write.parquet(delays)
"""


@pytest.fixture
def sandbox(tmp_path: Path, any_cluster: Cluster) -> Sandbox:
    made = Sandbox(tmp_path, any_cluster)
    made.file("in/05/a.json", '{"carrier":"aa","delay":20}\n{"carrier":"ua","delay":40}\n')
    made.file("in/06/a.json", '{"carrier":"aa","delay":20}\n')
    known = made.session().createDataFrame(
        [("aa", "A", "us"), ("ua", "U", "de")], "carrier string, name string, at string"
    )
    known.write.partitionBy("at").parquet((tmp_path / "known").as_uri())
    return made


def task(sandbox: Sandbox, **declared: object) -> WorkflowTask:
    return sandbox.task(
        sandbox.workflow(**declared),
        inputs=(sandbox.input("flights", "in/05", schema="carrier string, delay int"), sandbox.input("more", "in/06")),
        properties={
            "elsewhere": (sandbox.folder / "known").as_uri(),
            "aside": (sandbox.folder / "aside").as_uri(),
        },
    )


def read_by(sandbox: Sandbox, found: Captured) -> set[str]:
    return {path.removeprefix(f"file:{sandbox.folder}/") for one in found.reads for path in one.paths}


def written_by(sandbox: Sandbox, found: Captured) -> list[str]:
    return [(one.path or "").removeprefix(f"file:{sandbox.folder}/") for one in found.writes]


def columns_of(sandbox: Sandbox, found: Captured) -> dict[str, list[str]]:
    """By the column of the last write, what it came from."""
    return {
        one.name: [f"{roots[0].removeprefix(f'file:{sandbox.folder}/')}#{column}" for roots, column in one.inputs]
        for one in found.writes[-1].each
    }


def test_a_workflow_that_reads_and_writes_what_nobody_declared(sandbox: Sandbox) -> None:
    sandbox.file("wf/foreign.py", FOREIGN)
    found = run_workflow(task(sandbox, engine="pyspark", path="wf/foreign.py")).captured
    assert found.problem == ""
    assert read_by(sandbox, found) == {"in/05", "known/at=us", "known/at=de"}
    assert written_by(sandbox, found) == ["aside", "out/delays"]
    assert columns_of(sandbox, found) == {
        "carrier": ["in/05#carrier"],
        "delay": ["in/05#delay"],
        "name": ["known#name"],
    }


def test_partitions_that_spark_leaves_out_were_not_read(sandbox: Sandbox) -> None:
    known = (sandbox.folder / "known").as_uri()
    sandbox.file(
        "wf/one.sql", f"SELECT f.*, k.name FROM flights f JOIN parquet.`{known}` k USING (carrier) WHERE at = 'us'"
    )
    found = run_workflow(task(sandbox, engine="spark-sql", path="wf/one.sql")).captured
    assert read_by(sandbox, found) == {"in/05", "known/at=us"}


def test_a_program_of_its_own(sandbox: Sandbox) -> None:
    sandbox.file("wf/program.py", PROGRAM)
    args = ("${flights}", "${elsewhere}", "${delays}")
    found = run_workflow(task(sandbox, engine="spark-submit", path="wf/program.py", args=args)).captured
    assert found.problem == ""
    assert read_by(sandbox, found) == {"in/05", "known/at=us", "known/at=de"}
    assert written_by(sandbox, found) == ["out/delays"]
    assert columns_of(sandbox, found)["name"] == ["known#name"]


def test_instances_side_by_side_do_not_see_each_other(sandbox: Sandbox) -> None:
    sandbox.file("wf/copy.sql", "SELECT * FROM flights")
    one = task(sandbox, engine="spark-sql", path="wf/copy.sql")
    other = replace(one, inputs=(replace(one.inputs[1], name="flights"),), outputs=(sandbox.output("other"),))
    first, second = (run_workflow(each).captured for each in (one, other))
    assert (read_by(sandbox, first), read_by(sandbox, second)) == ({"in/05"}, {"in/06"})


def test_without_the_listener_nothing_is_known(tmp_path: Path, local_cluster: Cluster, working: str) -> None:
    other = {**local_cluster.properties, "spark.x": "1"}
    made = Sandbox(tmp_path, local_cluster.model_copy(update={"properties": other}))
    made.file("wf/one.sql", "SELECT 1 AS one")
    workflow = made.workflow(engine="spark-sql", path="wf/one.sql")
    run = made.task(workflow, executor=SparkExecutor(made.cluster, lambda: working))
    assert run_workflow(run).captured == Captured(problem="Spark runs without the listener")
