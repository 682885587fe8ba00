"""Where the data of a world lies: what lands there from outside, and what is found there."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import requests

from falcon_assets.catalog.store import EntityStore
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.instances.instance_files import files_of
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.tables.table_store import TableStore
from tests.simulation.world import Arrival, World

FLAG = "_SUCCESS"
WEBHDFS = "TESTS_WEBHDFS"
"""The variable that says where an HDFS answers over HTTP, for those who are given a URL on it."""


class Ground:
    """The clusters' stores; `versions` names all data versions that came from outside."""

    def __init__(self, world: World, store: EntityStore, settings: Settings) -> None:
        self.world, self.store, self.settings = world, store, settings
        self.versions: dict[tuple[str, str, str], str] = {}
        self._landed = 0

    def land(self, now: datetime) -> None:
        """Lets land what has come since the last time."""
        while self._landed < len(self.world.arrivals) and self.world.arrivals[self._landed].time <= now:
            self._land(self.world.arrivals[self._landed])
            self._landed += 1

    def _land(self, arrival: Arrival) -> None:
        cluster, name, instance = arrival.key
        store, path = self._place(cluster, name, instance)
        if isinstance(store, TableStore):
            self._into_table(store, arrival)
        else:
            self._into_folder(store, path, arrival)
        flag = self.store.feed(name).availability_flag
        self.versions[cluster, name, kind_of(store).version(path, flag).version] = arrival.version

    def content(self, cluster: str, feed: str, instance: datetime) -> str:
        """The one line that an instance holds now."""
        store, path = self._place(cluster, feed, instance)
        if isinstance(store, TableStore):
            with kind_of(store).reading(path, None) as read:
                (partition,) = read.partitions
            return line_in(partition.partition.places[0])
        (file,) = [entry for name, entry in files_of(store, store.path(path), FLAG) if name.endswith(".txt")]
        return str(store.fs.cat_file(file["name"]).decode()).rstrip("\n")

    def _into_folder(self, store: ClusterStore, path: str, arrival: Arrival) -> None:
        """The data first, the flag last."""
        place = store.path(path)
        with suppress(FileNotFoundError):
            store.files.remove_tree(place)
        store.fs.makedirs(place, exist_ok=True)
        store.fs.pipe_file(f"{place}/data.txt", f"{arrival.version}\n".encode())
        store.fs.pipe_file(f"{place}/{FLAG}", b"")

    def _into_table(self, store: TableStore, arrival: Arrival) -> None:
        """A folder for each version; what comes again as it is has been added already."""
        path = self._place(*arrival.key)[1]
        uri, name = store.table, arrival.version.translate({ord(char): "-" for char in "@:#"})
        folder = self.settings.home / "landed" / arrival.key[0] / name
        assert uri is not None
        if folder.exists():
            return
        folder.mkdir(parents=True)
        rows = pa.table({"value": [arrival.version]})
        pq.write_table(rows, folder / "part-0.parquet")
        location = f"file://{self.settings.home}/tables/{uri.table}"
        store.catalog.create(uri.database, uri.table, rows.schema, ("ds",), "parquet", location)
        values = (path.rpartition("=")[2],)
        before = store.catalog.partitions(uri.database, uri.table, [values]).get(values)
        store.catalog.switch(uri.database, uri.table, values, f"file://{folder}", {}, before)

    def _place(self, cluster_name: str, feed_name: str, instance: datetime) -> tuple[ClusterStore, str]:
        feed, cluster = self.store.feed(feed_name), self.store.cluster(cluster_name)
        store = store_of(feed, cluster, self.settings.home, self.settings.environ)
        return store, InstancePaths(feed, cluster).data(instance)


def line_in(url: str) -> str:
    """The one line in a folder of texts or Parquet files, or in such a file."""
    if url.startswith("hdfs://"):
        (line,) = _lines_on_hdfs(urlsplit(url).path)
        return line
    place = Path(urlsplit(url).path)
    files = [*place.iterdir()] if place.is_dir() else [place]
    lines = [line for path in files if path.suffix == ".txt" for line in path.read_text().splitlines()]
    lines += [line for path in files if path.suffix == ".parquet" for line in pq.read_table(path)["value"].to_pylist()]
    (line,) = lines
    return str(line)


def _lines_on_hdfs(folder: str) -> list[str]:
    """As any client of WebHDFS reads them."""
    address = f"{os.environ[WEBHDFS]}/webhdfs/v1{folder}"
    listed = requests.get(address, params={"op": "LISTSTATUS"}, timeout=30).json()["FileStatuses"]["FileStatus"]
    names = [one["pathSuffix"] for one in listed if one["pathSuffix"].endswith(".txt")]
    texts = (requests.get(f"{address}/{name}", params={"op": "OPEN"}, timeout=30).text for name in names)
    return [line for text in texts for line in text.splitlines()]
