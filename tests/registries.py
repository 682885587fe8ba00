"""Registries for tests: one Hive Metastore for all, and Iceberg catalogs on the tests' PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog

from examples.tables import metastore
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.table_catalog_url import is_rest
from falcon_assets.storage.tables.catalog import Partition, TableCatalog, Values
from falcon_assets.storage.tables.column_types import spark_type
from falcon_assets.storage.tables.hive_partitions import HiveCatalog
from falcon_assets.storage.tables.table_store import TableStore
from tests import iceberg_rest
from tests.builders import make_cluster
from tests.iceberg_rest import ENVIRON

_READY = " is ready\n"
KINDS = ["hive", "iceberg"]
CATALOGS = [*KINDS, "rest"]
"""With the Iceberg catalogs that are asked in another way, for what is about catalogs themselves."""
HIVE_IN_SOAK = [pytest.param("hive", marks=pytest.mark.soak), "iceberg"]
"""The same two kinds, for whole runs: the folders that a kind is of have tests of their own, with both."""


@contextmanager
def hive_metastore(folder: Path, *options: str) -> Iterator[str]:
    """Serves a Hive Metastore; gives its endpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, metastore.__file__, str(folder), "0", *options]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder)
    assert server.stdout is not None
    try:
        said = server.stdout.readline()
        assert said.endswith(_READY), (folder / "log").read_text()
        yield said.removesuffix(_READY)
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()


@pytest.fixture(scope="session")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of a Hive Metastore that all tests share: each has tables of its own."""
    with hive_metastore(tmp_path_factory.mktemp("metastore")) as endpoint:
        yield endpoint


def iceberg(database: str) -> str:
    """The endpoint of an Iceberg catalog of its own in a database of the tests."""
    return f"iceberg+{database.replace('+psycopg2', '')}#{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def rest_service(database: str) -> Iterator[iceberg_rest.RestService]:
    """An Iceberg REST service for the tests of a module: each has a warehouse of its own."""
    with iceberg_rest.iceberg_rest(database) as service:
        yield service


def endpoint_of(request: pytest.FixtureRequest, kind: str) -> str:
    """The endpoint of a registry of that kind; only what is asked for is started."""
    if kind == "hive":
        return str(request.getfixturevalue("hive"))
    if kind == "rest":
        return f"iceberg+{request.getfixturevalue('rest_service').url}#{uuid.uuid4().hex}"
    return iceberg(request.getfixturevalue("database"))


def registry_of(endpoint: str) -> dict[str, Any]:
    """How a cluster declares it."""
    return {"endpoint": endpoint, **({"storage_options": iceberg_rest.OPTIONS} if is_rest(endpoint) else {})}


def cluster_with(endpoint: str) -> Cluster:
    """``primary`` with a registry."""
    interfaces = {"write": {"endpoint": "data/primary"}, "execute": {"endpoint": "local[2]"}}
    return make_cluster(interfaces={**interfaces, "registry": registry_of(endpoint)})


class Tables:
    """A table of its own in a registry, filled by its catalog.

    Attributes:
        name: Of the table, in the database ``default``.
    """

    COLUMNS = pa.schema([("carrier", pa.string()), ("flight", pa.int64())])

    def __init__(self, endpoint: str, home: Path, keys: tuple[str, ...] = ("ds", "region")) -> None:
        self.cluster, self.home, self.keys = cluster_with(endpoint), home, keys
        self.environ = ENVIRON
        self.store = TableStore(self.cluster, home, self.environ)
        self.name = f"flights_{uuid.uuid4().hex}"
        self._location = f"file://{home}/{self.name}"

    @property
    def catalog(self) -> TableCatalog:
        return self.store.catalog

    def opened_again(self) -> TableCatalog:
        """The catalog as another process has it: with a connection of its own."""
        return TableStore(self.cluster, self.home, self.environ).catalog

    def make(self, *types: pa.DataType, columns: pa.Schema = COLUMNS) -> None:
        """Makes it: by its catalog, or with partition keys of other types than texts as other programs do."""
        if not types:
            self.catalog.create("default", self.name, columns, self.keys, "parquet", self._location)
        elif isinstance(self.catalog, HiveCatalog):
            self.catalog.create("default", self.name, columns, self.keys, "parquet", self._location)
            with self.catalog._client("make a table") as client:
                made = client.get_table("default", self.name)
                client.drop_table("default", self.name, False)
                for key, one in zip(made.partitionKeys, types, strict=True):
                    key.type = spark_type(one)
                client.create_table(made)
        else:
            every = pa.schema([*columns, *zip(self.keys, types, strict=True)])
            opened: Catalog = self.catalog._catalog  # type: ignore[attr-defined]
            opened.create_namespace_if_not_exists("default")
            name = ("default", self.name)
            with opened.create_table_transaction(name, every, self._location) as made, made.update_spec() as update:
                for key in self.keys:
                    update.add_identity(key)

    def files(self, *flights: int) -> str:
        """A folder with so many flights, as Spark writes it."""
        folder = self.home / "written" / uuid.uuid4().hex
        folder.mkdir(parents=True)
        rows = {"carrier": ["UA"] * len(flights), "flight": list(flights)}
        pq.write_table(pa.table(rows, self.COLUMNS), folder / "part-0.parquet")
        return f"file://{folder}"

    def there(self, *values: str) -> Partition | None:
        return self.catalog.partitions("default", self.name, [values]).get(values)

    def land(self, values: Values, *flights: int) -> Partition:
        """A partition is there, in place of what was there."""
        before = self.there(*values)
        return self.catalog.switch("default", self.name, values, self.files(*flights), {"by": "tests"}, before)
