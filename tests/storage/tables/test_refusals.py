"""Tables that cannot be used, and partitions with odd names: one sentence each, and no traceback."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
)
from pyiceberg.transforms import BucketTransform
from pyiceberg.typedef import Record

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.landing import collect
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.table_store import TableStore, open_catalog
from tests.builders import make_feed
from tests.registries import CATALOGS, Tables, endpoint_of
from tests.storage.kinds.samples import FIRST

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
ODD = ["a b", "100%", "ü/ñ", "a;b=c#d", "{x}", "'\"", "..", HIVE_NULL]


@pytest.fixture(params=CATALOGS)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(endpoint_of(request, request.param), tmp_path)


@pytest.fixture
def in_iceberg(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(endpoint_of(request, "iceberg"), tmp_path, keys=("ds",))


@pytest.fixture
def in_hive(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(endpoint_of(request, "hive"), tmp_path, keys=("ds",))


def opened(tables: Tables) -> Catalog:
    return tables.catalog._catalog  # type: ignore[attr-defined,no-any-return]


def refusal(tables: Tables) -> str:
    """What is said of the table, which is named TABLE here."""
    with pytest.raises(StorageError) as raised:
        tables.catalog.layout("default", tables.name)
    assert str(raised.value).startswith("cluster 'primary': ")
    return str(raised.value).removeprefix("cluster 'primary': ").replace(f"default.{tables.name}", "TABLE")


def test_a_database_that_hive_has_not_is_named(in_hive: Tables) -> None:
    with pytest.raises(StorageError) as raised:
        in_hive.catalog.create("Lost", "flights", Tables.COLUMNS, ["ds"], "parquet", "file:///lost")
    assert str(raised.value) == (
        "cluster 'primary': cannot make table Lost.flights: there is no database Lost: create it in the Hive Metastore "
        "first"
    )


def test_partitions_with_odd_names_come_and_go(tables: Tables) -> None:
    tables.make()
    day = "2013-01-01"
    there = {(day, odd): tables.land((day, odd), number) for number, odd in enumerate([*ODD, "US"])}
    assert sorted(tables.catalog.values("default", tables.name, {"ds": day})) == sorted(there)
    assert tables.catalog.partitions("default", tables.name, [*there]) == there
    again = tables.land((day, HIVE_NULL), 9)
    assert tables.there(day, HIVE_NULL) == again != there[day, HIVE_NULL]
    gone = [*(one for values, one in there.items() if values[1] not in ("US", HIVE_NULL)), again]
    tables.catalog.drop("default", tables.name, gone)
    assert tables.catalog.values("default", tables.name, {}) == [(day, "US")]


def test_a_key_without_a_value_that_another_program_wrote(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    tables = Tables(endpoint_of(request, "iceberg"), tmp_path)
    tables.make()
    rows = {"carrier": ["UA"], "flight": [1], "ds": ["2013-01-01"], "region": [None]}
    schema = pa.schema([*tables.COLUMNS, ("ds", pa.string()), ("region", pa.string())])
    opened(tables).load_table(("default", tables.name)).append(pa.table(rows, schema))
    assert tables.catalog.values("default", tables.name, {"ds": "2013-01-01"}) == [("2013-01-01", HIVE_NULL)]
    assert tables.there("2013-01-01", HIVE_NULL) is not None


def test_partitions_that_are_no_instances_are_passed_over(tables: Tables) -> None:
    tables.make()
    tables.land(("2013-01-01", "US"), 1)
    for odd in (*ODD, "2013-01-02 ", "2013-13-01", "2013-01-02;region=US"):
        tables.land((odd, "US"), 1)
    uri = f"catalog:default:{tables.name}#ds=${{YEAR}}-${{MONTH}}-${{DAY}};region=*"
    feed = make_feed(frequency="days(1)", locations=None, availability_flag=None, table={"uri": uri})
    kind = kind_of(TableStore(tables.cluster, tables.home, tables.environ))
    assert [one.instance for one in collect(kind, feed, [(FIRST, FIRST.replace(month=3))], {}, None)] == [FIRST]
    assert [one.nominal for one in kind.stored(feed)] == [FIRST]


class Deletes(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES


def test_delete_files(in_iceberg: Tables) -> None:
    """As other engines write them; PyIceberg itself never does."""
    in_iceberg.make()
    in_iceberg.land(("2013-01-01",), 1)
    table = opened(in_iceberg).load_table(("default", in_iceberg.name))
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        number, output = snapshot.snapshot_id, table.io.new_output(f"file://{in_iceberg.home}/deletes.avro")
        file = DataFile.from_args(
            content=DataFileContent.POSITION_DELETES,
            file_path=f"file://{in_iceberg.home}/deletes.parquet",
            file_format=FileFormat.PARQUET,
            partition=Record("2013-01-01"),
            record_count=1,
            file_size_in_bytes=1,
        )
        entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file)
        with Deletes(table.spec(), table.schema(), output, number, "deflate") as writer:
            writer.add_entry(entry)
        made, before = writer.to_manifest_file(), snapshot._existing_manifests
        snapshot._existing_manifests = lambda: [*before(), made]  # type: ignore[method-assign]
    assert refusal(in_iceberg) == (
        "TABLE has delete files, which Spark does not apply when it reads data files by path: rewrite its data files "
        "first"
    )


def test_partitions_by_a_part_of_a_column(in_iceberg: Tables) -> None:
    in_iceberg.make()
    with opened(in_iceberg).load_table(("default", in_iceberg.name)).update_spec() as update:
        update.add_field("flight", BucketTransform(8), "eighth")
    assert refusal(in_iceberg) == (
        "TABLE is partitioned by bucket[8] of a column: only tables that are partitioned by columns as they are can be "
        "used"
    )


def test_partitions_by_numbers_with_a_point(in_iceberg: Tables) -> None:
    schema = pa.schema([("ds", pa.float64())])
    opened(in_iceberg).create_namespace_if_not_exists("default")
    place = f"file://{in_iceberg.home}/table"
    with (
        opened(in_iceberg).create_table_transaction(("default", in_iceberg.name), schema, place) as transaction,
        transaction.update_spec() as update,
    ):
        update.add_identity("ds")
    assert refusal(in_iceberg) == (
        "TABLE is partitioned by ds, a double: only texts, whole numbers and dates can be used"
    )


def test_files_that_are_partitioned_in_an_older_way(in_iceberg: Tables) -> None:
    in_iceberg.make()
    in_iceberg.land(("2013-01-01",), 1)
    with opened(in_iceberg).load_table(("default", in_iceberg.name)).update_spec() as update:
        update.add_identity("carrier")
    with pytest.raises(StorageError, match="has files that are partitioned in an older way: rewrite its data files"):
        in_iceberg.catalog.values("default", in_iceberg.name, {})


@pytest.mark.parametrize(
    ("column", "text", "wrong"), [(pa.int32(), "7", "seven"), (pa.date32(), "2013-01-01", "yesterday")], ids=str
)
def test_partitions_by_other_types(in_iceberg: Tables, column: pa.DataType, text: str, wrong: str) -> None:
    """A value that is none of its type is told; it is never taken for another one."""
    schema = pa.schema([*in_iceberg.COLUMNS, ("ds", column)])
    opened(in_iceberg).create_namespace_if_not_exists("default")
    place = f"file://{in_iceberg.home}/table"
    with (
        opened(in_iceberg).create_table_transaction(("default", in_iceberg.name), schema, place) as transaction,
        transaction.update_spec() as update,
    ):
        update.add_identity("ds")
    now = in_iceberg.land((text,), 1)
    assert in_iceberg.catalog.partitions("default", in_iceberg.name, [(text,)]) == {(text,): now}
    with pytest.raises(StorageError, match=r"^cluster 'primary': cannot "):
        in_iceberg.land((wrong,), 1)


def test_a_table_that_goes_meanwhile(tables: Tables) -> None:
    tables.make()
    if tables.catalog.endpoint.startswith("thrift:"):
        with tables.catalog._client("") as client:  # type: ignore[attr-defined]
            client.drop_table("default", tables.name, False)
    else:
        opened(tables).drop_table(("default", tables.name))
    for ask in (
        lambda: tables.catalog.values("default", tables.name, {}),
        lambda: tables.catalog.partitions("default", tables.name, [("2013-01-01", "US")]),
        lambda: tables.catalog.switch("default", tables.name, ("2013-01-01", "US"), tables.files(1), {}, None),
    ):
        with pytest.raises(StorageError, match=rf"^cluster 'primary': cannot [^\n]*{tables.name}[^\n]*$"):
            ask()


@contextmanager
def changed(in_hive: Tables, kind: str = "parquet") -> Iterator[Any]:
    """The metastore's own description of the table, to be changed as another program would."""
    place = f"file://{in_hive.home}/table"
    in_hive.catalog.create("default", in_hive.name, in_hive.COLUMNS, in_hive.keys, kind, place)
    with in_hive.catalog._client("change a table") as client:  # type: ignore[attr-defined]
        table = client.get_table("default", in_hive.name)
        yield table
        client.alter_table("default", in_hive.name, table)


