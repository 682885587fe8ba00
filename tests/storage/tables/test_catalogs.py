"""What every catalog does, by a Hive Metastore and an Iceberg catalog that are real."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy
from pyiceberg.catalog import load_catalog
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.storage.tables.catalog import Column, NewPartition, Partition, Values
from falcon_assets.storage.tables.table_store import open_catalog
from tests.registries import CATALOGS, Tables, endpoint_of, iceberg
from tests.waiting import wait_until

ODD = "E/ U=%ü+'"
NAMES = [("2024-01-01", "US"), ("2024-01-01", ODD), ("2024-01-02", "US")]


@pytest.fixture(params=CATALOGS)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(endpoint_of(request, request.param), tmp_path)


def test_a_table_is_what_it_was_made_as(tables: Tables) -> None:
    assert tables.catalog.layout("default", tables.name) is None
    for _ in range(2):  # whoever comes second finds it
        tables.make()
    layout = tables.catalog.layout("default", tables.name)
    assert layout is not None
    assert layout.columns == (Column("carrier", "string"), Column("flight", "bigint"))
    assert layout.keys == (Column("ds", "string"), Column("region", "string"))
    assert layout.format == "parquet"
    assert layout.location.replace("file:///", "file:/") == f"file:{tables.home}/{tables.name}"


def test_partitions_are_listed_and_found_by_their_values(tables: Tables) -> None:
    tables.make()
    assert tables.catalog.values("default", tables.name, {}) == []
    made = {values: tables.land(values, *range(number)) for number, values in enumerate(NAMES, start=1)}
    assert sorted(tables.catalog.values("default", tables.name, {})) == sorted(NAMES)
    assert tables.catalog.values("default", tables.name, {"ds": "2024-01-02"}) == [NAMES[2]]
    assert sorted(tables.catalog.values("default", tables.name, {"region": "US"})) == [NAMES[0], NAMES[2]]
    found = tables.catalog.partitions("default", tables.name, [*NAMES, ("2024-01-03", "US")])
    assert found == made
    assert [found[values].files for values in NAMES] == [1, 1, 1]
    assert all(found[values].bytes > 0 and found[values].format == "parquet" for values in NAMES)
    assert tables.catalog.partitions("default", tables.name, []) == {}


def test_catalogs_keep_no_connection(database: str, tmp_path: Path) -> None:
    endpoint = iceberg(database)
    asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    engine = sqlalchemy.create_engine(database, poolclass=sqlalchemy.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        before = connection.scalar(sqlalchemy.text(asked))
        feeds = [Tables(endpoint, tmp_path) for _ in range(20)]
        assert [one.catalog.layout("default", one.name) for one in feeds] == [None] * 20
        # A server ends a moment after its client.
        wait_until(lambda: connection.scalar(sqlalchemy.text(asked)) == before, what="the connections")


def test_a_partition_has_another_version_once_it_is_another(tables: Tables) -> None:
    tables.make()
    first, other = tables.land(NAMES[0], 1), tables.land(NAMES[1], 1)
    second = tables.land(NAMES[0], 2)
    assert second.version != first.version and second.places != first.places
    assert tables.there(*NAMES[0]) == second
    assert tables.there(*NAMES[1]) == other


@pytest.mark.parametrize("was_there", [True, False])
def test_of_two_that_publish_a_partition_the_slower_one_is_refused(tables: Tables, was_there: bool) -> None:
    tables.make()
    before = tables.land(NAMES[0], 1) if was_there else None
    now = tables.land(NAMES[0], 2)
    with pytest.raises(StorageError, match="was changed by somebody else meanwhile: run it again"):
        tables.catalog.switch("default", tables.name, NAMES[0], tables.files(3), {}, before)
    assert tables.there(*NAMES[0]) == now


def test_many_partitions_are_switched_together(tables: Tables) -> None:
    tables.make()
    other = tables.land(NAMES[2], 9)
    first = tables.catalog.switch_all(
        "default", tables.name, {one: NewPartition((tables.files(1),), 1) for one in NAMES[:2]}, {"by": "tests"}, {}
    )
    assert tables.catalog.partitions("default", tables.name, NAMES) == {**first, NAMES[2]: other}
    new = {NAMES[0]: NewPartition((tables.files(2),), 1), ("2024-01-01", "DE"): NewPartition((tables.files(3),))}
    second = tables.catalog.switch_all("default", tables.name, new, {}, first)
    assert sorted(second) == sorted(new)
    every = sorted([*new, NAMES[2]])
    assert sorted(tables.catalog.values("default", tables.name, {})) == every
    assert tables.catalog.partitions("default", tables.name, every) == {**second, NAMES[2]: other}
    with pytest.raises(StorageError, match="was changed by somebody else meanwhile: run it again"):
        tables.catalog.switch_all(
            "default", tables.name, {**new, NAMES[0]: NewPartition((tables.files(4),))}, {}, first
        )
    assert tables.catalog.partitions("default", tables.name, every) == {**second, NAMES[2]: other}


@pytest.mark.soak
def test_who_writes_other_partitions_at_the_same_time_is_not_in_the_way(tables: Tables) -> None:
    tables.make()
    names = [("2024-01-01", f"R{number}") for number in range(4)]

    def write(values: Values) -> Partition | None:
        own, now = tables.opened_again(), None
        for number in range(8):
            now = own.switch("default", tables.name, values, tables.files(number), {}, now)
            if number % 3 == 1:
                own.drop("default", tables.name, [now])
                now = None
        return now

    with ThreadPoolExecutor(len(names)) as pool:
        made = dict(zip(names, pool.map(write, names), strict=True))
    assert tables.catalog.partitions("default", tables.name, names) == {
        values: one for values, one in made.items() if one is not None
    }


@pytest.mark.soak
def test_a_thousand_partitions_are_switched_and_dropped(tables: Tables) -> None:
    tables.make()
    names = [("2024-01-01", f"R{number}") for number in range(1_000)]

    def switch(names: list[Values], number: int, before: Mapping[Values, Partition]) -> dict[Values, Partition]:
        new = dict.fromkeys(names, NewPartition((tables.files(number),), 1))
        return tables.catalog.switch_all("default", tables.name, new, {}, before)

    second = switch(names, 2, switch(names, 1, {}))
    assert len(second) == 1_000
    last = switch(names[:1], 3, second)
    assert tables.catalog.partitions("default", tables.name, names) == last
    tables.catalog.drop("default", tables.name, [*switch(names[1:], 4, {}).values()])
    assert tables.catalog.partitions("default", tables.name, names) == last


def test_a_metastore_is_called_as_seldom_as_can_be(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables(endpoint_of(request, "hive"), tmp_path)
    tables.make()
    calls: list[str] = []
    real = TBinaryProtocolAccelerated.writeMessageBegin

    def counting(self: TBinaryProtocolAccelerated, name: str, kind: int, number: int) -> None:
        calls.append(name)
        real(self, name, kind, number)

    monkeypatch.setattr(TBinaryProtocolAccelerated, "writeMessageBegin", counting)
    many = {("2024-01-01", f"R{number}"): NewPartition((tables.files(number),), 1) for number in range(3)}
    first = tables.catalog.switch_all("default", tables.name, many, {}, {})
    assert calls == ["get_table", "add_partitions_req"]
    calls.clear()
    again = dict.fromkeys([*first][1:], NewPartition((tables.files(7),), 1))
    tables.catalog.switch_all("default", tables.name, again, {}, first)
    looked = ["get_table", "get_partitions_by_names"]
    assert calls == [*looked, "alter_partitions", "get_partitions_by_names", "drop_partitions_req"]


def test_pyiceberg_reads_what_was_there_before_a_column_was_added(
    request: pytest.FixtureRequest, database: str, tmp_path: Path
) -> None:
    endpoint = endpoint_of(request, "iceberg")
    tables = Tables(endpoint, tmp_path, keys=("ds",))
    tables.make()
    tables.land(("1",), 1)
    more = pa.schema([*Tables.COLUMNS, ("delay", pa.float64())])
    tables.catalog.add_columns("default", tables.name, more)
    tables.catalog.add_columns("default", tables.name, more)
    folder = tmp_path / "new"
    folder.mkdir()
    pq.write_table(pa.table({"carrier": ["UA"], "flight": [2], "delay": [1.5]}, more), folder / "part-0.parquet")
    tables.catalog.switch("default", tables.name, ("2",), f"file://{folder}", {}, None)
    url, _, name = endpoint.removeprefix("iceberg+").partition("#")
    catalog = load_catalog(name, type="sql", uri=url.replace("postgresql://", "postgresql+psycopg2://"))
    rows = catalog.load_table(f"default.{tables.name}").scan().to_arrow().to_pylist()
    assert sorted((row["flight"], row["delay"]) for row in rows) == [(1, None), (2, 1.5)]


@pytest.mark.parametrize(
    "endpoint",
    [
        "thrift://127.0.0.1:1",
        "iceberg+postgresql://nobody@127.0.0.1:1/none",
        "iceberg+http://127.0.0.1:1/catalog#nobody",
    ],
    ids=CATALOGS,
)
def test_what_does_not_answer_is_told_without_its_secrets(endpoint: str) -> None:
    catalog = open_catalog("primary", endpoint, "file:///none", {"token": "nobody"})
    with pytest.raises(UnreachableError) as raised:
        catalog.layout("default", "flights")
    assert "127.0.0.1:1" in str(raised.value) and "nobody" not in str(raised.value)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n", b"\xff" * 64, b"", None])
@pytest.mark.parametrize("scheme", ["thrift", "iceberg+http"])
def test_what_is_no_catalog_is_told_in_one_line(answer: bytes | None, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection = server.accept()[0]
            connection.recv(4096)
            if answer is None:  # it resets the connection, as when it is killed
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(answer or b"")
            connection.close()

        other = threading.Thread(target=serve)
        other.start()
        endpoint = f"{scheme}://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(StorageError) as raised:
            open_catalog("primary", endpoint, "file:///none").layout("default", "flights")
        other.join()
    assert str(raised.value).startswith("cluster 'primary': ")
    assert "look at table default.flights: " in str(raised.value)
    assert "\n" not in str(raised.value)
