"""Where the data of a world lies: what lands there from outside, and what is found there."""

from __future__ import annotations

import shutil
from datetime import datetime
from zoneinfo import ZoneInfo

from falcon_assets.catalog.store import EntityStore
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_version import fingerprint
from tests.simulation.world import Arrival, World


class Ground:
    """The clusters' folders; `versions` names all data versions that came from outside."""

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
        (file,) = (self.settings.home / "data" / cluster / self._path(feed, instance)[1:]).glob("*.txt")
        return file.read_text().rstrip("\n")

    def _write(self, arrival: Arrival) -> None:
        """The data first, the flag last."""
        cluster, name, instance = arrival.key
        path = self._path(name, instance)
        place = self.settings.home / "data" / cluster / path[1:]
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / "data.txt").write_text(f"{arrival.version}\n")
        (place / "_SUCCESS").touch()
        files = ClusterStore(self.store.cluster(cluster), self.settings.home, self.settings.environ)
        self.versions[cluster, name, fingerprint(files, path, "_SUCCESS").version] = arrival.version

    def _path(self, name: str, instance: datetime) -> str:
        feed = self.world.feed(name)
        if feed.every[0] == "days":
            return f"/{name}/{instance.astimezone(ZoneInfo(feed.zone)):%Y-%m-%d}"
        return f"/{name}/{instance:%Y-%m-%d-%H-%M}"
