from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.compute.spark.data.writing import write_output
from falcon_assets.errors import WorkflowError
from tests.spark.sandbox import Sandbox


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def refusal(spark: SparkSession, *given: Any) -> str:
    with pytest.raises(WorkflowError) as caught:
        read_input(spark, *given).collect()
    return str(caught.value)


@pytest.mark.parametrize(
    ("file_format", "content", "extra", "expected"),
    [
        pytest.param("json", '{"a":1,"b":"x"}', {}, [(1, "x")], id="json"),
        pytest.param("csv", "a,b\n1,x", {"options": {"header": "true", "inferSchema": "true"}}, [(1, "x")], id="csv"),
        pytest.param("text", "one\ntwo", {}, [("one",), ("two",)], id="text"),
        pytest.param("xml", "<r><a>1</a><b>x</b></r>", {"options": {"rowTag": "r"}}, [(1, "x")], id="xml"),
    ],
)
def test_textual_formats(
    spark: SparkSession, sandbox: Sandbox, file_format: str, content: str, extra: dict[str, Any], expected: list[Any]
) -> None:
    sandbox.file("in/a", content)
    sandbox.file("in/DONE", "not data")
    data = sandbox.input("x", "in", format=file_format, availability_flag="DONE", **extra)
    assert rows(read_input(spark, data)) == expected


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_columnar_formats_with_several_instances(spark: SparkSession, sandbox: Sandbox, file_format: str) -> None:
    for hour in (1, 2):
        url = (sandbox.folder / f"in/{hour}").as_uri()
        spark.sql(f"SELECT {hour} AS a, 'x' AS b").write.format(file_format).save(url)
        sandbox.file(f"in/{hour}/DONE", "not data")
    plain = sandbox.input("x", "in/1", "in/2", format=file_format, availability_flag="DONE")
    assert rows(read_input(spark, plain)) == [(1, "x"), (2, "x")]
    more = sandbox.input(
        "x", "in/1", "in/2", format=file_format, availability_flag="DONE", schema="b string, c int, a bigint"
    )
    assert rows(read_input(spark, more)) == [("x", None, 1), ("x", None, 2)]


def test_binary_files(spark: SparkSession, sandbox: Sandbox) -> None:
    sandbox.file("in/a.bin", "abc")
    sandbox.file("in/DONE", "not data")
    data = sandbox.input("x", "in", format="binaryFile", availability_flag="DONE")
    assert [(row.length, bytes(row.content)) for row in read_input(spark, data).collect()] == [(3, b"abc")]


def test_avro_says_what_to_add(spark: SparkSession, sandbox: Sandbox) -> None:
    sandbox.file("in/a.avro", "abc")
    assert refusal(spark, sandbox.input("x", "in", format="avro")) == (
        "input 'x' (feed 'x-feed'): Spark's Avro support is not on the class path: add the property "
        'spark.jars.packages: "org.apache.spark:spark-avro_2.13:4.2.0" to the cluster'
    )


@pytest.mark.parametrize(
    ("file_format", "schema", "why"),
    [
        pytest.param("parquet", "b int", "Expected Spark type int, actual Parquet type BINARY", id="parquet"),
        pytest.param("orc", "a string, b int", "a is int, declared string; b is string, declared int", id="orc"),
    ],
)
def test_columns_of_another_type(
    spark: SparkSession, sandbox: Sandbox, file_format: str, schema: str, why: str
) -> None:
    spark.sql("SELECT 1 AS a, 'x' AS b").write.format(file_format).save((sandbox.folder / "in").as_uri())
    data = sandbox.input("x", "in", format=file_format, schema=schema)
    output = sandbox.output("copy")
    with pytest.raises(WorkflowError) as caught:
        write_output(read_input(spark, data), output)
    assert why in str(caught.value)


def test_a_csv_header_must_say_what_is_declared(spark: SparkSession, sandbox: Sandbox) -> None:
    sandbox.file("in/a.csv", "b,a\n1,2\n")
    data = sandbox.input("x", "in", format="csv", options={"header": "true"}, schema="a int, b int")
    with pytest.raises(Exception, match="CSV header does not conform to the schema"):
        read_input(spark, data).collect()


def test_the_mode_of_the_feed_wins(spark: SparkSession, sandbox: Sandbox) -> None:
    sandbox.file("in/a.json", '{"a":"x"}\n{"a":1}')
    data = sandbox.input("x", "in", schema="a int", options={"mode": "DROPMALFORMED"})
    assert rows(read_input(spark, data)) == [(1,)]


