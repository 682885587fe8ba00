"""A store of every kind with a daily feed on it, whose instances hold numbers."""

from __future__ import annotations

import io
import pickle
import signal
import subprocess
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.eviction import Space, StoredLocation
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.files.local_files import LocalFiles
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.reading import ReadableInstance
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import KeptAs, OutputTarget
from falcon_assets.storage.tables.catalog import NewPartition
from falcon_assets.storage.tables.table_store import TableStore
from tests import iceberg_rest
from tests.builders import make_cluster, make_feed
from tests.hdfs_server import on_hdfs
from tests.processes import CHECKOUT
from tests.registries import CATALOGS, cluster_with, endpoint_of, registry_of
from tests.s3_server import ENVIRON, lake

FILES = ["renaming", "objects"]
ON_S3, ON_HDFS = " on s3", " on hdfs"
"""Of the name of a catalog: the data of its tables is on an object store, or on HDFS."""
KINDS = [*FILES, *CATALOGS, f"iceberg{ON_S3}"]
CLOUDS = ["gs", "abfs"]
"""Object stores that Spark does not reach itself."""
FLAG = "_SUCCESS"
FIRST = parse_instant("2013-01-01T00:00Z")
ODD = "E/U=%ü+'"


@dataclass(frozen=True)
class Sample(ABC):
    """A store, empty at first; another process opens the same by what it is made of."""

    cluster: Cluster
    home: Path
    environ: Mapping[str, str]
    feed: Feed
    staging: LocalStaging | None = None
    """Where Spark reads and writes; None: on the store itself."""

    BUSY: ClassVar[str]
    """What the slower of two writers is told."""
    FORBIDDEN: ClassVar[Mapping[str, str]]
    """What may not be evicted, and why."""

    @property
    def store(self) -> ClusterStore:
        return store_of(self.feed, self.cluster, self.home, self.environ)

    @property
    def kind(self) -> StorageKind:
        """As for one look at the store."""
        return kind_of(self.store)

    def day(self, number: int) -> datetime:
        return FIRST + timedelta(days=number - 1)

    def path(self, day: int = 1) -> str:
        return InstancePaths(self.feed, self.cluster).data(self.day(day))

    def location(self, day: int = 1, path: str | None = None) -> StoredLocation:
        return StoredLocation("data", path or self.path(day), InstancePaths(self.feed, self.cluster).prefix)

    def target(self, day: int = 1, keeps: bool = False) -> OutputTarget:
        kept = KeptAs(self.feed.name, self.day(day)) if keeps else None
        return OutputTarget(self.path(day), self.feed.availability_flag, format=self.feed.format, keeps=kept)

    def publish(self, *numbers: int, day: int = 1, keeps: bool = False) -> str:
        with self.kind.publish("daily", {"out": self.target(day, keeps)}, self.staging) as publication:
            self.write(publication.staging("out"), *numbers)
            return publication.commit("out").version

    def version(self, day: int = 1) -> str:
        return self.kind.version(self.path(day), self.feed.availability_flag).version

    def numbers(self, day: int = 1) -> list[int] | None:
        """What whoever reads an instance finds in it; None: it is not available."""
        kind, path = self.kind, self.path(day)
        if not kind.is_available(self.feed, path):
            return None
        with kind.reading(path, self.feed.availability_flag, self.staging) as read:
            return sorted(self.read(read))

    @abstractmethod
    def land(self, *numbers: int, day: int = 1) -> None:
        """An instance is there, in place of what was there, by another program."""

    @abstractmethod
    def write(self, place: str, *numbers: int) -> None:
        """What Spark writes where an output is staged."""

    @abstractmethod
    def read(self, instance: ReadableInstance) -> Iterable[int]:
        """What Spark reads."""

    @abstractmethod
    def archived(self, path: str) -> list[int]:
        """What lies in an archive on the same cluster."""

    @abstractmethod
    def is_there(self, place: str) -> bool:
        """Whether anything is staged there."""


