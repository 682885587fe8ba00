"""Spark reads the files of Iceberg tables by names; what it reads is what PyIceberg reads, which goes by numbers."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.types import LongType, StringType

from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.errors import StorageError
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.table_store import TableStore
from tests.builders import make_cluster, make_feed
from tests.registries import Tables, endpoint_of
from tests.spark.sandbox import Sandbox

INNER = pa.struct([("a", pa.int64()), ("b", pa.string())])
COLUMNS = pa.schema([("n", pa.int64()), ("x", pa.string()), ("s", INNER), ("l", pa.list_(INNER))])


@pytest.fixture
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(endpoint_of(request, "iceberg"), tmp_path, keys=("ds",))


def table_of(tables: Tables) -> Table:
    opened: Catalog = tables.catalog._catalog  # type: ignore[attr-defined]
    return opened.load_table(("default", tables.name))


def append(tables: Tables, *rows: dict[str, Any]) -> None:
    """As PyIceberg writes files."""
    table = table_of(tables)
    table.append(pa.Table.from_pylist([{"ds": "1", **row} for row in rows], table.schema().as_arrow()))


def spark_files(tables: Tables, rows: pa.Table) -> None:
    """Published as Spark writes files."""
    target = OutputTarget(f"catalog:default:{tables.name}#ds=2", None, format="parquet")
    with TablePublication(tables.store, "daily", {"out": target}) as publication:
        folder = Path(publication.staging("out"))
        folder.mkdir()
        pq.write_table(rows, folder / "part-0.parquet")
        publication.commit("out")


def by_number(tables: Tables) -> list[dict[str, Any]]:
    return sorted(table_of(tables).scan().to_arrow().to_pylist(), key=lambda row: str(row["n"]))


def by_name(tables: Tables, tmp_path: Path) -> list[dict[str, Any]]:
    table = {"uri": f"catalog:default:{tables.name}#ds=*"}
    feed = make_feed(locations=None, availability_flag=None, table=table, format="parquet")
    kind = kind_of(TableStore(tables.cluster, tables.home, tables.environ))
    with kind.reading(f"catalog:default:{tables.name}#ds=*", None) as read:
        urls = tuple(place for one in read.partitions for place in one.partition.places)
        data = InputData("rows", feed, urls, partitions=read.partitions)
        frame = read_input(Sandbox(tmp_path, make_cluster()).session(), data)
        rows = [row.asDict(recursive=True) for row in frame.collect()]
    return sorted(rows, key=lambda row: str(row["n"]))


def drop_and_add(table: Table) -> None:
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("x")
        update.delete_column(("s", "b"))
    with table.update_schema() as update:
        update.add_column("x", StringType())
        update.add_column(("s", "b"), StringType())


def rename(table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("x", "y")
        update.rename_column(("l", "element", "a"), "first")
    with table.update_schema() as update:
        update.add_column("x", LongType())


@pytest.mark.parametrize("change", [drop_and_add, rename])
def test_columns_are_those_of_the_same_number(tables: Tables, tmp_path: Path, change: Callable[[Table], None]) -> None:
    tables.make(pa.string(), columns=COLUMNS)
    one = {"n": 1, "x": "old", "s": {"a": 1, "b": "old"}, "l": [{"a": 2, "b": "z"}]}
    append(tables, one)
    change(table_of(tables))
    append(tables, {"n": 2, "x": None, "s": {"a": 3, "b": "new"}})
    rows = by_number(tables)
    assert rows[0]["x"] is None and rows[0]["s"]["a"] == 1
    assert by_name(tables, tmp_path) == rows


def test_names_that_iceberg_escapes_in_files(tables: Tables, tmp_path: Path) -> None:
    columns = pa.schema(
        [("n", pa.int64()), ("user-id", pa.string()), ("c d", pa.int64()), ("a.b", pa.string()), ("ü", pa.int64())]
    )
    tables.make(pa.string(), columns=columns)
    rows = {"n": 1, "user-id": "u", "c d": 2, "a.b": "z", "ü": 3}
    append(tables, rows)
    spark_files(tables, pa.Table.from_pylist([{**rows, "n": 2}], columns))
    found = by_number(tables)
    assert found == [{**rows, "n": number, "ds": str(number)} for number in (1, 2)]
    assert by_name(tables, tmp_path) == found


def test_cases_of_names_do_not_matter(tables: Tables, tmp_path: Path) -> None:
    columns = pa.schema([("n", pa.int64()), ("FlightNo", pa.int64()), ("s", pa.struct([("Inner", pa.int64())]))])
    tables.make(pa.string(), columns=columns)
    append(tables, {"n": 1, "FlightNo": 7, "s": {"Inner": 8}})
    spark_files(tables, pa.table({"N": [2], "flightno": [9], "s": [{"inner": 10}]}))
    expected = [
        {"n": 1, "FlightNo": 7, "s": {"Inner": 8}, "ds": "1"},
        {"n": 2, "FlightNo": 9, "s": {"Inner": 10}, "ds": "2"},
    ]
    assert by_number(tables) == expected
    assert by_name(tables, tmp_path) == expected


def test_what_a_table_requires_is_there_or_refused(tables: Tables) -> None:
    columns = pa.schema([pa.field("n", pa.int64(), nullable=False), ("x", pa.string())])
    tables.make(pa.string(), columns=columns)
    with pytest.raises(StorageError, match=r"n has no value in 1 rows, and the table requires one$"):
        spark_files(tables, pa.table({"n": pa.array([1, None], pa.int64()), "x": ["a", "b"]}))
    assert by_number(tables) == []
    spark_files(tables, pa.table({"n": [1], "x": pa.array([None], pa.string())}))
    assert by_number(tables) == [{"n": 1, "x": None, "ds": "2"}]


def test_tables_that_are_made_require_nothing(tables: Tables) -> None:
    inner = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    own = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("s", inner, nullable=False)])
    tables.make(columns=own)
    assert not any(field.required for field in table_of(tables).schema().fields)
    spark_files(tables, pa.table({"n": pa.array([None], pa.int64()), "s": pa.array([None], inner)}))
    assert by_number(tables) == [{"n": None, "s": None, "ds": "2"}]


def test_a_table_with_a_type_that_spark_has_not_is_refused_by_itself(tables: Tables) -> None:
    tables.make(pa.string(), columns=pa.schema([("n", pa.int64()), ("at", pa.time64("us"))]))
    with pytest.raises(StorageError) as raised:
        tables.catalog.layout("default", tables.name)
    assert str(raised.value).endswith("Spark has no type for time64[us]")
    assert raised.value.__cause__ is None, "it is an answer: the registry is asked for other tables"
    assert tables.catalog.layout("default", f"none_{uuid.uuid4().hex}") is None
