"""What a Hive Metastore says of partitions, and what is refused because nobody else would."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from falcon_assets.errors import StorageError
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.catalog import Partition
from falcon_assets.storage.tables.hive_partitions import HiveCatalog
from falcon_assets.storage.tables.table_store import TableStore
from tests.registries import KINDS, Tables, endpoint_of

DAY = "2024-01-01"


@pytest.fixture
def hive_table(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(endpoint_of(request, "hive"), tmp_path, keys=("ds",))


def made(tables: Tables, kind: str, **types: str) -> Tables:
    """With columns of these types of Hive's."""
    catalog = tables.catalog
    assert isinstance(catalog, HiveCatalog)
    columns = pa.schema([(name, pa.string()) for name in types])
    catalog.create("default", tables.name, columns, tables.keys, kind, f"file://{tables.home}/{tables.name}")
    with catalog._client("make a table") as client:
        table = client.get_table("default", tables.name)
        client.drop_table("default", tables.name, False)
        for column, kind_of_column in zip(table.sd.cols, types.values(), strict=True):
            column.type = kind_of_column
        client.create_table(table)
    return tables


def publish(tables: Tables, rows: pa.Table, kind: str = "parquet") -> None:
    target = OutputTarget(f"catalog:default:{tables.name}#ds={DAY}", None, format=kind)
    with TablePublication(tables.store, "daily at now", {"out": target}) as publication:
        folder = Path(publication.staging("out"))
        folder.mkdir()
        if kind == "orc":
            pyarrow.orc.write_table(rows, folder / "part-0.orc")
        else:
            pq.write_table(rows, folder / "part-0.parquet")
        publication.commit("out")


def refused(tables: Tables, rows: pa.Table, kind: str = "parquet") -> str:
    with pytest.raises(StorageError) as raised:
        publish(tables, rows, kind)
    assert tables.there(DAY) is None
    where = f"cluster 'primary': cannot publish catalog:default:{tables.name}#ds={DAY}: "
    assert str(raised.value).startswith(where)
    return str(raised.value).removeprefix(where).replace(f"default.{tables.name}", "TABLE")


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize("limit", ["varchar(3)", "char(3)"])
def test_texts_that_are_too_long_are_refused(hive_table: Tables, kind: str, limit: str) -> None:
    tables = made(hive_table, kind, Code=limit, name="string")
    assert refused(tables, pa.table({"code": ["ab", None, "abcdefgh"], "name": ["x"] * 3}), kind) == (
        f"the output does not fit table TABLE: code has a text of 8 characters, and is {limit} in the table"
    )
    publish(tables, pa.table({"code": ["abc", None, "üñö"], "name": ["longer"] * 3}), kind)


def test_texts_that_are_limited_inside_of_others_are_not_written(hive_table: Tables) -> None:
    tables = made(hive_table, "parquet", codes="array<varchar(3)>")
    assert refused(tables, pa.table({"codes": [["ab"]]})) == (
        "table TABLE limits texts inside of codes array<varchar(3)>, which no process writes: use string"
    )


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_digits_that_the_table_has_not_are_refused(hive_table: Tables, kind: str) -> None:
    tables = made(hive_table, kind, price="decimal(10,1)")
    assert refused(tables, pa.table({"price": pa.array([Decimal("1.25")], pa.decimal128(10, 2))}), kind) == (
        "the output does not fit table TABLE: price is decimal(10,2), and decimal(10,1) in the table"
    )


def changed(tables: Tables, **parameters: str) -> Partition:
    """As another program writes down something of the partition."""
    catalog = tables.catalog
    assert isinstance(catalog, HiveCatalog)
    with catalog._client("change a partition") as client:
        one = client.get_partition("default", tables.name, [DAY])
        one.parameters |= {name.replace("__", "."): text for name, text in parameters.items()}
        client.alter_partition("default", tables.name, one)
    there = tables.there(DAY)
    assert there is not None
    return there


def test_statistics_are_no_other_data(hive_table: Tables) -> None:
    """As Spark's and Hive's `ANALYZE TABLE` write them, with the time at which they did."""
    hive_table.make()
    before = hive_table.land((DAY,), 1)
    spark = {"spark__sql__statistics__numRows": "1", "spark__sql__statistics__totalSize": "648"}
    columns = {"spark__sql__statistics__colStats__flight__max": "1"}
    hive = {"numRows": "1", "rawDataSize": "2", "COLUMN_STATS_ACCURATE": "{}", "STATS_GENERATED": "TASK"}
    assert changed(hive_table, **spark, **columns, **hive, transient_lastDdlTime="7").version == before.version
    assert changed(hive_table, by="others").version != before.version


@pytest.mark.parametrize("kind", KINDS)
def test_a_partition_whose_files_are_gone_is_not_read_as_none(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    tables = Tables(endpoint_of(request, kind), tmp_path, keys=("ds",))
    tables.make()
    (place,) = tables.land((DAY,), 1).places
    lost = Path(urlsplit(place).path)
    shutil.rmtree(lost if lost.is_dir() else lost.parent)
    stored = kind_of(TableStore(tables.cluster, tables.home, tables.environ))
    path = f"catalog:default:{tables.name}#ds={DAY}"
    gone = rf"^cluster 'primary': cannot read partition {DAY}: {place} is not there, where the catalog says that it is$"
    with pytest.raises(StorageError, match=gone), stored.reading(path, None):
        pass
    with pytest.raises(StorageError, match=r"^cluster 'primary': cannot list "):
        stored.source_files(path, None, lambda name: False)
