"""Publishing on HDFS: by two renames per output, of the old instance out of its place and of the new one into it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from itertools import permutations, product
from types import TracebackType

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.hdfs.output_swap import HdfsSwap
from falcon_assets.storage.kinds.hdfs.set_aside import replaced
from falcon_assets.storage.kinds.storage_kind import READERS_SECONDS
from falcon_assets.storage.output_target import OutputTarget


class HdfsPublication:
    """Publishes as :mod:`falcon_assets.storage.kinds.hdfs.output_swap`; StorageError: outputs within one another."""

    def __init__(self, store: ClusterStore, process_key: str, outputs: Mapping[str, OutputTarget]) -> None:
        self._store, self._process_key = store, process_key
        self._swaps = {name: HdfsSwap(store, one, f"{process_key}: {one.path}") for name, one in outputs.items()}
        self._replaced, self._held = replaced(store), ExitStack()
        self._check_apart()

    def __enter__(self) -> HdfsPublication:
        cluster = self._store.cluster.name
        self._store.require_root(claims=True, afresh=True)
        with ExitStack() as held:
            for swap in self._swaps.values():
                with driver_explained(cluster, f"prepare {swap.target.path}"):
                    held.callback(self._give_up, swap)
                    swap.prepare()
            with driver_explained(cluster, "remove what was replaced"):
                self._replaced.purge(READERS_SECONDS, waits=False)
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._held.close()

    def staging(self, name: str) -> str:
        return self._swaps[name].written

    def staging_url(self, name: str) -> str:
        return str(self._store.fs.unstrip_protocol(self.staging(name)))

    def commit(self, name: str) -> DataVersion:
        swap = self._swaps[name]
        self._store.require_root(afresh=True)  # who wrote to one that went away made its folders anew
        with driver_explained(self._store.cluster.name, f"publish {swap.target.path}"):
            return swap.publish()

    def commit_kept(self, name: str, version: str, found: DataVersion) -> None:
        """Puts the kept version of that name in :class:`.HdfsVersions` in place of the old instance."""
        swap = self._swaps[name]
        with driver_explained(self._store.cluster.name, f"restore {swap.target.path}"):
            swap.publish_kept(version, found)

    def _give_up(self, swap: HdfsSwap) -> None:
        with driver_explained(self._store.cluster.name, f"clean up after {swap.target.path}"):
            swap.give_up()

    def _check_apart(self) -> None:
        places = [(self._store.staging, "the staging location")]
        finals = [(swap.final, f"output {name!r}") for name, swap in self._swaps.items()]
        for (path, output), (other, what) in [
            *permutations(finals, 2),
            *product(finals, places),
            *product(places, finals),
        ]:
            if f"{path}/".startswith(f"{other}/"):
                raise StorageError(
                    f"{self._process_key}: {output} ({path}) must not be within {what} ({other}) "
                    f"on cluster {self._store.cluster.name!r}"
                )
