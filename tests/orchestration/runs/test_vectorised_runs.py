"""A run whose instances are computed by one query: each is published, recorded, and fails on its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyarrow import parquet as pq
from sqlalchemy import select

from falcon_assets.compute.engines.pyspark import PySparkWorkflow
from falcon_assets.compute.engines.spark_sql import SparkSqlWorkflow
from falcon_assets.history.folding.version_rows import columns_of_plans
from falcon_assets.history.tables import DATA_VERSIONS
from tests.builders import cluster_yaml, feed_yaml, land_rows, process_yaml
from tests.world import World, world_of

WINDOW = [{"name": "rows", "feed": "raw", "start": "now(-1,0)", "end": "now(0,0)", "optional": True}]
SQL = """
SELECT :nominal_time AS at, :least AS least, sum(CAST(n AS INT)) AS total, count(*) AS n
FROM rows WHERE n <> :least
"""
DATA = "/%s/${YEAR}-${MONTH}-${DAY}-${HOUR}"
SCHEMA = {"format": "json", "schema": "n string"}
HOURS = {"parallel": 8, "inputs": WINDOW, "properties": {"least": "0"}, "retry": {"policy": "final"}, "schedule": True}
FUNCTION = """
from pyspark.sql import functions as F

def run(spark, inputs, instances):
    rows = inputs["rows"].where(F.col("n") != instances[0].properties["least"])
    return rows.groupBy(F.col("falcon_instance").alias("at"), "falcon_instance").agg(
        F.lit(instances[0].properties["least"]).alias("least"), F.sum(F.col("n").cast("int")).alias("total"),
        F.count("*").alias("n"),
    )
"""
FILES = {
    "all.yaml": cluster_yaml()
    + feed_yaml("raw", locations={"data": DATA % "raw"}, availability_flag="_SUCCESS", **SCHEMA)
    + feed_yaml("out", locations={"data": DATA % "out"}, availability_flag="_SUCCESS")
    + process_yaml("sums", "raw", "out", **HOURS)
    + feed_yaml("by-function", locations={"data": DATA % "by-function"}, availability_flag="_SUCCESS")
    + process_yaml(
        "calls", "raw", "by-function", **HOURS, workflow={"engine": "pyspark", "path": "a.py", "batch": True}
    ),
    "a.sql": SQL,
    "a.py": FUNCTION,
}
world = world_of(FILES)
HOLDS = {"on_error": "hold", "checks": [{"name": "small", "rule": "in_range", "column": "total", "max": 100}]}
LATE = {"late_process": {"policy": "backoff", "delay": "hours(1)", "inputs": [{"input": "rows"}]}}
judged = world_of(
    {
        "all.yaml": cluster_yaml()
        + feed_yaml(
            "late-raw",
            locations={"data": DATA % "late-raw"},
            availability_flag="_SUCCESS",
            late_arrival={"cut_off": "hours(24)"},
            **SCHEMA,
        )
        + feed_yaml("held-out", locations={"data": DATA % "held-out"}, availability_flag="_SUCCESS", **HOLDS)
        + process_yaml(
            "judged-sums", "late-raw", "held-out", **{**HOURS, **LATE, "inputs": [{**WINDOW[0], "feed": "late-raw"}]}
        ),
        "a.sql": SQL,
    }
)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many instances each query that succeeded has computed."""
    found: list[int] = []
    for engine in (SparkSqlWorkflow, PySparkWorkflow):
        _count(monkeypatch, engine, found)
    return found


def _count(monkeypatch: pytest.MonkeyPatch, engine: Any, found: list[int]) -> None:
    together = engine.compute_together

    def compute_together(self: Any, tasks: Sequence[Any], example: Any) -> list[Any]:
        results: list[Any] = together(self, tasks, example)
        found.append(len(tasks))
        return results

    monkeypatch.setattr(engine, "compute_together", compute_together)


@pytest.fixture(params=[("sums", "out"), ("calls", "by-function")], ids=["sql", "function"])
def process(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A process and its output; both have one way to compute many, and the same results."""
    found: tuple[str, str] = request.param
    return found


def test_a_catch_up_with_an_instance_that_fails(world: World, batches: list[int], process: tuple[str, str]) -> None:
    name, out = process
    for hour in range(12):
        rows = [{"n": "bad" if (hour, one) == (9, 2) else str(one)} for one in range(hour + 1)]
        if not world.folder("primary", "raw", hour).exists():
            land_rows(world.folder("primary", "raw", hour), *rows)
    runs = world.step("12:30", name)
    assert len(runs) == 1
    rows = world.rows(name)
    states = {hour: row["state"] for hour, row in rows.items() if hour in range(1, 12)}
    assert states == {hour: "FAILED" if hour in (9, 10) else "SUCCEEDED" for hour in range(1, 12)}
    assert "CAST_INVALID_INPUT" in rows[9]["reason"]
    assert sum(batches) >= 4
    for hour in range(1, 12):
        if hour in (9, 10):
            assert world.published("primary", out, hour) == []
            continue
        table = pq.read_table(world.folder("primary", out, hour)).to_pylist()
        numbers = [n for h in (hour - 1, hour) for n in range(h + 1)]
        assert [(row["total"], row["n"], row["least"], row["at"].hour) for row in table] == [
            (sum(numbers), len(numbers) - 2, "0", hour)
        ]
        (published,) = world.published("primary", out, hour)
        assert published.records == 1
        assert [(one.feed, one.instance.hour) for one in published.inputs["rows"]] == [
            ("raw", hour - 1),
            ("raw", hour),
        ]
        assert published.capture == "complete"
    with world.ledger.engine.connect() as connection:
        asked = select(DATA_VERSIONS.c.plan).where(DATA_VERSIONS.c.feed == out)
        plans = list(connection.execute(asked).scalars())
        found = columns_of_plans(connection, {*plans})
    assert len(plans) == 11  # of the hours 0 to 12
    assert len({*plans}) == 1  # those that were computed together have the columns of the one alone
    (columns,) = found.values()
    assert {one.name: one.inputs for one in columns.each}["total"] == (("raw", "n"),)


@pytest.mark.soak
def test_late_inputs_and_held_outputs_within_batches(judged: World, batches: list[int]) -> None:
    values = {hour: 1000 if hour == 6 else hour + 1 for hour in range(9)}
    for hour, value in values.items():
        land_rows(judged.folder("primary", "late-raw", hour), {"n": str(value)})
    judged.step("08:30", "judged-sums")
    states = {hour: row["state"] for hour, row in judged.rows("judged-sums").items()}
    assert states == {hour: "FAILED" if hour in (6, 7) else "SUCCEEDED" for hour in range(9)}
    assert [judged.published("primary", "held-out", hour) for hour in (6, 7)] == [[], []]
    assert sum(batches) >= 6
    batches.clear()
    for hour in range(5):
        values[hour] += 20
        land_rows(judged.folder("primary", "late-raw", hour), {"n": str(values[hour])})
    judged.step("10:30", "judged-sums")
    assert sum(batches) >= 2
    for hour in (1, 2, 3, 4, 5, 8):
        (row,) = pq.read_table(judged.folder("primary", "held-out", hour)).to_pylist()
        assert (row["total"], row["n"], row["at"].hour) == (values[hour - 1] + values[hour], 2, hour)
        assert len(judged.published("primary", "held-out", hour)) == (2 if hour <= 5 else 1)