def place_of(url: str) -> str:
    """The path, as fsspec has it, of a URL that is meant for Spark."""
    parts = urlsplit(url)
    return parts.path if parts.scheme == "hdfs" else parts.netloc + parts.path


@dataclass(frozen=True)
class InFiles(Sample):
    """A file for each number, every other one in a folder."""

    BUSY = "is being written by another run"
    FORBIDDEN: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("/raw", "/other/2013/01/01", "/raw/../data"), "it is not below /raw"
    )

    def land(self, *numbers: int, day: int = 1) -> None:
        place, fs = self.store.path(self.path(day)), self.store.fs
        self.store.files.refresh()
        if fs.exists(place):
            self.store.files.remove_tree(place)
        self._write(fs, place, numbers)
        fs.pipe_file(f"{place}/{FLAG}", b"")

    @property
    def _of_spark(self) -> AbstractFileSystem:
        return LocalFileSystem() if self.staging else self.store.fs

    def write(self, place: str, *numbers: int) -> None:
        self._write(self._of_spark, place, numbers)

    def _write(self, fs: AbstractFileSystem, place: str, numbers: Iterable[int]) -> None:
        for number in numbers:
            folder = f"{place}/carrier=E U%ü+'" if number % 2 else place
            fs.makedirs(folder, exist_ok=True)
            fs.pipe_file(f"{folder}/part-{number}", str(number).encode())

    def read(self, instance: ReadableInstance) -> Iterable[int]:
        (folder,) = instance.folders
        place = place_of(folder.url)
        for name, size in folder.files.sizes.items():
            content = self._of_spark.cat_file(f"{place}/{name}")
            assert len(content) == size
            yield int(content)

    def archived(self, path: str) -> list[int]:
        fs = self.store.fs
        found = {name: fs.cat_file(name) for name in fs.find(self.store.path(path))}
        assert found.pop(self.store.path(f"{path}/{FLAG}")) == b""
        return sorted(int(content) for content in found.values())

    def is_there(self, place: str) -> bool:
        self.store.files.refresh()
        return bool(self._of_spark.exists(place))


@dataclass(frozen=True)
class InTable(Sample):
    """A file with a row for each number."""

    BUSY = "was changed by somebody else meanwhile: run it again"
    FORBIDDEN: ClassVar[Mapping[str, str]] = {"catalog:default:any#ds=*;region=*": "it is the whole table"}
    ROWS = pa.schema([("number", pa.int64())])

    @property
    def tables(self) -> TableStore:
        assert isinstance(self.store, TableStore)
        return self.store

    @property
    def _name(self) -> tuple[str, str]:
        uri = self.tables.table
        assert uri is not None
        return uri.database, uri.table

    def make(self) -> InTable:
        """Makes the table."""
        place = f"file://{self.home}/{self._name[1]}"
        self.tables.catalog.create(*self._name, self.ROWS, ("ds", "region"), "parquet", place)
        return self

    def land(self, *numbers: int, day: int = 1) -> None:
        catalog, values = self.tables.catalog, (f"{self.day(day):%Y-%m-%d}", ODD)
        folder = str(self.home / "landed" / uuid.uuid4().hex)
        self.write(folder, *numbers)
        before = catalog.partitions(*self._name, [values]).get(values)
        catalog.switch(*self._name, values, f"file://{folder}", {}, before)

    def write(self, place: str, *numbers: int) -> None:
        Path(place).mkdir(parents=True)
        pq.write_table(pa.table({"number": list(numbers)}, self.ROWS), f"{place}/part-0.parquet")

    def read(self, instance: ReadableInstance) -> Iterable[int]:
        (partition,) = instance.partitions
        assert partition.layout.key_names == ("ds", "region")
        assert partition.partition.values[1] == ODD
        for url in partition.partition.places:
            place = Path("/" + url.removeprefix("file:").lstrip("/"))
            for file in sorted(place.iterdir()) if place.is_dir() else [place]:
                yield from pq.read_table(file, partitioning=None)["number"].to_pylist()

    def archived(self, path: str) -> list[int]:
        files = sorted(Path(self.store.path(path)).iterdir())
        return [number for file in files for number in pq.read_table(file)["number"].to_pylist()]

    def is_there(self, place: str) -> bool:
        return Path(place).exists()


