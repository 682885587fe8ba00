"""Feeds without a declared schema are read as strictly as those with one."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from shutil import rmtree
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.errors import WorkflowError
from falcon_assets.model.cluster import Cluster
from tests.spark.sandbox import Sandbox

HEADER = {"header": "true"}


@pytest.fixture
def anywhere(tmp_path: Path, any_cluster: Cluster) -> Sandbox:
    return Sandbox(tmp_path, any_cluster)


def failure(sandbox: Sandbox, *paths: str, sql: str = "SELECT * FROM flights", **feed: Any) -> str:
    """What an instance fails with that copies the input."""
    sandbox.file("copy.sql", sql)
    rmtree(sandbox.folder / "out", ignore_errors=True)
    task = sandbox.task(
        sandbox.workflow(engine="spark-sql", path="copy.sql"), inputs=(sandbox.counted("flights", *paths, **feed),)
    )
    with pytest.raises(WorkflowError) as caught:
        run_workflow(task)
    return str(caught.value)


def read(spark: SparkSession, sandbox: Sandbox, *paths: str, **feed: Any) -> list[dict[str, Any]]:
    frame = read_input(spark, sandbox.counted("flights", *paths, **feed))
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=repr)


def test_half_a_record(anywhere: Sandbox) -> None:
    anywhere.file("in/1/a.json", '{"n":1}')
    anywhere.file("in/2/b.json", '{"n":2}\n{"n":3,"c')
    anywhere.file("in/2/c d.json", '{"n"\n{"n":4}\nx')
    assert failure(anywhere, "in/1", "in/2") == (
        "input 'flights' (feed 'flights-feed'): records are no JSON, so many in each file: "
        f"{anywhere.folder}/in/2/b.json (1), {anywhere.folder}/in/2/c d.json (2): "
        "correct them, or drop them by the feed's option `mode: DROPMALFORMED`"
    )


def test_a_record_that_is_no_object(sandbox: Sandbox) -> None:
    sandbox.file("in/a.json", '{"n":1}\n5')
    said = failure(sandbox, "in")
    assert said.startswith("input 'flights' (feed 'flights-feed'): records are no JSON, so many in each file: ")
    assert f"{sandbox.folder}/in/a.json (1)" in said


def test_columns_of_all_json_files(spark: SparkSession, sandbox: Sandbox) -> None:
    files = [[{"n": 1}, {"n": 2, "s": {"x": 1}}], [{"n": 3, "s": {"y": "é"}, "l": [1]}]]
    for number, records in enumerate(files):
        sandbox.file(f"in/{number}/a.json", "\n".join(map(json.dumps, records)))
    expected = [
        {
            "n": one["n"],
            "l": one.get("l"),
            "s": {"x": None, "y": None, **one["s"]} if "s" in one else None,
        }
        for records in files
        for one in records
    ]
    found = read(spark, sandbox, "in/0", "in/1")
    assert sorted(found, key=lambda row: row["n"]) == expected


@pytest.mark.parametrize(
    ("second", "why"),
    [
        pytest.param("b,a\n3,4\n", "CSV header does not conform to the schema", id="other-order"),
        pytest.param("a,b,c\n3,4,5\n", "Number of column in CSV header is not equal", id="more-columns"),
        pytest.param("a\n3\n", "Number of column in CSV header is not equal", id="fewer-columns"),
        pytest.param("a,b\n3\n", "Malformed CSV record", id="padded"),
        pytest.param("a,b\n3,4,5\n", "Malformed CSV record", id="cut"),
    ],
)
@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({}, id="inferred"),
        pytest.param({"schema": "a int, b int"}, id="declared", marks=pytest.mark.soak),
    ],
)
def test_csv_files_are_alike(sandbox: Sandbox, second: str, why: str, schema: dict[str, str]) -> None:
    sandbox.file("in/1/a.csv", "a,b\n1,2\n9,9\n")
    sandbox.file("in/2/b.csv", second)
    for sql in ("SELECT * FROM flights", "SELECT a FROM flights", "SELECT count(*) AS n FROM flights"):
        said = failure(sandbox, "in/1", "in/2", sql=sql, format="csv", options=HEADER, **schema)
        assert said.startswith("input 'flights' (feed 'flights-feed') cannot be read as its feed says: ")
        assert why in said
        assert f"{sandbox.folder}/in/" in said


def test_csv_without_a_header(spark: SparkSession, sandbox: Sandbox) -> None:
    sandbox.file("in/a.csv", '1,"x, y"\n2,"q ""z"""\n')
    sandbox.file("in/b.csv", "3,\n")
    found = read(spark, sandbox, "in", format="csv", options={"escape": '"'})
    plain = [row for name in "ab" for row in csv.reader((sandbox.folder / f"in/{name}.csv").open())]
    assert [[row["_c0"], row["_c1"] or ""] for row in found] == plain
    sandbox.file("in/c.csv", "4\n")
    assert "Malformed CSV record" in failure(sandbox, "in", format="csv")


