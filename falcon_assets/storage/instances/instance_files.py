"""The files of an instance that were counted, for whoever reads them and must read them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained
from falcon_assets.storage.instances.listing import files_of


@dataclass(frozen=True)
class InstanceFiles:
    """The data files of an instance as they were when its data version was taken.

    Attributes:
        store: Where it lies.
        path: Its path below the root.
        flag: Name of the feed's availability flag.
        sizes: The size of each file, by its name relative to the instance; "" for an instance that is a single file.
    """

    store: ClusterStore
    path: str
    flag: str | None
    sizes: Mapping[str, int]

    def listed_now(self) -> dict[str, int]:
        """The sizes as they are now; none where the instance went.

        Raises:
            StorageError: it cannot be listed, or a link in it leaves the root.
        """
        with explained(self.store.cluster.name, f"list {self.path}"):
            self.store.fs.invalidate_cache()
            try:
                listed = files_of(self.store, self.store.path(self.path), self.flag)
                return {name: int(entry["size"]) for name, entry in listed}
            except FileNotFoundError:
                return {}
