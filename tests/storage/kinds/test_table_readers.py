"""Readers of tables while partitions are switched: Hive's by its metastore, Iceberg's by pyiceberg."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pymetastore.hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.output_target import OutputTarget
from tests.registries import Tables, endpoint_of

SWITCHES, FILES, ROWS = 100, 4, 50
DAY = "2024-01-01"


def hive_reader(endpoint: str, tables: Tables) -> list[int]:
    host, _, port = endpoint.removeprefix("thrift://").partition(":")
    transport = TBufferedTransport(TSocket(host, int(port)))
    transport.open()
    try:
        location = Client(TBinaryProtocol(transport)).get_partition("default", tables.name, [DAY]).sd.location
    finally:
        transport.close()
    folder = Path(location.removeprefix("file:"))
    return [flight for file in folder.glob("part-*") for flight in pq.read_table(file)["flight"].to_pylist()]


def iceberg_reader(endpoint: str, tables: Tables) -> list[int]:
    url, _, name = endpoint.removeprefix("iceberg+").partition("#")
    catalog = load_catalog(name, type="sql", uri=url.replace("postgresql://", "postgresql+psycopg2://"))
    found = catalog.load_table(("default", tables.name)).scan(row_filter=f"ds == '{DAY}'").to_arrow()
    return list(found["flight"].to_pylist())


READERS: dict[str, Callable[[str, Tables], list[int]]] = {"hive": hive_reader, "iceberg": iceberg_reader}


@pytest.mark.soak
@pytest.mark.parametrize("kind", READERS)
def test_nobody_reads_a_mixture(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    endpoint = endpoint_of(request, kind)
    tables = Tables(endpoint, tmp_path, keys=("ds",))
    tables.make()
    target = OutputTarget(f"catalog:default:{tables.name}#ds={DAY}", None, format="parquet")

    def publish(number: int) -> None:
        with TablePublication(tables.store, "daily at now", {"out": target}) as publication:
            folder = Path(publication.staging("out"))
            folder.mkdir()
            rows = pa.table({"carrier": ["UA"] * ROWS, "flight": pa.array([number] * ROWS, pa.int64())})
            for part in range(FILES):
                pq.write_table(rows, folder / f"part-{part}.parquet")
            publication.commit("out")

    publish(0)
    over = threading.Event()
    seen: list[list[int]] = []
    errors: list[BaseException] = []

    def read() -> None:
        try:
            while not over.is_set():
                seen.append(READERS[kind](endpoint, tables))
        except BaseException as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(1, SWITCHES + 1):
            publish(number)
    finally:
        over.set()
        reader.join()
    assert errors == []
    assert len({values[0] for values in seen}) > 1, "it read while partitions were switched"
    assert [values for values in seen if len(values) != FILES * ROWS or len(set(values)) != 1] == []
