"""PySpark functions of many instances at once, against those of one: the files are read by pyarrow."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet as pq

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.engines.computing.task import WorkflowTask
from falcon_assets.compute.engines.computing.together import Example
from falcon_assets.compute.engines.computing.together_joins import AloneError
from falcon_assets.errors import WorkflowError
from falcon_assets.planning.data_usage import normal_place
from tests.spark.sandbox import Sandbox

pytestmark = pytest.mark.soak
FIRST = datetime(2013, 1, 1, tzinfo=UTC)
HOURS, EMPTY = 4, 2
SUMS = """
from pyspark.sql import functions as F

def run(spark, inputs, instances):
    least = spark.createDataFrame(
        [(one.nominal_time, int(one.properties["least"])) for one in instances], "falcon_instance timestamp, least int"
    )
    rows = inputs["rows"].join(least, "falcon_instance").where("n >= least")
    sums = rows.groupBy("falcon_instance", "k").agg(F.sum("n").alias("s"), F.max("least").alias("least"))
    hours = rows.select("falcon_instance", F.col("falcon_instance").alias("hour"), "n", "k")
    return {"sums": sums, "all-rows": hours}
"""


def land(sandbox: Sandbox) -> list[list[dict[str, Any]]]:
    hours = [
        [{"k": "ab"[one % 2], "n": hour * 10 + one} for one in range(0 if hour == EMPTY + 1 else hour + 2)]
        for hour in range(HOURS + 1)
    ]
    for hour, rows in enumerate(hours):
        sandbox.file(f"rows/{hour}/a.json", "\n".join(map(json.dumps, rows)))
    return hours


def tasks_of(sandbox: Sandbox, code: str, folder: str, **output: Any) -> list[WorkflowTask]:
    """Each reads two hours, so that windows overlap."""
    sandbox.file("w.py", code)
    workflow = sandbox.workflow(engine="pyspark", path="w.py", batch=True)
    partitioned = sandbox.output("all-rows", partitions=["k"])
    return [
        sandbox.task(
            workflow,
            nominal=FIRST + timedelta(hours=hour),
            inputs=(sandbox.counted("rows", f"rows/{hour}", f"rows/{hour + 1}", schema="k string, n int"),),
            outputs=tuple(
                replace(one, url=f"{sandbox.folder.as_uri()}/out/{folder}/{one.name}/{hour}")
                for one in (sandbox.output("sums"), *([partitioned] if "all-rows" in code else []))
            ),
            properties={"least": str(hour * 10)},
        )
        for hour in range(HOURS)
    ]


def rows_in(task: WorkflowTask, at: int) -> list[dict[str, Any]]:
    """Without the columns of folders."""
    files = sorted(Path(normal_place(task.outputs[at].url)).rglob("*.parquet"))
    return sorted((row for file in files for row in pq.ParquetFile(file).read().to_pylist()), key=repr)


def schemas_in(task: WorkflowTask, at: int) -> set[str]:
    folder = Path(normal_place(task.outputs[at].url))
    return {str(pq.read_schema(file)) for file in folder.rglob("*.parquet")}


def test_many_are_computed_as_each_alone(sandbox: Sandbox) -> None:
    hours = land(sandbox)
    alone, together = (tasks_of(sandbox, SUMS, way) for way in ("alone", "together"))
    results = [run_workflow(task) for task in alone]
    example = Example.of(alone[0], results[0])
    assert all(map(example.is_like, together))
    found = together[0].workflow.compute_together(together, example)
    for hour, (one, before, other, now) in enumerate(zip(alone, results, together, found, strict=True)):
        expected = [row for row in (*hours[hour], *hours[hour + 1]) if row["n"] >= hour * 10]
        sums = {k: sum(row["n"] for row in expected if row["k"] == k) for k in {row["k"] for row in expected}}
        assert {row["k"]: row["s"] for row in rows_in(other, 0)} == sums
        assert all(set(row) == {"k", "s", "least"} and row["least"] == hour * 10 for row in rows_in(other, 0))
        assert sorted(row["n"] for row in rows_in(other, 1)) == sorted(row["n"] for row in expected)
        assert {str(row["hour"])[:19] for row in rows_in(other, 1)} <= {f"{one.nominal:%F %T}"}
        assert now.records == before.records == {"sums": len(sums), "all-rows": len(expected)}
        for at in range(2):
            assert rows_in(one, at) == rows_in(other, at)
            assert schemas_in(one, at) == schemas_in(other, at) != set()
        columns = [
            {
                (normal_place(w.path or "").split("/")[-2], c.name): [
                    ([*map(normal_place, at)], n) for at, n in c.inputs
                ]
                for w in of.writes
                for c in w.each
            }
            for of in (before.captured, now.captured)
        ]
        assert columns[0] == columns[1]
        reads = [{tuple(map(normal_place, read.roots)) for read in of.reads} for of in (before.captured, now.captured)]
        assert reads[0] == reads[1]
        assert now.captured.problem == before.captured.problem == ""
    assert {path.name for path in (sandbox.folder / "out/together").iterdir()} == {"sums", "all-rows"}
    assert len(list((sandbox.folder / "out/together/sums").iterdir())) == HOURS


def test_what_is_read_beside_the_inputs_counts_for_all(sandbox: Sandbox) -> None:
    land(sandbox)
    sandbox.file("other/a.json", '{"k": "a", "label": "first"}')
    code = f"""
