"""Spark reads partitions of tables by their files, on every kind of endpoint."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.errors import WorkflowError
from falcon_assets.model.cluster import Cluster
from falcon_assets.storage.kinds.reading import ReadablePartition
from falcon_assets.storage.tables.catalog import Column, Partition, TableLayout
from tests.builders import make_cluster, make_feed
from tests.spark.sandbox import Sandbox

LAYOUT = TableLayout(
    "db.flights",
    (Column("carrier", "string"), Column("flight", "bigint")),
    (Column("ds", "date"), Column("Region", "string")),
    "file:/none",
    "parquet",
)


@pytest.fixture
def sandbox(tmp_path: Path, any_cluster: Cluster) -> Sandbox:
    return Sandbox(tmp_path, any_cluster)


def given(sandbox: Sandbox, *partitions: tuple[str, str], format: str = "parquet", **feed: Any) -> InputData:
    readable = []
    for number, values in enumerate(partitions):
        folder = sandbox.folder / f"t/_versions/{number} a"
        folder.mkdir(parents=True, exist_ok=True)
        rows = {"flight": pa.array([number], pa.int64()), "carrier": [f"c{number}"]}
        pq.write_table(pa.table(rows), folder / "part-0.parquet")
        # In one partition its folder, as Hive has it, in the next one its files, as Iceberg has them.
        place = f"file:{folder}" if number % 2 else f"file://{folder}/part-0.parquet"
        readable.append(ReadablePartition(LAYOUT, Partition(values, (place,), "v", 1, 1, format)))
    table = {"uri": "catalog:db:flights#ds=${YEAR}-${MONTH}-${DAY};Region=*"}
    declared = make_feed(locations=None, availability_flag=None, table=table, format="parquet", **feed)
    urls = tuple(place for one in readable for place in one.partition.places)
    return InputData("rows", declared, urls, partitions=tuple(readable))


DAYS = [("2024-01-01", "US"), ("2024-01-02", "E/ U=%"), ("2024-01-03", "__HIVE_DEFAULT_PARTITION__")]


def test_partition_keys_are_columns(sandbox: Sandbox) -> None:
    frame = read_input(sandbox.session(), given(sandbox, *DAYS))
    assert frame.columns == ["carrier", "flight", "ds", "Region"]
    assert sorted((row.carrier, row.flight, str(row.ds), row.Region) for row in frame.collect()) == [
        ("c0", 0, "2024-01-01", "US"),
        ("c1", 1, "2024-01-02", "E/ U=%"),
        ("c2", 2, "2024-01-03", None),
    ]
    assert [row.flight for row in frame.where("Region = 'US' AND ds = DATE '2024-01-01'").collect()] == [0]


def test_many_partitions_are_one_frame(sandbox: Sandbox) -> None:
    frame = read_input(sandbox.session(), given(sandbox, *(("2024-01-01", str(number)) for number in range(40))))
    assert sorted((row.flight, row.Region) for row in frame.collect()) == [
        (number, str(number)) for number in range(40)
    ]


def test_a_declared_schema_says_which_columns_are_read(sandbox: Sandbox) -> None:
    frame = read_input(sandbox.session(), given(sandbox, *DAYS[:2], schema="ds string, flight long"))
    assert sorted(map(tuple, frame.collect())) == [("2024-01-01", 0, "US"), ("2024-01-02", 1, "E/ U=%")]


def test_a_column_that_came_later_is_null_where_it_is_not(sandbox: Sandbox) -> None:
    data = given(sandbox, *DAYS[:2])
    layout = replace(LAYOUT, columns=(*LAYOUT.columns, Column("delay", "double")))
    frame = read_input(
        sandbox.session(), replace(data, partitions=tuple(replace(one, layout=layout) for one in data.partitions))
    )
    assert sorted((row.flight, row.delay) for row in frame.collect()) == [(0, None), (1, None)]


def test_a_table_of_another_schema_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(WorkflowError) as raised:
        read_input(sandbox.session(), given(sandbox, *DAYS, schema="flight int, delay int"))
    assert str(raised.value) == (
        "input 'rows' (feed 'raw-flights'): table db.flights does not have the declared schema: "
        "flight is bigint, declared int; delay is not there, declared int"
    )


def test_other_formats_are_refused(sandbox: Sandbox) -> None:
    with pytest.raises(WorkflowError, match=r"a partition of db\.flights is neither in Parquet nor in ORC"):
        read_input(sandbox.session(), given(sandbox, *DAYS, format=""))


def test_digits_that_an_orc_table_has_not_are_refused(tmp_path: Path) -> None:
    """ORC's reader would round them; catalogs do not look into the files of others."""
    sandbox = Sandbox(tmp_path, make_cluster())
    folder = tmp_path / "partition"
    folder.mkdir()
    rows = {"price": pa.array([Decimal("1.25")], pa.decimal128(10, 2)), "code": ["abc"]}
    pyarrow.orc.write_table(pa.table(rows), folder / "part-0.orc")
    data = given(sandbox, DAYS[0])

    def read(price: str) -> list[Any]:
        layout = replace(LAYOUT, columns=(Column("price", price), Column("code", "varchar(3)")), format="orc")
        there = Partition(DAYS[0], (f"file:{folder}",), "v", 1, 1, "orc")
        frame = read_input(sandbox.session(), replace(data, partitions=(ReadablePartition(layout, there),)))
        return [tuple(row)[:2] for row in frame.collect()]

    with pytest.raises(WorkflowError) as raised:
        read("decimal(10,1)")
    assert str(raised.value) == (
        "input 'rows' (feed 'raw-flights'): the files do not have the declared schema: "
        "price is decimal(10,2), declared decimal(10,1)"
    )
    assert read("decimal(10,2)") == [(Decimal("1.25"), "abc")]


def test_nothing_available_has_the_declared_columns_and_the_keys(sandbox: Sandbox) -> None:
    frame = read_input(sandbox.session(), given(sandbox, schema="flight long"))
    assert frame.columns == ["flight", "ds", "Region"] and frame.count() == 0
