"""Files that the tasks of an import write themselves are those that Spark would have written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.data.dataset import OutputData
from falcon_assets.compute.spark.jvm import in_utc
from falcon_assets.compute.spark.sessions import isolated
from falcon_assets.errors import WorkflowError
from falcon_assets.features.datasources.datasource_type import SourceColumn, SourceReading
from falcon_assets.features.transfers import task_files
from falcon_assets.features.transfers.extraction import read_parts
from falcon_assets.features.transfers.task_files import TaskOutput, fits, write_in_tasks
from falcon_assets.model.transfer import Import
from falcon_assets.planning.transfers import ImportWorkload
from tests.builders import make_feed
from tests.features.transfers.source import access_of, opened, run_sql

PARQUET = {"name": "orders", "format": "parquet"}
SOURCE = {"name": "shop", "table": "orders"}
ROWS = """
    SELECT n::smallint AS small, n AS id, n::bigint << 33 AS big, n / 3.0::real AS real, n / 7.0::float8 AS double,
           n::numeric(9,2) AS price, (n / 7.0)::numeric(18,6) AS weight, (n / 7.0)::numeric(38,10) AS wide,
           n % 2 = 0 AS truth, '0001-01-01'::date + n * 20000 AS day,
           '0001-01-01T00:00:00.000001Z'::timestamptz + n * interval '50 years' AS at,
           '0001-01-01'::timestamp + n * interval '50 years' AS wall,
           'text ' || n AS text, '' AS "it's; empty", decode(md5(n::text), 'hex') AS bytes,
           ARRAY[n, NULL] AS numbers, ARRAY[[n::text], [NULL]] AS texts, ARRAY['\\x00ff'::bytea] AS raws
    FROM generate_series(1, 150) AS numbers(n)
    UNION ALL SELECT {nulls}
