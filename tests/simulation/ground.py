"""Where the data of a world lies: what lands there from outside, and what is found there."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

from falcon_assets.catalog.store import EntityStore
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_version import fingerprint
from falcon_assets.storage.instances.instance_files import files_of
from tests.simulation.world import Arrival, World

FLAG = "_SUCCESS"


class Ground:
    """The clusters' stores; `versions` names all data versions that came from outside."""

    def __init__(self, world: World, store: EntityStore, settings: Settings) -> None:
        self.world, self.store, self.settings = world, store, settings
        self.versions: dict[tuple[str, str, str], str] = {}
        self._landed = 0

    def land(self, now: datetime) -> None:
        """Lets land what has come since the last time."""
        while self._landed < len(self.world.arrivals) and self.world.arrivals[self._landed].time <= now:
            self._write(self.world.arrivals[self._landed])
            self._landed += 1

    def content(self, cluster: str, feed: str, instance: datetime) -> str:
        """The one line that an instance holds now."""
        store, path = self._store(cluster), self._path(feed, instance)
        (file,) = [entry for name, entry in files_of(store, store.path(path), FLAG) if name.endswith(".txt")]
        return str(store.fs.cat_file(file["name"]).decode()).rstrip("\n")

    def _write(self, arrival: Arrival) -> None:
        """The data first, the flag last."""
        cluster, name, instance = arrival.key
        path = self._path(name, instance)
        store = self._store(cluster)
        place = store.path(path)
        with suppress(FileNotFoundError):
            store.files.remove_tree(place)
        store.fs.makedirs(place, exist_ok=True)
        store.fs.pipe_file(f"{place}/data.txt", f"{arrival.version}\n".encode())
        store.fs.pipe_file(f"{place}/{FLAG}", b"")
        self.versions[cluster, name, fingerprint(store, path, FLAG).version] = arrival.version

    def _store(self, cluster: str) -> ClusterStore:
        return ClusterStore(self.store.cluster(cluster), self.settings.home, self.settings.environ)

    def _path(self, name: str, instance: datetime) -> str:
        feed = self.world.feed(name)
        if feed.every[0] == "days":
            return f"/{name}/{instance.astimezone(ZoneInfo(feed.zone)):%Y-%m-%d}"
        return f"/{name}/{instance:%Y-%m-%d-%H-%M}"
