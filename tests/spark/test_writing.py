from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as sf

from falcon_assets.compute.spark.data.dataset import InputData, OutputData
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.compute.spark.data.writing import observed, write_output
from falcon_assets.errors import WorkflowError
from tests.spark.sandbox import Sandbox


def read_back(spark: SparkSession, data: OutputData) -> list[tuple[Any, ...]]:
    frame = read_input(spark, InputData(data.name, data.feed, (data.url,)))
    return sorted(tuple(row) for row in frame.collect())


def refusal(spark: SparkSession, sql: str, data: OutputData) -> str:
    with pytest.raises(WorkflowError) as caught:
        write_output(spark.sql(sql), data)
    return str(caught.value)


FORMATS = [
    pytest.param("parquet", {}, id="parquet"),
    pytest.param("orc", {}, id="orc"),
    pytest.param("json", {}, id="json"),
    pytest.param("csv", {"options": {"header": "true"}}, id="csv"),
    pytest.param("xml", {"options": {"rowTag": "r"}}, id="xml"),
]


@pytest.mark.parametrize(("file_format", "extra"), FORMATS)
def test_writes_what_can_be_read(
    spark: SparkSession, sandbox: Sandbox, file_format: str, extra: dict[str, Any]
) -> None:
    data = sandbox.output("x", format=file_format, schema="a int, b string", **extra)
    assert write_output(spark.sql("SELECT * FROM VALUES (1, 'p'), (2, 'q') AS t(a, b)"), data) == 2
    assert read_back(spark, data) == [(1, "p"), (2, "q")]


@pytest.mark.parametrize(("file_format", "extra"), FORMATS)
@pytest.mark.parametrize("partitions", [[], ["a"]], ids=["flat", "partitioned"])
def test_nothing_is_an_instance_too(
    spark: SparkSession, sandbox: Sandbox, file_format: str, extra: dict[str, Any], partitions: list[str]
) -> None:
    data = sandbox.output("x", format=file_format, schema="b string, a int", partitions=partitions, **extra)
    assert write_output(spark.sql("SELECT 'x' AS b, 1 AS a WHERE false"), data) == 0
    assert read_back(spark, data) == []


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
@pytest.mark.parametrize("partitions", [[], ["a"]], ids=["flat", "partitioned"])
def test_nothing_keeps_its_columns(
    spark: SparkSession, sandbox: Sandbox, file_format: str, partitions: list[str]
) -> None:
    data = sandbox.output("x", format=file_format, partitions=partitions)
    write_output(spark.sql("SELECT 'x' AS b, 'y' AS a WHERE false"), data)
    frame = read_input(spark, InputData(data.name, data.feed, (data.url,)))
    assert frame.schema.simpleString() == "struct<b:string,a:string>"


EMPTY = {
    "limit": "SELECT id FROM range(9) LIMIT 0",
    "local": "SELECT 1 AS id WHERE 1 = 0",
    "join": "SELECT a.id FROM range(9) a JOIN range(0) b ON a.id = b.id",
    "disjoint": "SELECT a.id FROM range(5) a JOIN range(5, 9) b ON a.id = b.id",
    "grouped": "SELECT id, count(*) FROM range(9) WHERE id > 10 GROUP BY id ORDER BY id",
    "adaptive": "SELECT id % 3 AS k, count(*) FROM range(99) WHERE rand() > 2 GROUP BY 1 ORDER BY 2",
    "union": "SELECT id FROM range(0) UNION ALL SELECT id FROM range(3) WHERE false",
}


@pytest.mark.parametrize("sql", [pytest.param(sql, id=name) for name, sql in EMPTY.items()])
def test_plans_that_are_optimized_away_are_counted(spark: SparkSession, sandbox: Sandbox, sql: str) -> None:
    assert write_output(spark.sql(sql), sandbox.output("x", options={"compression": "none"})) == 0


def test_an_empty_frame_of_python_is_counted(spark: SparkSession, sandbox: Sandbox) -> None:
    assert write_output(spark.createDataFrame([], "a int"), sandbox.output("x")) == 0


def test_a_count_that_spark_lost_is_made_by_reading(spark: SparkSession, sandbox: Sandbox) -> None:
    data = sandbox.output("x")
    frame = spark.range(3)
    frame.write.parquet(data.url)
    never = Observation()
    frame.observe(never, sf.count(sf.lit(1)).alias("records"))
    assert observed(never, frame, data, seconds=0.1) == 3


def test_options_and_partitions_reach_the_files(spark: SparkSession, sandbox: Sandbox) -> None:
    data = sandbox.output("x", format="csv", partitions=["c"], options={"sep": "|", "compression": "gzip"})
    assert write_output(spark.sql("SELECT 'p' AS a, 1 AS b, 'US' AS c"), data) == 1
    written = [path.relative_to(sandbox.folder / "out/x") for path in (sandbox.folder / "out/x").rglob("*.csv.gz")]
    assert [path.parent for path in written] == [Path("c=US")]
    assert read_back(spark, data) == [("p", "1", "US")]


def test_no_marker_of_hadoop(spark: SparkSession, sandbox: Sandbox) -> None:
    write_output(spark.range(1), sandbox.output("x"))
    assert [path.name for path in (sandbox.folder / "out/x").iterdir() if path.name.startswith("_")] == []


def test_columns_for_the_partitions_are_needed(spark: SparkSession, sandbox: Sandbox) -> None:
    assert refusal(spark, "SELECT 1 AS a, 2 AS b", sandbox.output("x", partitions=["A", "country"])) == (
        "output 'x' (feed 'x-feed'): the feed is partitioned by A, country, but the data has no column country; "
        "its columns are a, b"
    )


def test_binary_files_cannot_be_written(spark: SparkSession, sandbox: Sandbox) -> None:
    assert refusal(spark, "SELECT 1 AS a", sandbox.output("x", format="binaryFile")) == (
        "output 'x' (feed 'x-feed'): Spark can only read the format binaryFile, not write it"
    )


def test_text_needs_one_text(spark: SparkSession, sandbox: Sandbox) -> None:
    assert refusal(spark, "SELECT 1 AS a", sandbox.output("x", format="text")) == (
        "output 'x' (feed 'x-feed'): [UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE] The Text datasource doesn't support the "
        'column `a` of the type "INT".'
    )