def run(spark, inputs, instances):
    other = spark.read.schema("k string, label string").json("{sandbox.folder}/other")
    return inputs["rows"].join(other, "k")
"""
    tasks, again = (tasks_of(sandbox, code, way) for way in ("alone", "together"))
    example = Example.of(tasks[0], run_workflow(tasks[0]))
    for task, result in zip(again, again[0].workflow.compute_together(again, example), strict=True):
        roots = {normal_place(root) for read in result.captured.reads for root in read.roots}
        own = {normal_place(url) for url in task.inputs[0].urls}
        assert roots == {*own, f"{sandbox.folder}/other"}


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        ("inputs['rows'].drop('falcon_instance')", "whose column falcon_instance is missing"),
        ("inputs['rows'].withColumn('falcon_instance', F.lit(1))", "whose column falcon_instance is int"),
        ("inputs['rows'].withColumn('falcon_instance', F.lit(None).cast('timestamp'))", "its falcon_instance is NULL"),
        (
            "inputs['rows'].withColumn('falcon_instance', F.lit('2012-12-31').cast('timestamp'))",
            "a row is of no instance of the batch: its falcon_instance is 2012-12-31 00:00:00",
        ),
        ("None", "returned nothing: return a DataFrame"),
        ("inputs['rows'].select('none')", "w.py:4"),
    ],
)
def test_what_it_returns_has_to_tell_the_instance(sandbox: Sandbox, returned: str, why: str) -> None:
    land(sandbox)
    good = "from pyspark.sql import functions as F\n\ndef run(spark, inputs, instances):\n    return {}\n"
    tasks = tasks_of(sandbox, good.format("inputs['rows']"), "good")
    example = Example.of(tasks[0], run_workflow(tasks[0]))
    bad = tasks_of(sandbox, good.format(returned), "bad")
    with pytest.raises(WorkflowError) as alone:
        run_workflow(bad[0])
    with pytest.raises(Exception) as together:
        bad[0].workflow.compute_together(bad, example)
    assert why in str(alone.value)
    assert why in str(together.value)
    assert not (sandbox.folder / "out/bad/sums/1").exists()


def test_columns_that_differ_from_those_of_one_alone(sandbox: Sandbox) -> None:
    land(sandbox)
    code = """
def run(spark, inputs, instances):
    return inputs["rows"].withColumn("more", inputs["rows"].n.cast("string" if len(instances) > 1 else "int"))
"""
    tasks = tasks_of(sandbox, code, "differs")
    example = Example.of(tasks[0], run_workflow(tasks[0]))
    with pytest.raises(AloneError, match="its columns are not those of an instance alone: "):
        tasks[1].workflow.compute_together(tasks[1:], example)