@dataclass(frozen=True)
class InTableOnS3(InTable):
    """The same on an object store; Spark is not asked, and gets copies."""

    def make(self) -> InTable:
        self.tables.without_tables.fs.mkdir(self._bucket)
        self.tables.catalog.create(*self._name, self.ROWS, ("ds", "region"), "parquet", f"{self._place}/table")
        return self

    @property
    def _bucket(self) -> str:
        return self.cluster.interfaces.write.endpoint.split("/")[2]

    @property
    def _place(self) -> str:
        return f"s3://{self._bucket}/{self._name[1]}"

    def land(self, *numbers: int, day: int = 1) -> None:
        catalog, values = self.tables.catalog, (f"{self.day(day):%Y-%m-%d}", ODD)
        folder, fs = uuid.uuid4().hex, self.tables.without_tables.fs
        self.write(f"{self.home}/landed/{folder}", *numbers)
        file = f"{self._place}/landed/{folder}/part-0.parquet"
        fs.put_file(f"{self.home}/landed/{folder}/part-0.parquet", file)
        before = catalog.partitions(*self._name, [values]).get(values)
        was = {values: before} if before else {}
        new = NewPartition((file.rpartition("/")[0],), files=(file,))
        catalog.switch_all(*self._name, {values: new}, {}, was)

    def archived(self, path: str) -> list[int]:
        fs = self.store.fs
        files = (pq.ParquetFile(io.BytesIO(fs.cat_file(file))) for file in sorted(fs.find(self.store.path(path))))
        return [number for file in files for number in file.read()["number"].to_pylist()]


@dataclass(frozen=True)
class InTableOnHdfs(InTable):
    """The same on HDFS, which Spark gets at itself."""

    @property
    def _fs(self) -> AbstractFileSystem:
        return self.tables.without_tables.fs

    @property
    def _place(self) -> str:
        return f"{self.cluster.interfaces.write.endpoint}/{self._name[1]}"

    def make(self) -> InTable:
        self.tables.catalog.create(*self._name, self.ROWS, ("ds", "region"), "parquet", f"{self._place}/table")
        return self

    def land(self, *numbers: int, day: int = 1) -> None:
        catalog, values = self.tables.catalog, (f"{self.day(day):%Y-%m-%d}", ODD)
        folder = f"{self._place}/landed/{uuid.uuid4().hex}"
        self.write(place_of(folder), *numbers)
        before = catalog.partitions(*self._name, [values]).get(values)
        catalog.switch(*self._name, values, folder, {}, before)

    def write(self, place: str, *numbers: int) -> None:
        content = io.BytesIO()
        pq.write_table(pa.table({"number": list(numbers)}, self.ROWS), content)
        self._fs.pipe_file(f"{place}/_SUCCESS", b"")
        self._fs.pipe_file(f"{place}/part-0.parquet", content.getvalue())

    def read(self, instance: ReadableInstance) -> Iterable[int]:
        (partition,) = instance.partitions
        assert partition.partition.values[1] == ODD
        for url in partition.partition.places:
            yield from self._numbers_in(place_of(url))

    def archived(self, path: str) -> list[int]:
        return [*self._numbers_in(self.store.path(path))]

    def is_there(self, place: str) -> bool:
        return bool(self._fs.exists(place))

    def _numbers_in(self, place: str) -> Iterable[int]:
        for file in self._fs.find(place):
            if file.endswith(".parquet"):
                yield from pq.ParquetFile(io.BytesIO(self._fs.cat_file(file))).read()["number"].to_pylist()