def test_transactional_tables(in_hive: Tables) -> None:
    with changed(in_hive, "orc") as table:
        table.tableType, table.parameters = "MANAGED_TABLE", {"transactional": "true"}
        table.sd.numBuckets, table.sd.bucketCols = 2, ["flight"]
    assert refusal(in_hive) == "TABLE is transactional: what is in its files is not what readers see"


def test_tables_in_other_formats_are_not_written(in_hive: Tables) -> None:
    with changed(in_hive) as table:
        table.sd.inputFormat = "org.apache.hadoop.mapred.TextInputFormat"
    target = OutputTarget(f"catalog:default:{in_hive.name}#ds=2013-01-01", None, format="parquet")
    with (
        pytest.raises(StorageError, match=r"is neither in Parquet nor in ORC, which processes write$"),
        TablePublication(in_hive.store, "daily", {"out": target}),
    ):
        pass


def test_a_metastore_that_is_not_there_says_what_the_system_says() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for endpoint in (f"thrift://127.0.0.1:{port}", f"thrift://127.0.0.1:{port},thrift://localhost:{port}"):
        with pytest.raises(UnreachableError) as raised:
            open_catalog("primary", endpoint, "file:///none").layout("default", "flights")
        assert str(raised.value) == f"cluster 'primary': {endpoint} does not answer: Connection refused"