def test_the_feed_may_say_otherwise(spark: SparkSession, sandbox: Sandbox) -> None:
    sandbox.file("in/a.csv", "a,b\n1,2\n3\n4,5,6\n")
    options = {**HEADER, "mode": "DROPMALFORMED"}
    assert read(spark, sandbox, "in", format="csv", options=options) == [{"a": "1", "b": "2"}]
    sandbox.file("lax/a.json", '{"n":1}\n{"n')
    assert read(spark, sandbox, "lax", options={"mode": "DROPMALFORMED"}) == [{"n": 1}]


def written(sandbox: Sandbox, name: str, file_format: str, **columns: Any) -> pa.Table:
    path = sandbox.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    (pq.write_table if file_format == "parquet" else orc.write_table)(table, path)
    return table


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_columns_of_later_files(spark: SparkSession, sandbox: Sandbox, file_format: str) -> None:
    tables = [
        written(sandbox, "in/1/a", file_format, n=[1], b=["x"]),
        written(sandbox, "in/1/b", file_format, c=[2.5], n=[2]),
        written(sandbox, "in/2/a", file_format, n=[3], d=[{"x": 1}]),
    ]
    expected = pa.concat_tables(tables, promote_options="default").to_pylist()
    found = read(spark, sandbox, "in/1", "in/2", format=file_format)
    assert sorted(found, key=lambda row: row["n"]) == expected
    assert read(spark, sandbox, "in/2", format=file_format, options={"mergeSchema": "false"}) == tables[2].to_pylist()


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_columns_of_another_type_in_a_later_file(sandbox: Sandbox, file_format: str) -> None:
    for number in range(6):
        written(sandbox, f"in/{number}", file_format, n=[number], x=["text" if number == 4 else 1])
    assert failure(sandbox, "in", format=file_format) == (
        "input 'flights' (feed 'flights-feed'): the files have no common schema: "
        f"x is string in {sandbox.folder}/in/4 and bigint in files before it: "
        "declare `schema:` in the feed, or write the file again"
    )


def test_a_later_orc_file_does_not_have_the_declared_type(spark: SparkSession, sandbox: Sandbox) -> None:
    written(sandbox, "in/1/a", "orc", n=pa.array([1], pa.int32()))
    written(sandbox, "in/2/b", "orc", n=[2])
    assert read(spark, sandbox, "in/1", "in/2", format="orc", schema="n bigint") == [{"n": 1}, {"n": 2}]
    written(sandbox, "in/2/c", "orc", n=["x"])
    assert failure(sandbox, "in/1", "in/2", format="orc", schema="n bigint") == (
        "input 'flights' (feed 'flights-feed'): the files do not have the declared schema: n is string, declared bigint"
    )


def test_xml_records_that_are_cut(sandbox: Sandbox) -> None:
    sandbox.file("in/a.xml", "<l><r><a>1</a></r></l>")
    sandbox.file("in/b.xml", "<l><r><a>1</b></r></l>")
    said = failure(sandbox, "in", format="xml", options={"rowTag": "r"})
    assert f"{sandbox.folder}/in/b.xml" in said
