"""Counts of files, compared with what Spark reads."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from falcon_assets.features.completeness.counting import can_count, count_records
from falcon_assets.model.feed import Feed
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from tests.builders import make_cluster, make_feed

CSV = b'a,b\n1,2\n\n  \n3,"x\n#4,5\n6,7,8\r\n9\r10,11'
QUOTED = b'a,b\n1,"x\ny"\n\n2,"z ""q"" \n\n"\n3,4\n'
JSON = b'{"a": 1}\n\n  \n{"a": 2}\r\n{"a": 3, "b": "\xff"}\n{broken\n{"a": 4}'
TEXT = b"one\n\n two\r\nthree\rfour\n"
WAYS: dict[str, tuple[str, dict[str, str], dict[str, bytes]]] = {
    "csv": ("csv", {}, {"1.csv": CSV, "2.csv": b"", "3.csv": b"\n"}),
    "csv_with_header": ("csv", {"header": "true"}, {"1.csv": CSV, "2.csv": b"a,b\n", "3.csv": b""}),
    "csv_with_comments": ("csv", {"comment": "#", "HEADER": "TRUE"}, {"1.csv": CSV}),
    "csv_over_lines": ("csv", {"multiLine": "true", "header": "true", "escape": '"'}, {"1.csv": QUOTED}),
    "csv_by_tabs": ("csv", {"sep": "\t", "multiLine": "true"}, {"1.csv": b'1\t"2\n3"\n4\t5\n'}),
    "csv_packed": ("csv", {}, {"1.csv.gz": gzip.compress(CSV), "2.csv.bz2": bz2.compress(CSV)}),
    "json": ("json", {}, {"1.json": JSON, "2.json": b"", "3.json.gz": gzip.compress(JSON)}),
    "text": ("text", {}, {"1.txt": TEXT, "2.txt": b"", "3.txt": b"\n\n", "_hidden": b"1\n", ".also": b"1\n"}),
    "text_as_a_whole": ("text", {"wholetext": "true"}, {"1.txt": TEXT, "2.txt": b"a"}),
    "binary": ("binaryFile", {}, {"1.bin": b"1", "2.bin": b"2"}),
}


def feed_of(form: str, options: dict[str, str]) -> Feed:
    return make_feed(format=form, options=options, availability_flag=None)


def counted(root: Path, feed: Feed) -> int | None:
    interfaces = {"write": {"endpoint": root.as_uri()}, "execute": {"endpoint": "local[1]"}}
    return count_records(kind_of(ClusterStore(make_cluster(interfaces=interfaces), root, {})), feed, "/data")


def write(root: Path, files: dict[str, bytes]) -> str:
    folder = root / "data"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return str(folder)


@pytest.mark.parametrize("way", WAYS)
def test_text_is_counted_as_spark_reads_it(spark: SparkSession, tmp_path: Path, way: str) -> None:
    form, options, files = WAYS[way]
    folder, feed = write(tmp_path, files), feed_of(form, options)
    assert can_count(feed, "primary")
    # A cached relation: else Spark counts some formats without parsing them.
    read = spark.read.format(form).options(**options).load(folder).cache().count()
    assert (counted(tmp_path, feed), read > 0) == (read, True)


def test_footers_are_read(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"a": range(1000), "b": ["x"] * 1000})
    for form, write_table in (("parquet", pyarrow.parquet.write_table), ("orc", pyarrow.orc.write_table)):
        folder = Path(write(tmp_path / form, {}))
        for name in ("1", "2"):
            write_table(table, folder / f"{name}.{form}")
        assert counted(tmp_path / form, feed_of(form, {})) == 2000 == spark.read.format(form).load(str(folder)).count()


def test_what_cannot_be_read_is_not_counted(tmp_path: Path) -> None:
    write(tmp_path / "broken", {"1.parquet": b"PAR1 and no more"})
    assert counted(tmp_path / "broken", feed_of("parquet", {})) is None
    write(tmp_path / "cut", {"1.csv.gz": gzip.compress(CSV)[:-9]})
    assert counted(tmp_path / "cut", feed_of("csv", {})) is None
    write(tmp_path / "snappy", {"1.csv.snappy": b"..."})
    assert counted(tmp_path / "snappy", feed_of("csv", {})) is None
    assert counted(tmp_path / "nothing", feed_of("csv", {})) is None
    for form, options in (("avro", {}), ("json", {"multiline": "true"}), ("csv", {"lineSep": ";"}), ("xml", {})):
        assert not can_count(feed_of(form, options), "primary")
    assert not can_count(feed_of("text", {"encoding": "UTF-16"}), "primary")