def sample(request: pytest.FixtureRequest, kind: str, home: Path) -> Sample:
    """A store of that kind of its own; only the server that it needs is started."""
    catalog = kind.removesuffix(ON_S3).removesuffix(ON_HDFS)
    if catalog in CATALOGS:
        uri = f"catalog:default:numbers_{uuid.uuid4().hex}#ds=${{YEAR}}-${{MONTH}}-${{DAY}};region={ODD}"
        said = {"format": "parquet", "availability_flag": None, "locations": None, "table": {"uri": uri}}
        endpoint = endpoint_of(request, catalog)
        if kind.endswith(ON_HDFS):
            there = on_hdfs(request.getfixturevalue("hdfs"), root=f"tables-{uuid.uuid4()}")
            there["interfaces"]["registry"] = registry_of(endpoint)
            return InTableOnHdfs(make_cluster(**there), home, {}, _feed(**said)).make()
        if not kind.endswith(ON_S3):
            return InTable(cluster_with(endpoint), home, iceberg_rest.ENVIRON, _feed(**said)).make()
        there = lake(request.getfixturevalue("s3"), name="primary", bucket=f"tables-{uuid.uuid4()}")
        there["interfaces"]["registry"] = registry_of(endpoint)
        environ = {**ENVIRON, **iceberg_rest.ENVIRON}
        return InTableOnS3(make_cluster(**there), home, environ, _feed(**said), LocalStaging(home / "staged")).make()
    feed = _feed(availability_flag=FLAG, locations={"data": "/raw/${YEAR}/${MONTH}/${DAY}"})
    if kind == "renaming":
        return InFiles(make_cluster(), home, {}, feed)
    if kind == "volumes":
        write = {"endpoints": ["data/vol one", "data/übrig"]}
        # Instances lie on the second one, as what is wrong may be right on the first by chance.
        patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        (home / "data/übrig").mkdir(parents=True)
        patch.setattr(LocalFiles, "space", lambda files, root: Space(0, int(root.endswith("übrig"))))
        return InFiles(make_cluster(interfaces={"write": write, "execute": {"endpoint": "local[2]"}}), home, {}, feed)
    if kind == "hdfs":
        there = on_hdfs(request.getfixturevalue("hdfs"), root=f"kinds-{uuid.uuid4()}")
        return InFiles(make_cluster(**there), home, {}, feed)
    if kind == f"volumes{ON_HDFS}":
        server, root = request.getfixturevalue("hdfs"), f"volumes-{uuid.uuid4()}"
        there = on_hdfs(server, root=root)
        there["interfaces"]["write"] = {"endpoints": [f"{server.url}/{root}/small one", f"{server.url}/{root}/übrig"]}
        server.ask("MKDIRS", f"/{root}/small one", "put")
        assert (
            server.ask("SETQUOTA", f"/{root}/small one", "put", storagespacequota=1 << 30).status_code == HTTPStatus.OK
        )
        return InFiles(make_cluster(**there), home, {}, feed)
    bucket = f"kinds-{uuid.uuid4()}"
    staging = None
    if kind == "objects":
        cluster = make_cluster(**lake(request.getfixturevalue("s3"), name="primary", bucket=bucket))
    else:
        staging = LocalStaging(home / "staged")
        interfaces = {"write": {"endpoint": f"{kind}://{bucket}/data"}, "execute": {"endpoint": "local[2]"}}
        cluster = make_cluster(interfaces=interfaces, storage_options=request.getfixturevalue(kind))
    made = InFiles(cluster, home, ENVIRON, feed, staging)
    made.store.fs.mkdir(bucket)
    return made


_PROGRAM = """
import os, pickle, signal, sys
stored = pickle.loads(sys.stdin.buffer.read())
with stored.kind.publish("daily", {"out": stored.target()}, stored.staging) as publication:
    stored.write(publication.staging("out"), 9)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_while_publishing(stored: Sample) -> None:
    """A program of its own has written an output, and is killed before it publishes it."""
    killed = subprocess.run([sys.executable, "-c", _PROGRAM], input=pickle.dumps(stored), check=False, cwd=CHECKOUT)
    assert killed.returncode == -signal.SIGKILL


def _feed(**said: object) -> Feed:
    return make_feed(name="numbers", frequency="days(1)", **said)