"""
NULLS = ", ".join(["NULL::smallint", "1000", *["NULL"] * 16])


@dataclass(frozen=True)
class Rows:
    """A part with batches, which first leaves a file as another attempt at it does that Spark does not take."""

    batches_: Sequence[pa.RecordBatch]
    stray: Path

    def batches(self) -> Iterator[pa.RecordBatch]:
        self.stray.write_bytes(b"of a killed attempt")
        yield from self.batches_


@dataclass(frozen=True)
class Reading:
    columns: Sequence[SourceColumn]
    parts: Sequence[Any]
    low: None = None
    high: None = None
    behind: None = None


def output(folder: Path, **feed: Any) -> OutputData:
    return OutputData("target", make_feed(**PARQUET, **feed), folder.as_uri())


def written(spark: SparkSession, reading: SourceReading, data: OutputData, column: str | None = None) -> TaskOutput:
    frame = read_parts(spark, reading)
    assert fits(data, reading.columns, spark.conf.getAll)
    return write_in_tasks(frame, reading, data, "primary", column)


def in_id(count: int, stray: Path, size: int = 10) -> Reading:
    """A reading of two parts, with so many ids together."""
    columns = [SourceColumn("id", "integer", "int", "int")]
    ids = [pa.array(range(at, min(at + size, count)), pa.int32()) for at in range(0, count, size)]
    found = [pa.RecordBatch.from_arrays([one], ["id"]) for one in ids]
    return Reading(columns, [Rows(found[::2], stray), Rows(found[1::2], stray)])


def ids(folder: Path) -> list[int]:
    return sorted(pq.read_table(folder)["id"].to_pylist())


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    with in_utc(), isolated(spark) as child:
        child.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        yield child


@pytest.mark.parametrize("condition", ["true", "false"], ids=["rows", "no_rows"])
def test_they_are_as_those_of_spark(session: SparkSession, database: str, tmp_path: Path, condition: str) -> None:
    run_sql(
        database,
        "DROP TABLE IF EXISTS orders",
        f"CREATE TABLE orders AS SELECT * FROM ({ROWS.format(nulls=NULLS)}) AS rows WHERE {condition}",
        "ALTER TABLE orders ALTER COLUMN texts TYPE text[][]",
    )
    ours, sparks = tmp_path / "ours", tmp_path / "sparks"
    with opened(access_of(database)) as reading:
        found = written(session, reading, output(ours), "at")
        read_parts(session, reading).write.parquet(str(sparks))
    (own, *_), (other, *_) = ([*folder.glob("*.parquet")] for folder in (ours, sparks))
    assert forms(own) == forms(other)
    assert texts(own) == texts(other)
    tables = [pq.read_table(folder).sort_by("id") for folder in (ours, sparks)]
    assert tables[0].equals(tables[1], check_metadata=False)
    assert tables[0].schema.equals(tables[1].schema, check_metadata=False)
    assert found.rows == tables[0].num_rows == (151 if condition == "true" else 0)
    of_spark = [session.read.parquet(str(folder)) for folder in (ours, sparks)]
    assert of_spark[0].schema == of_spark[1].schema
    assert sorted(map(str, of_spark[0].collect())) == sorted(map(str, of_spark[1].collect()))
    newest = of_spark[1].selectExpr("CAST(max(at) AS string)").collect()[0][0]
    assert found.newest == newest
    assert {one.suffix for one in ours.iterdir()} == {".parquet"}, "nothing else is left there"


def forms(file: Path) -> list[str]:
    """Each column as Parquet has it, with its encryption, compression and nesting."""
    read = pq.ParquetFile(file)
    columns = [read.schema.column(number) for number in range(len(read.schema))]
    codecs = {
        group.column(number).compression
        for at in range(read.num_row_groups)
        for group in [read.metadata.row_group(at)]
        for number in range(len(read.schema))
    }
    return [
        *(
            f"{one.path} {one.physical_type} {one.logical_type} {one.max_definition_level} {one.max_repetition_level}"
            for one in columns
        ),
        *codecs,
    ]


def texts(file: Path) -> dict[bytes, Any]:
    """What is said of a file by who wrote it."""
    said = pq.ParquetFile(file).metadata.metadata or {}
    return {key: json.loads(value) if value.startswith(b"{") else value for key, value in said.items()}


def test_files_of_attempts_that_spark_does_not_take_are_not_there(session: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    found = written(session, in_id(95, folder / "_temporary" / "part-00000-of-a-killed-one.parquet"), output(folder))
    assert (found.rows, ids(folder)) == (95, [*range(95)])
    assert len([*folder.iterdir()]) == 2, "one for each part"


def test_nothing_is_there_of_a_part_that_fails(session: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    reading = in_id(20, folder / "missing" / "file")
    with pytest.raises(WorkflowError, match=r"output 'target' \(feed 'orders'\): .*No such file or directory"):
        written(session, reading, output(folder))
    assert [one.name for one in folder.iterdir()] == ["_temporary"]


def test_large_parts_are_several_files_of_several_row_groups(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_files, "GROUP_BYTES", 400)
    monkeypatch.setattr(task_files, "FILE_BYTES", 1500)
    reading = in_id(1000, tmp_path / "stray")
    task = task_files._task(read_parts(session, reading), reading, output(tmp_path), tmp_path, None)
    ((files, rows, _),) = [batch.to_pylist()[0].values() for batch in task(iter([numbers(0)]))]
    assert (rows, len(files) > 1) == (500, True)
    assert sum(pq.read_metadata(tmp_path / one).num_rows for one in files) == 500
    assert pq.read_metadata(tmp_path / files[0]).num_row_groups > 1


def numbers(*found: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(found)], ["id"])


def test_the_compression_is_what_the_feed_or_the_session_says(session: SparkSession, tmp_path: Path) -> None:
    session.conf.set("spark.sql.parquet.compression.codec", "zstd")
    for name, options in {"zstd": {}, "gzip": {"Compression": "GZIP"}}.items():
        written(session, in_id(20, tmp_path / "stray"), output(tmp_path / name, options=options))
        files = [*(tmp_path / name).iterdir()]
        assert {pq.read_metadata(one).row_group(0).column(0).compression for one in files} == {name.upper()}
        assert {"".join(one.suffixes) for one in files} == {{"zstd": ".zstd.parquet", "gzip": ".gz.parquet"}[name]}


@pytest.mark.parametrize(
    ("settings", "is_ours"),
    [
        ({}, True),
        ({"spark.sql.shuffle.partitions": "4", "spark.sql.parquet.compression.codec": "zstd"}, True),
        ({"spark.sql.parquet.compression.codec": "lzo"}, False),
        ({"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}, True),
        ({"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}, False),
        ({"spark.hadoop.parquet.encryption.footer.key": "k1"}, False),
        ({"spark.sql.files.maxRecordsPerFile": "1000"}, False),
    ],
    ids=["none", "usual", "codec", "micros", "millis", "encryption", "file_size"],
)
def test_spark_writes_what_its_settings_are_about(settings: dict[str, str], is_ours: bool) -> None:
    assert fits(output(Path("/data")), [SourceColumn("id", "integer", "int", "int")], settings) is is_ours


def test_spark_writes_what_needs_it() -> None:
    plain, made = SourceColumn("id", "integer", "int", "int"), SourceColumn("ID", "x", "int", "string", "int(ID)")
    assert not fits(output(Path("/data")), [plain, plain._replace(name="ID")], {})
    assert not fits(output(Path("/data")), [made], {})
    assert not fits(OutputData("target", make_feed(**PARQUET), "s3a://bucket/data"), [plain], {})


@pytest.mark.parametrize(
    ("declared", "feed", "why"),
    [
        ({}, {}, None),
        ({}, {"options": {"compression": "zstd"}}, None),
        ({"extract": {"incremental": {"column": "at"}}}, {}, None),
        (
            {"extract": {"incremental": {"column": "at"}}, "merge": {"upsert": {"key": ["id"]}}},
            {},
            "rows are merged by key",
        ),
        ({}, {"format": "json"}, "the format is json"),
        ({}, {"partitions": ["day", "kind"]}, "the feed is partitioned by day, kind"),
        ({}, {"options": {"maxRecordsPerFile": "10"}}, "the feed has the option maxRecordsPerFile"),
    ],
    ids=["plain", "compressed", "changes", "merged", "format", "partitions", "options"],
)
def test_why_spark_writes(declared: dict[str, Any], feed: dict[str, Any], why: str | None) -> None:
    entity = make_feed(**{**PARQUET, **feed})
    workload = ImportWorkload(entity, entity.clusters[0].name, Import.model_validate({"source": SOURCE, **declared}))
    assert workload.spark_writes == why