def test_a_schema_that_is_none(spark: SparkSession, sandbox: Sandbox) -> None:
    sandbox.file("in/a.json", "{}")
    assert refusal(spark, sandbox.input("x", "in", schema="a int,, b")) == (
        "input 'x' (feed 'x-feed'): [PARSE_SYNTAX_ERROR] Syntax error at or near ','."
    )


def test_a_folder_that_is_not_there(spark: SparkSession, sandbox: Sandbox) -> None:
    assert refusal(spark, sandbox.input("x", "in")) == (
        f"input 'x' (feed 'x-feed'): [PATH_NOT_FOUND] Path does not exist: file:{sandbox.folder}/in."
    )


def test_nothing_available_gives_the_declared_columns(spark: SparkSession, sandbox: Sandbox) -> None:
    frame = read_input(spark, sandbox.input("x", schema="a int, b string", partitions=["country"]))
    assert frame.schema.simpleString() == "struct<a:int,b:string,country:string>"
    assert frame.count() == 0
    assert read_input(spark, sandbox.input("x", format="text")).columns == ["value"]


def test_nothing_available_and_nothing_declared(spark: SparkSession, sandbox: Sandbox) -> None:
    assert refusal(spark, sandbox.input("x")) == (
        "input 'x': no instance of feed 'x-feed' is available, and without a declared schema an empty input has no "
        "columns: declare `schema:` in the feed"
    )


@pytest.fixture
def parted(sandbox: Sandbox) -> Sandbox:
    for number, folder in enumerate(
        ["1/US/2012", "1/country=US/year=2013", "2/DE/2013", "2/country=New%20York%2FUS+1/year=2013", "2/100%/2013"]
    ):
        sandbox.file(f"in/{folder}/a.json", f'{{"n":{number}}}')
    sandbox.file("in/1/country=__HIVE_DEFAULT_PARTITION__/year=2013/a.json", '{"n":9}')
    sandbox.file("in/1/country=US/DONE", "not data")
    sandbox.file("in/1/DONE", "not data")
    return sandbox


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        pytest.param(
            None,
            [
                (0, "US", "2012"),
                (1, "US", "2013"),
                (2, "DE", "2013"),
                (3, "New York/US+1", "2013"),
                (4, "100%", "2013"),
                (9, None, "2013"),
            ],
            id="all",
        ),
        pytest.param("US", [(0, "US", "2012"), (1, "US", "2013")], id="first-level"),
        pytest.param("*/2012", [(0, "US", "2012")], id="second-level"),
        pytest.param("country=US/year=2013", [(1, "US", "2013")], id="hive-words"),
        pytest.param("?E/*", [(2, "DE", "2013")], id="glob"),
        pytest.param("FR", [], id="none"),
    ],
)
def test_sub_partitions(
    spark: SparkSession, parted: Sandbox, partition: str | None, expected: list[tuple[Any, ...]]
) -> None:
    data = parted.input(
        "x", "in/1", "in/2", partition=partition, partitions=["country", "year"], availability_flag="DONE"
    )
    frame = read_input(spark, data)
    assert frame.columns == ["n", "country", "year"]
    assert rows(frame) == expected


def test_a_partition_has_the_declared_type(spark: SparkSession, parted: Sandbox) -> None:
    data = parted.input(
        "x", "in/2", partition="DE", partitions=["country", "year"], schema="year int, n int", availability_flag="DONE"
    )
    frame = read_input(spark, data)
    assert frame.schema.simpleString() == "struct<n:int,country:string,year:int>"
    assert rows(frame) == [(2, "DE", 2013)]


def test_files_of_other_sub_partitions_are_not_opened(spark: SparkSession, sandbox: Sandbox) -> None:
    spark.sql("SELECT 1 AS n").write.parquet((sandbox.folder / "in/US").as_uri())
    sandbox.file("in/DE/broken.parquet", "this is no Parquet")
    data = sandbox.input("x", "in", format="parquet", partition="US", partitions=["country"], schema="n int")
    assert rows(read_input(spark, data)) == [(1, "US")]


def test_too_many_levels(spark: SparkSession, sandbox: Sandbox) -> None:
    sandbox.file("in/US/a.json", "{}")
    assert refusal(spark, sandbox.input("x", "in", partition="*/US", partitions=["country"])) == (
        "input 'x': partition '*/US' has 2 levels, but feed 'x-feed' declares these partitions: country"
    )
